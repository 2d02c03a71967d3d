"""A slow recogniser for grammar expressions, written to be obviously right: where may a match that starts here end?

Recursion is solved by repetition to a fixpoint over (rule, start), so left recursion and empty loops need no thought.
"""

from __future__ import annotations

from itertools import product

from member_oracle import members_ends

from radixlm.grammar.expr import (
    Alt,
    And,
    Bytes,
    Chars,
    Erase,
    Expr,
    Grammar,
    Lit,
    Members,
    Minus,
    Ref,
    Repeat,
    Seq,
    Unlisted,
)
from radixlm.grammar.unlisted import written_out


class Oracle:
    """Decides membership of byte strings in the language of a grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = written_out(grammar)
        self._verdicts: dict[bytes, bool] = {}

    def accepts(self, data: bytes) -> bool:
        """Whether the whole of `data` is in the language."""
        if data not in self._verdicts:
            self._verdicts[data] = self._decide(data)
        return self._verdicts[data]

    def _decide(self, data: bytes) -> bool:
        self._data = data
        self._known: dict[tuple[str, int], set[int]] = {
            (name, start): set() for name in self._grammar.rules for start in range(len(data) + 1)
        }
        is_changed = True
        while is_changed:
            is_changed = False
            self._memo: dict[tuple[int, int], set[int]] = {}  # of this round
            for (name, start), ends in self._known.items():
                found = self._ends(self._grammar.rules[name], start)
                if not found <= ends:
                    ends |= found
                    is_changed = True
        return len(data) in self._known[self._grammar.start, 0]

    def _ends(self, expr: Expr, start: int) -> set[int]:
        key = (id(expr), start)
        if key not in self._memo:
            self._memo[key] = self._work_out(expr, start)
        return self._memo[key]

    def _work_out(self, expr: Expr, start: int) -> set[int]:
        match expr:
            case Lit() | Bytes() | Chars():
                return self._text_ends(expr, start)
            case Seq(items):
                ends = {start}
                for item in items:
                    ends = {end for middle in ends for end in self._ends(item, middle)}
                return ends
            case Alt(items):
                return {end for item in items for end in self._ends(item, start)}
            case Repeat(item, lo, hi):
                return self._repeat_ends(item, lo, hi, start)
            case And(items):
                return set.intersection(*(self._ends(item, start) for item in items))
            case Minus(keep, drop):
                return self._ends(keep, start) - self._ends(drop, start)
            case Members():
                return members_ends(expr, start, self._ends)
            case Ref(name):
                return set(self._known[name, start])
            case Erase() | Unlisted():
                raise NotImplementedError(
                    "erasure is tested through regex assertions; lists are written out"
                )

    def _text_ends(self, expr: Lit | Bytes | Chars, start: int) -> set[int]:
        match expr:
            case Lit(text):
                return {start + len(text)} if self._data.startswith(text, start) else set()
            case Bytes(mask):
                is_in = start < len(self._data) and mask >> self._data[start] & 1
                return {start + 1} if is_in else set()
            case Chars(ranges):
                return self._char_ends(ranges, start)

    def _char_ends(self, ranges: tuple[tuple[int, int], ...], start: int) -> set[int]:
        for length in (1, 2, 3, 4):
            try:
                text = self._data[start : start + length].decode()
            except UnicodeDecodeError:
                continue
            if len(text) == 1 and any(low <= ord(text) <= high for low, high in ranges):
                return {start + length}
        return set()

    def _repeat_ends(self, item: Expr, lo: int, hi: int | None, start: int) -> set[int]:
        found: set[int] = set()
        current = {start}
        # An empty round may stand for any number of missing ones, so more than len + lo rounds bring nothing new.
        for count in range(
            (lo + len(self._data) + 1) if hi is None else min(hi, lo + len(self._data) + 1) + 1
        ):
            if count >= lo:
                found |= current
            after = {end for middle in current for end in self._ends(item, middle)}
            if not after or (after == current and count >= lo):
                break
            current = after
        return found


def language(grammar: Grammar, alphabet: bytes, max_bytes: int) -> set[bytes]:
    """All accepted strings over `alphabet` of at most `max_bytes` bytes."""
    oracle = Oracle(grammar)
    texts = (
        bytes(text) for size in range(max_bytes + 1) for text in product(alphabet, repeat=size)
    )
    return {text for text in texts if oracle.accepts(text)}
