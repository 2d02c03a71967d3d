"""How many characters the strings of a language have.

Owns the bounds of that number. Works on languages of decoded characters as `code_points` has them. Knows nothing of schemas.
"""

from __future__ import annotations

from ...expr import Alt, And, Chars, Expr, Minus, Repeat, Seq
from .memo import Memo

Range = tuple[int, int | None] | None
_MAX_KEPT = (
    1 << 16
)  # parts and character ranges of languages whose lengths are remembered from schema to schema
_known: Memo[int, tuple[Expr, Range]] = Memo(
    _MAX_KEPT
)  # each language beside the answer: its id stays its own


def length_range(language: Expr) -> Range:
    """Bounds of the number of characters, (lo, hi) with hi=None for no bound; None when surely no string is in.

    Exact for languages without And and Minus, an enclosing range otherwise.
    """
    known = _known.get(id(language))
    if known is None:
        search = _Search()
        known = _known.put(id(language), (language, search.range_of(language)), search.size)
    return known[1]


class _Search:
    """The lengths of one language's parts; `size` is how much it holds."""

    def __init__(self) -> None:
        self.size = 0
        self._memo: dict[int, Range] = {}

    def range_of(self, part: Expr) -> Range:
        """The lengths of one part."""
        if type(part) is Chars:
            self.size += len(part.ranges)
            return (1, 1)
        key = id(part)
        if key not in self._memo:
            self.size += 1
            self._memo[key] = self._work_out(part)
        return self._memo[key]

    def _work_out(self, part: Expr) -> Range:
        match part:
            case Seq(items):
                return _sum_ranges([self.range_of(item) for item in items])
            case Alt(items):
                return _join_ranges([self.range_of(item) for item in items])
            case And(items):
                return _meet_ranges([self.range_of(item) for item in items])
            case Minus(keep, _):
                return self.range_of(keep)
            case Repeat(item, lo, hi):
                inner = self.range_of(item)
                if inner is None or inner[1] == 0:
                    return (0, 0) if lo == 0 or inner is not None else None
                top = None if hi is None or inner[1] is None else hi * inner[1]
                return (lo * inner[0], 0 if hi == 0 else top)
            case _:
                raise TypeError(f"{type(part).__name__} is no language of characters")


def _sum_ranges(ranges: list[Range]) -> Range:
    low, high = 0, 0
    open_ended = False
    for item in ranges:
        if item is None:
            return None
        low += item[0]
        open_ended = open_ended or item[1] is None
        high += item[1] or 0
    return (low, None if open_ended else high)


def _join_ranges(ranges: list[Range]) -> Range:
    known = [item for item in ranges if item is not None]
    if not known:
        return None
    tops = [item[1] for item in known]
    return (
        min(item[0] for item in known),
        None if None in tops else max(t for t in tops if t is not None),
    )


def _meet_ranges(ranges: list[Range]) -> Range:
    low, high = 0, None
    for item in ranges:
        if item is None:
            return None
        low = max(low, item[0])
        high = item[1] if high is None else high if item[1] is None else min(high, item[1])
    return None if high is not None and high < low else (low, high)
