"""Rules that produce nothing, taken out of a grammar.

Owns the least fixpoint "this rule has at least one finite text" and the rewriting of a grammar by it. A recursion without an end (an
object that needs itself) is found here. Intersections and differences count as productive: the compiler decides those. Source: Hopcroft
& Ullman, "Introduction to Automata Theory", 1979, section 4.4 (useless symbols).
"""

from __future__ import annotations

from collections.abc import Mapping

from ....errors import GrammarError
from ...expr import NEVER, Alt, Expr, Grammar, Ref, Repeat, Seq, alt, repeat, seq


def prune(grammar: Grammar) -> Grammar:
    """The same language without parts that lead to no text; GrammarError when nothing is left."""
    productive = _productive_rules(grammar.rules)
    if grammar.start not in productive:
        raise GrammarError("no value satisfies this schema", place=grammar.start)
    if len(productive) == len(grammar.rules) and all(
        rule != NEVER for rule in grammar.rules.values()
    ):
        return grammar
    pruner = _Pruner(productive)
    return Grammar(
        {name: pruner.rewrite(grammar.rules[name]) for name in grammar.rules if name in productive},
        grammar.start,
    )


def _productive_rules(rules: Mapping[str, Expr]) -> set[str]:
    known: set[str] = set()
    is_changed = True
    while is_changed:
        is_changed = False
        memo: dict[int, bool] = {}
        for name, rule in rules.items():
            if name not in known and _is_productive(rule, known, memo):
                known.add(name)
                is_changed = True
    return known


def _is_productive(part: Expr, known: set[str], memo: dict[int, bool]) -> bool:
    """Has `part` a text, if the rules `known` have? The memo holds for one round, in which `known` may only grow: a no may be stale."""
    found = memo.get(id(part))
    if found is None:
        match part:
            case Ref(name):
                return name in known
            case Seq(items):
                found = all(_is_productive(item, known, memo) for item in items)
            case Alt(items):
                found = any(_is_productive(item, known, memo) for item in items)
            case Repeat(item, lo, _):
                found = lo == 0 or _is_productive(item, known, memo)
            case _:
                found = True
        memo[id(part)] = found
    return found


class _Pruner:
    """Rewrites expressions, each shared object once."""

    def __init__(self, productive: set[str]) -> None:
        self._productive = productive
        self._memo: dict[int, Expr] = {}

    def rewrite(self, part: Expr) -> Expr:
        """The part without calls of rules that produce nothing."""
        found = self._memo.get(id(part))
        if found is None:
            found = self._memo[id(part)] = self._work_out(part)
        return found

    def _work_out(self, part: Expr) -> Expr:
        match part:
            case Ref(name):
                return part if name in self._productive else NEVER
            case Seq(items):
                return seq(*map(self.rewrite, items))
            case Alt(items):
                return alt(*map(self.rewrite, items))
            case Repeat(item, lo, hi):
                inner = self.rewrite(item)
                if inner == NEVER:
                    return seq() if lo == 0 else NEVER
                return part if inner is item else repeat(inner, lo, hi)
            case _:
                return part
