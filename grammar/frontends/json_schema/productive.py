"""Rules that produce nothing, taken out of a grammar.

Owns the least fixpoint "this rule has at least one finite text" and the rewriting of a grammar by it. A recursion without an end (an
object that needs itself) is found here. Intersections and differences count as productive: the compiler decides those. Source: Hopcroft
& Ullman, "Introduction to Automata Theory", 1979, section 4.4 (useless symbols).

A rule that was found without a text waits for the rules it calls, and is looked at again when one of them is found to have one; so each is
looked at about as often as it calls others. Rules are taken from the last: callers stand before what they call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....errors import GrammarError
from ...expr import (
    CONSTANT_RULES,
    CONSTANTS,
    EMPTY,
    NEVER,
    Alt,
    Clause,
    Expr,
    Grammar,
    Member,
    Members,
    Ref,
    Repeat,
    Seq,
    alt,
    repeat,
    seq,
)


def prune(grammar: Grammar) -> Grammar:
    """The same language without parts that lead to no text; GrammarError when nothing is left."""
    productive = _Productive(grammar.rules).find()
    if grammar.start not in productive:
        raise GrammarError("no value satisfies this schema", place=grammar.start)
    if len(productive) == len(grammar.rules):
        return grammar
    pruner = _Pruner(productive)
    return Grammar(
        {name: pruner.rewrite(grammar.rules[name]) for name in grammar.rules if name in productive},
        grammar.start,
    )


class _Productive:
    """The search for rules that have a text."""

    def __init__(self, rules: Mapping[str, Expr]) -> None:
        self._rules = rules
        self._known: set[str] = set()
        self._yes: set[int] = set()  # parts that have a text, by id
        self._no: set[int] = (
            set()
        )  # parts that have none as far as is known, within the rule at hand
        self._missing: list[str] = []  # calls in that rule of which no text is known

    def find(self) -> set[str]:
        """The names of all rules that have a text."""
        waiting: dict[str, list[str]] = {}
        self._known.update(name for name in self._rules if name in CONSTANT_RULES)
        work = list(self._rules)
        while work:
            name = work.pop()
            if name in self._known:
                continue
            self._no.clear()
            self._missing.clear()
            if self._has_text(self._rules[name]):
                self._known.add(name)
                work.extend(waiting.pop(name, ()))
            else:
                for missing in self._missing:
                    waiting.setdefault(missing, []).append(name)
        return self._known

    def _has_text(self, part: Expr) -> bool:
        if type(part) is Ref:
            return self._is_known(part.name)
        if type(part) not in _WITH_CALLS or (type(part) is Repeat and part.lo == 0):
            return True
        key = id(part)
        if key in self._yes or key in CONSTANTS:
            return True
        if key in self._no:
            return False
        found = self._work_out(part)
        (self._yes if found else self._no).add(key)
        return found

    def _is_known(self, name: str) -> bool:
        if name in self._known:
            return True
        self._missing.append(name)
        return False

    def _work_out(self, part: Expr) -> bool:
        match part:
            case Seq(items):
                for item in items:  # many: a loop is quicker than all()
                    if type(item) in _WITH_CALLS and not self._has_text(item):
                        return False
                return True
            case Alt(items):
                return any(type(i) not in _WITH_CALLS or self._has_text(i) for i in items)
            case Repeat(item):
                return self._has_text(item)
            case Members(items, separator):
                alive = {i for i, item in enumerate(items) if self._has_text(item.text)}
                return can_be_made(part, alive, self._has_text(separator))
            case _:
                return True


_WITH_CALLS = frozenset((Ref, Seq, Alt, Repeat, Members))


def can_be_made(part: Members, alive: Iterable[int], is_separable: bool) -> bool:
    """Is there a set of members, all among `alive`, as `part` wants it? Without a separator it has one member at most."""
    items = set(alive)
    high = part.hi if is_separable else 1 if part.hi is None else min(part.hi, 1)
    for clause in part.clauses:
        if not clause.needs <= items or (high is not None and len(clause.needs) > high):
            continue
        free = items - clause.bars
        is_endless = any(part.items[i].is_run for i in free)
        most = part.lo if is_endless else len(free)
        if min(most, part.lo if high is None else high) >= part.lo:
            return True
    return False


class _Pruner:
    """Rewrites expressions, each shared object once."""

    def __init__(self, productive: set[str]) -> None:
        self._productive = productive
        self._memo: dict[int, Expr] = {}

    def rewrite(self, part: Expr) -> Expr:
        """The part without calls of rules that produce nothing."""
        found = self._memo.get(id(part))
        if found is None:
            found = part if id(part) in CONSTANTS else self._work_out(part)
            self._memo[id(part)] = found
        return found

    def _work_out(self, part: Expr) -> Expr:
        match part:
            case Ref(name):
                return part if name in self._productive else NEVER
            case Seq(items):
                rewritten = [self.rewrite(item) for item in items]
                return part if _are_same(items, rewritten) else seq(*rewritten)
            case Alt(items):
                rewritten = [self.rewrite(item) for item in items]
                rewritten = [item for item in rewritten if item != NEVER]
                return part if _are_same(items, rewritten) else alt(*rewritten)
            case Repeat(item, lo, hi):
                inner = self.rewrite(item)
                if inner == NEVER:
                    return EMPTY if lo == 0 else NEVER
                return part if inner is item else repeat(inner, lo, hi)
            case Members():
                return self._members(part)
            case _:
                return part

    def _members(self, part: Members) -> Expr:
        """The members that have a text, and the clauses that need no other."""
        texts = [self.rewrite(item.text) for item in part.items]
        separator = self.rewrite(part.separator)
        place = {i: n for n, i in enumerate(i for i, text in enumerate(texts) if text != NEVER)}
        if not can_be_made(part, place, separator != NEVER):
            return NEVER
        if separator is part.separator and _are_same([m.text for m in part.items], texts):
            return part
        high = part.hi
        if separator == NEVER:
            separator, high = EMPTY, 1 if high is None else min(high, 1)
        clauses = tuple(
            Clause(
                frozenset(place[i] for i in clause.needs),
                frozenset(place[i] for i in clause.bars if i in place),
            )
            for clause in part.clauses
            if clause.needs <= place.keys()
        )
        items = tuple(Member(texts[i], part.items[i].is_run) for i in place)
        return (
            Members(items, separator, part.lo, high, clauses, part.is_ordered) if items else EMPTY
        )


def _are_same(old: Iterable[Expr], new: list[Expr]) -> bool:
    before = list(old)
    return len(before) == len(new) and all(a is b for a, b in zip(before, new, strict=True))
