"""Regular languages over decoded characters: questions and rewrites that need no automaton.

Here an `Expr` is read as a language of Unicode strings: `Chars` is one code point, and `Lit` does not occur (a fixed text is a sequence
of one-character `Chars`), so every length is a count of code points. Owns membership of one string and the narrowing of a language to a range of lengths, done by
adjusting a repeat where that is exact and by an intersection with a counter otherwise. Knows nothing of JSON escapes, bytes or schemas.

Membership works on sets of end positions, as a recogniser for extended regular expressions (intersection and difference included) can:
each part maps a set of start positions to a set of end positions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache

from ...expr import (
    EMPTY,
    MAX_CODE_POINT,
    NEVER,
    Alt,
    And,
    Chars,
    Expr,
    Minus,
    Repeat,
    Seq,
    alt,
    chars,
    constant,
    minus,
    normal_ranges,
    repeat,
    seq,
    star,
)
from .bounded_lengths import bounded, shorter_texts
from .lengths import length_range

ANY_CHAR = Chars(normal_ranges([(0, MAX_CODE_POINT)]))
ANY_TEXT: Expr = constant(star(ANY_CHAR))


@lru_cache(maxsize=2048)
def _one(char: str) -> Expr:
    return chars(char)


def text_language(text: str) -> Expr:
    """The language of exactly `text`."""
    return seq(*map(_one, text))


def accepts(language: Expr, text: str) -> bool:
    """Does `language` hold the whole of `text`?"""
    return len(text) in _Recogniser(text).ends(language, 0)


class _Recogniser:
    """Where each part of a language can end in one text; remembers what it has worked out."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._memo: dict[tuple[int, int], frozenset[int]] = {}

    def ends(self, part: Expr, start: int) -> frozenset[int]:
        """End positions of the matches of `part` that begin at `start`."""
        if isinstance(part, Chars):
            return self._char(part, start)
        key = (id(part), start)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._work_out(part, start)
        return found

    def _char(self, part: Chars, start: int) -> frozenset[int]:
        if start < len(self._text) and in_ranges(part.ranges, ord(self._text[start])):
            return frozenset((start + 1,))
        return frozenset()

    def _work_out(self, part: Expr, start: int) -> frozenset[int]:
        match part:
            case Seq(items):
                ends = frozenset((start,))
                for item in items:
                    ends = self._each(item, ends)
                return ends
            case Alt(items):
                return frozenset[int]().union(*(self.ends(item, start) for item in items))
            case And(items):
                first, *others = (self.ends(item, start) for item in items)
                return first.intersection(*others)
            case Minus(keep, drop):
                return self.ends(keep, start) - self.ends(drop, start)
            case Repeat(item, lo, hi):
                return self._repeat(item, lo, hi, start)
            case _:
                raise TypeError(f"{type(part).__name__} is no language of characters")

    def _each(self, part: Expr, starts: Iterable[int]) -> frozenset[int]:
        return frozenset[int]().union(*(self.ends(part, start) for start in starts))

    def _repeat(self, item: Expr, lo: int, hi: int | None, start: int) -> frozenset[int]:
        ends = frozenset((start,))
        # a round that moves nowhere repeats for ever: more rounds than characters add nothing new
        for _ in range(min(lo, len(self._text) + 1)):
            ends = self._each(item, ends)
        result = ends
        rounds = len(self._text) + 1 if hi is None else min(hi - lo, len(self._text) + 1)
        for _ in range(rounds):
            ends = self._each(item, ends) - result
            if not ends:
                break
            result |= ends
        return result


def in_ranges(ranges: tuple[tuple[int, int], ...], code_point: int) -> bool:
    """Is `code_point` inside one of the sorted inclusive `ranges`?"""
    index = bisect_right(ranges, (code_point, 0x110000)) - 1
    return index >= 0 and ranges[index][1] >= code_point


def within_lengths(language: Expr, lo: int, hi: int | None) -> Expr:
    """The strings of `language` that have `lo` to `hi` characters."""
    bounds = length_range(language)
    if (
        bounds is None
        or (hi is not None and bounds[0] > hi)
        or (bounds[1] is not None and bounds[1] < lo)
    ):
        return NEVER
    if bounds[0] >= lo and (hi is None or (bounds[1] is not None and bounds[1] <= hi)):
        return language
    shorter = shorter_texts(language, lo, hi, within_lengths)
    if shorter is not None:
        return shorter
    match language:
        case Alt(items):
            return alt(*(within_lengths(item, lo, hi) for item in items))
        case Repeat():
            narrowed = _narrow_repeat(language, lo, hi)
            if narrowed is not None:
                return narrowed
        case Minus(keep, drop):
            return minus(within_lengths(keep, lo, hi), drop)
        case Seq(items):
            narrowed = _narrow_single_repeat(items, lo, hi)
            if narrowed is not None:
                return narrowed
        case _:
            pass
    return bounded(language, lo, hi, within_lengths)


def _narrow_repeat(language: Repeat, lo: int, hi: int | None) -> Expr | None:
    """A repeat of something of one length; or of something optional."""
    if language.lo == 0 and language.hi == 1:
        some = within_lengths(language.item, lo, hi)
        return alt(EMPTY, some) if lo == 0 else some
    bounds = length_range(language.item)
    if bounds is None or bounds[0] != bounds[1] or bounds[0] == 0:
        return None
    size = bounds[0]
    most = (
        language.hi
        if hi is None
        else hi // size
        if language.hi is None
        else min(language.hi, hi // size)
    )
    return repeat(language.item, max(language.lo, -(-lo // size)), most)


def _narrow_single_repeat(items: tuple[Expr, ...], lo: int, hi: int | None) -> Expr | None:
    """A sequence of which all parts but one have one length: the bounds move into that part."""
    fixed = 0
    variable: int | None = None
    for index, item in enumerate(items):
        bounds = length_range(item)
        if bounds is not None and bounds[0] == bounds[1]:
            fixed += bounds[0]
        elif variable is None:
            variable = index
        else:
            return None
    if variable is None:
        return None
    inner = within_lengths(items[variable], max(0, lo - fixed), None if hi is None else hi - fixed)
    return seq(*items[:variable], inner, *items[variable + 1 :])
