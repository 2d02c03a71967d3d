"""Membership in a grammar by its definition: slow, and plain enough to be believed.

Each part maps a start position to the set of positions where it can end. Handles every expression of `radixlm.grammar.expr` except left
recursion, which JSON grammars do not have.
"""

from __future__ import annotations

from member_oracle import members_ends

from radixlm.grammar.expr import (
    Alt,
    And,
    Bytes,
    Chars,
    Expr,
    Grammar,
    Lit,
    Members,
    Minus,
    Ref,
    Repeat,
    Seq,
)
from radixlm.grammar.unlisted import written_out


def slow_accepts(grammar: Grammar, text: str | bytes) -> bool:
    """Is `text` in the language of the grammar?"""
    data = text.encode() if isinstance(text, str) else text
    grammar = written_out(grammar)
    return len(data) in _Slow(grammar, data).ends(grammar.rules[grammar.start], 0)


class _Slow:
    def __init__(self, grammar: Grammar, data: bytes) -> None:
        self.grammar = grammar
        self.data = data
        self.memo: dict[tuple[int, int], frozenset[int]] = {}

    def ends(self, part: Expr, at: int) -> frozenset[int]:
        key = (id(part), at)
        if key not in self.memo:
            self.memo[key] = frozenset(self.work_out(part, at))
        return self.memo[key]

    def work_out(self, part: Expr, at: int) -> set[int] | frozenset[int]:
        match part:
            case Bytes(mask):
                return {at + 1} if at < len(self.data) and mask >> self.data[at] & 1 else set()
            case Lit(data):
                return {at + len(data)} if self.data.startswith(data, at) else set()
            case Chars(ranges):
                return self.char(ranges, at)
            case Seq(items):
                ends = frozenset((at,))
                for item in items:
                    ends = self.each(item, ends)
                return ends
            case Alt(items):
                return frozenset().union(*(self.ends(item, at) for item in items))
            case And(items):
                return frozenset.intersection(*(self.ends(item, at) for item in items))
            case Minus(keep, drop):
                return self.ends(keep, at) - self.ends(drop, at)
            case Members():
                return members_ends(part, at, self.ends)
            case Ref(name):
                return self.ends(self.grammar.rules[name], at)
            case Repeat(item, lo, hi):
                return self.repeat(item, lo, hi, at)

    def char(self, ranges: tuple[tuple[int, int], ...], at: int) -> set[int]:
        for size in (1, 2, 3, 4):
            try:
                char = self.data[at : at + size].decode()
            except UnicodeDecodeError:
                continue
            if len(char) == 1 and any(low <= ord(char) <= high for low, high in ranges):
                return {at + size}
        return set()

    def each(self, part: Expr, starts: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(self.ends(part, at) for at in starts))

    def repeat(self, item: Expr, lo: int, hi: int | None, at: int) -> frozenset[int]:
        room = len(self.data) + 1  # rounds that move: more than that add nothing
        ends = frozenset((at,))
        for _ in range(min(lo, room)):
            ends = self.each(item, ends)
        found = ends
        for _ in range(room if hi is None else min(hi - lo, room)):
            ends = self.each(item, ends) - found
            if not ends:
                break
            found |= ends
        return found
