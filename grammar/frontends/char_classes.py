"""Python's character classes as code point ranges: \\d \\w \\s, their ASCII forms, and case-insensitive sets.

Owns the tables that `re` itself uses on str, asked from the running interpreter so that they agree with its Unicode version. Knows
nothing of expressions. Surrogates stay in the ranges; `expr.chars` takes them out.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import cast

Ranges = tuple[tuple[int, int], ...]

ASCII: dict[str, Ranges] = {
    "digit": ((0x30, 0x39),),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "word": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
}
_UNICODE = {"digit": r"\d+", "space": r"\s+", "word": r"\w+"}
_PLANES_WITH_TEXT = (
    0x40000  # beyond lie private use, tags and selectors: in none of the classes (tested)
)
_CASED_END = 0x20000  # no cased character beyond (tested)


@cache
def unicode_class(name: str) -> Ranges:
    """The ranges of digit, space or word, as `re` has them for str."""
    text = "".join(map(chr, range(_PLANES_WITH_TEXT)))
    return tuple((m.start(), m.end() - 1) for m in re.finditer(_UNICODE[name], text))


@cache
def _case_groups() -> tuple[tuple[int, ...], ...]:
    """Sets of code points that match one another under IGNORECASE.

    `re` compares simple lower cases, and besides them some lower-case characters with a common upper case (such as s and U+017F).
    """
    to_lower = import_module("_sre").unicode_tolower
    extra = cast(dict[int, tuple[int, ...]], import_module("re._casefix")._EXTRA_CASES)
    members: dict[int, list[int]] = {}
    for code in range(_CASED_END):
        lower = cast(int, to_lower(code))
        if lower != code:
            members.setdefault(lower, [lower]).append(code)
    groups: dict[int, tuple[int, ...]] = {}
    for lower in {*members, *extra}:
        alike = {lower, *extra.get(lower, ())}
        groups[min(alike)] = tuple(
            sorted({c for other in alike for c in members.get(other, [other])})
        )
    return tuple(groups.values())


@cache
def _cased() -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """All code points of the groups in order, and the group of each."""
    group_of = {code: group for group in _case_groups() for code in group}
    return sorted(group_of), group_of


def ignoring_case(ranges: Iterable[tuple[int, int]], *, is_ascii: bool) -> Ranges:
    """All code points that match one of `ranges` under IGNORECASE. Character classes need no such step: they hold both cases."""
    wanted = list(ranges)
    result = list(wanted)
    if is_ascii:
        for low, high in wanted:
            letters = (
                code for code in range(max(low, 0x41), min(high, 0x7A) + 1) if chr(code).isalpha()
            )
            result += [(code ^ 0x20, code ^ 0x20) for code in letters]
        return tuple(result)
    codes, group_of = _cased()
    hits = {
        group_of[code]
        for low, high in wanted
        for code in codes[bisect_left(codes, low) : bisect_right(codes, high)]
    }
    result += [(code, code) for group in sorted(hits) for code in group]
    return tuple(result)
