"""`Unlisted` as plain expressions: the tree of the listed texts, written out.

Owns that tree. The native compiler builds the same one by itself; the Python passes are given it in place of the short form. Works without
Python recursion. Knows nothing of automata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_

from .expr import (
    CONSTANTS,
    EMPTY,
    Alt,
    And,
    Bytes,
    Erase,
    Expr,
    Grammar,
    Lit,
    Member,
    Members,
    Minus,
    Repeat,
    Seq,
    Unlisted,
)


def written_out(grammar: Grammar) -> Grammar:
    """The same language without `Unlisted`."""
    done: dict[int, Expr] = {}
    rules = {name: _rewritten(body, done) for name, body in grammar.rules.items()}
    is_same = all(map(is_, rules.values(), grammar.rules.values()))
    return grammar if is_same else Grammar(rules, grammar.start)


def _rewritten(whole: Expr, done: dict[int, Expr]) -> Expr:
    """`done` holds what was rewritten, by identity, so that shared parts stay shared."""
    work = [whole]
    while work:
        expr = work[-1]
        missing = [part for part in _parts(expr) if id(part) not in done]
        if missing:
            work += missing
            continue
        work.pop()
        if id(expr) not in done:
            done[id(expr)] = _rebuilt(expr, done)
    return done[id(whole)]


def _parts(expr: Expr) -> tuple[Expr, ...]:
    if id(expr) in CONSTANTS:
        return ()  # no constant is made of texts of a schema
    match expr:
        case Seq(items) | Alt(items) | And(items):
            return items
        case Repeat(item) | Erase(item):
            return (item,)
        case Minus(keep, drop):
            return (keep, drop)
        case Members(items, separator):
            return (separator, *(item.text for item in items))
        case _:
            return ()


def _rebuilt(expr: Expr, done: Mapping[int, Expr]) -> Expr:
    if isinstance(expr, Unlisted):
        return _Tree(expr).write()
    old = _parts(expr)
    parts = tuple(done[id(part)] for part in old)
    if all(map(is_, old, parts)):
        return expr
    match expr:
        case Seq() | Alt() | And():
            return type(expr)(parts)
        case Repeat(_, lo, hi):
            return Repeat(parts[0], lo, hi)
        case Erase(_, mask):
            return Erase(parts[0], mask)
        case Minus():
            return Minus(*parts)
        case Members(items, _, lo, hi, clauses, is_ordered):
            separator, *texts = parts
            members = tuple(Member(t, item.is_run) for t, item in zip(texts, items, strict=True))
            return Members(members, separator, lo, hi, clauses, is_ordered)
        case _:
            return expr


@dataclass(slots=True)
class _Fork:
    """A place in the tree of texts where some part, or where one ends and others go on."""

    depth: int
    is_end: bool
    free: int  # the bytes that leave the tree here
    parts: list[Expr] = field(default_factory=list[Expr])  # one for each byte that stays in it

    def add(self, byte: int, below: Expr) -> None:
        """`byte` leads to `below`."""
        self.free &= ~(1 << byte)
        self.parts.append(Seq((Lit(bytes((byte,))), below)))


class _Tree:
    """Each step off the tree leads to the same tail, so the whole is deterministic and about as large as the texts."""

    def __init__(self, expr: Unlisted) -> None:
        self._texts = expr.texts
        self._plain = expr.plain
        self._tail = expr.tail
        self._special = expr.special
        self._off: dict[int, Expr] = {}

    def write(self) -> Expr:
        """The whole. `forks` are the places on the way to the text at hand that are not finished."""
        forks: list[_Fork] = []
        after: Sequence[bytes | None] = [*self._texts[1:], None]
        for text, following in zip(self._texts, after, strict=True):
            shared = -1 if following is None else _num_shared(text, following)
            depth = len(text)
            if shared == depth:
                forks.append(_Fork(depth, True, self._plain))
                continue
            below: Expr = Alt((self._off_by(self._plain), self._special))
            while True:
                # from `below`, the place at `depth`, up to the next fork
                fork = forks[-1] if forks else None
                stop = max(shared, fork.depth if fork else -1)
                for byte in text[stop + 1 : depth][::-1]:
                    step = Seq((Lit(bytes((byte,))), below))
                    off = self._off_by(self._plain & ~(1 << byte))
                    below = Alt((step, EMPTY, off, self._special))
                if stop < 0:
                    return below
                if fork is None or fork.depth < stop:
                    fork = _Fork(stop, False, self._plain)
                    forks.append(fork)
                fork.add(text[stop], below)
                if stop == shared:
                    break
                below, depth = self._finished(forks.pop()), stop
        raise AssertionError("the last text closes the tree")

    def _finished(self, fork: _Fork) -> Expr:
        ends = () if fork.is_end else (EMPTY,)
        return Alt((*fork.parts, *ends, self._off_by(fork.free), self._special))

    def _off_by(self, mask: int) -> Expr:
        found = self._off.get(mask)
        if found is None:
            found = self._off[mask] = Seq((Bytes(mask), self._tail))
        return found


def _num_shared(a: bytes, b: bytes) -> int:
    """The length of the common beginning."""
    num = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        num += 1
    return num
