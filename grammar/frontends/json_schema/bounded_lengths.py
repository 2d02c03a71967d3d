"""Languages of characters met with a range of lengths, where no single repeat can take the bounds over.

Owns the ways to do that. A least length of one is a matter of the parts that may be empty. Parts of few lengths are taken one length at a
time, so that the one long part is narrowed. The rest is an intersection with a counter, whose characters are only those that the language
has, to keep its automaton small. All this is exact; formats that have shorter texts ready give those first. Knows nothing of JSON text or
schemas.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import product
from operator import mul

from ...expr import (
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
    conj,
    normal_ranges,
    repeat,
    seq,
)
from .lengths import length_range

_ANY_CHAR = Chars(normal_ranges([(0, MAX_CODE_POINT)]))
_MAX_WAYS = 8  # combinations of the lengths of short parts
Narrowing = Callable[[Expr, int, int | None], Expr]
NARROWER: dict[int, Callable[[int], Expr | None]] = {}
"""By the id of a language that lives as long as the process: texts of it with at most so many characters, None where it has none ready."""


def bounded(language: Expr, lo: int, hi: int | None, narrow: Narrowing) -> Expr:
    """The strings of `language` with `lo` to `hi` characters; `narrow` does the same for parts, where it knows how to."""
    bounds = length_range(language)
    if bounds is None:
        return NEVER
    if lo <= 1 and (hi is None or (bounds[1] is not None and bounds[1] <= hi)):
        return language if bounds[0] >= lo else _without_empty(language, narrow)
    if type(language) is Seq:
        split = _by_short_parts(language.items, lo, hi, narrow)
        if split is not None:
            return split
    return conj(language, repeat(characters(language), lo, hi))


def shorter_texts(language: Expr, lo: int, hi: int | None, narrow: Narrowing) -> Expr | None:
    """Of a format that has texts of at most `hi` characters ready: those with at least `lo`."""
    if hi is None or id(language) not in NARROWER:
        return None
    shorter = NARROWER[id(language)](hi)
    return None if shorter is None else narrow(shorter, lo, None)


def _without_empty(language: Expr, narrow: Narrowing) -> Expr:
    """All strings but the empty one."""
    match language:
        case Alt(items):
            return alt(*(narrow(item, 1, None) for item in items))
        case Repeat(item, lo, hi):
            more = repeat(item, max(lo - 1, 0), None if hi is None else hi - 1)
            return seq(narrow(item, 1, None), more)
        case Seq(items) if len(items) <= _MAX_WAYS:
            ways: list[Expr] = []  # by the first part with a character; those before it are empty
            for index, item in enumerate(items):
                ways.append(seq(narrow(item, 1, None), *items[index + 1 :]))
                if not _may_be_empty(item, {}):
                    break
            return alt(*ways)
        case _:
            return conj(language, repeat(characters(language), 1, None))


def _may_be_empty(part: Expr, known: dict[int, bool]) -> bool:
    if id(part) not in known:
        match part:
            case Seq(items) | And(items):
                found = all(_may_be_empty(item, known) for item in items)
            case Alt(items):
                found = any(_may_be_empty(item, known) for item in items)
            case Minus(keep, drop):
                found = _may_be_empty(keep, known) and not _may_be_empty(drop, known)
            case Repeat(item, lo):
                found = lo == 0 or _may_be_empty(item, known)
            case _:
                found = False
        known[id(part)] = found
    return known[id(part)]


def _by_short_parts(
    items: tuple[Expr, ...], lo: int, hi: int | None, narrow: Narrowing
) -> Expr | None:
    """A sequence with one long part: a choice of the lengths of the others. None where that is not its form."""
    choices: list[list[Expr]] = []
    num_long = 0
    for item in items:
        bounds = length_range(item)
        if bounds is None:
            return NEVER
        least, most = bounds
        if most is None or most - least >= _MAX_WAYS:
            num_long += 1
            choices.append([item])
        elif most == least:
            choices.append([item])
        else:
            ways = [narrow(item, length, length) for length in range(least, most + 1)]
            choices.append([way for way in ways if way != NEVER])
    num_ways = reduce(mul, map(len, choices), 1)
    if num_long != 1 or not 1 < num_ways <= _MAX_WAYS:
        return None
    return alt(*(narrow(seq(*way), lo, hi) for way in product(*choices)))


def characters(language: Expr) -> Expr:
    """One character out of all that occur in the texts of `language`, and perhaps others."""
    ranges: set[tuple[int, int]] = set()
    seen: set[int] = set()
    work = [language]
    while work:
        part = work.pop()
        if type(part) is Chars:
            ranges.update(part.ranges)
        elif id(part) not in seen:
            seen.add(id(part))
            match part:
                case Seq(items) | Alt(items) | And(items):
                    work.extend(items)
                case Minus(keep, _) | Repeat(keep):
                    work.append(keep)
                case _:
                    raise TypeError(f"{type(part).__name__} is no language of characters")
    normal = normal_ranges(ranges)
    return Chars(normal) if normal != _ANY_CHAR.ranges else _ANY_CHAR
