"""What is known of the character before a place in a pattern.

Owns that knowledge, which `^` and word boundaries need, and the parting of a part by the kind of its last character. Knows nothing of
languages.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from ...expr import outside_ranges
from .pattern import WORD, Ahead, Cat, CharSet, Edge, Or, Pattern, Ranges, Times


class Left(Enum):
    """What is known of the character before a place."""

    START = "there is none"
    WORD = "a word character"
    OTHER = "another character"
    SOME = "some character"
    UNKNOWN = "perhaps none"


def needs_kind(part: Pattern) -> bool:
    """Does the part begin with a word boundary?"""
    match part:
        case Edge(kind):
            return kind in ("b", "B")
        case Cat(parts):
            return bool(parts) and needs_kind(parts[0])
        case Or(parts):
            return any(needs_kind(p) for p in parts)
        case _:
            return False


def splits(part: Pattern) -> bool:
    """May the part end in a word character as well as in another one?"""
    return after(part, Left.OTHER) in (Left.SOME, Left.UNKNOWN)


def last_char_variants(part: Pattern) -> list[tuple[Pattern, ...]]:
    """The part as alternatives whose last character is of one kind, where the part is a set or a repeat of one."""
    match part:
        case CharSet(ranges):
            kinds = (_meet(ranges, WORD), _meet(ranges, outside_ranges(WORD)))
            return [(CharSet(kind),) for kind in kinds if kind]
        case Times(CharSet(ranges), lo, hi) if hi != 0:
            less = Times(CharSet(ranges), max(lo - 1, 0), None if hi is None else hi - 1)
            variants: list[tuple[Pattern, ...]] = [
                (less, *last) for last in last_char_variants(CharSet(ranges))
            ]
            return [*variants, ()] if lo == 0 else variants
        case _:
            return []


def _meet(a: Ranges, b: Ranges) -> Ranges:
    return outside_ranges([*outside_ranges(a), *outside_ranges(b)])


@lru_cache(maxsize=1024)
def _kind(ranges: Ranges) -> Left:
    """What is known of a character out of `ranges`."""
    words = _meet(ranges, WORD)
    return Left.WORD if words == ranges else Left.SOME if words else Left.OTHER


def after(part: Pattern, left: Left) -> Left:
    """What is known of the last character once `part` has matched."""
    match part:
        case CharSet(ranges):
            return _kind(ranges)
        case Edge() | Ahead():
            return left
        case Cat(parts):
            for inner in parts:
                left = after(inner, left)
            return left
        case Or(parts):
            return _either([after(inner, left) for inner in parts])
        case Times(inner, lo, hi):
            if hi == 0:
                return left
            once = after(inner, left)
            return once if lo > 0 else _either([left, once])


def _either(known: list[Left]) -> Left:
    first = known[0]
    if all(k is first for k in known):
        return first
    return Left.UNKNOWN if Left.START in known or Left.UNKNOWN in known else Left.SOME
