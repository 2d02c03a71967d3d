"""Texts of JSON numbers: those of a set, by what sort of number is meant.

Owns the texts of whole numbers; `decimals` has those of the others. A whole number is -?(0|[1-9][0-9]*) of bounded length (`Room`): no
fraction, no exponent, never -0. Texts are remembered from schema to schema. Knows nothing of schemas.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import lcm

from ...expr import NEVER, Expr, Limits, alt, conj, constant, lit, minus, repeat, seq
from . import decimals
from .digits import DIGIT, NONZERO, SIGN, Room, room_of, whole_numbers
from .multiples import room_beside, whole_multiples
from .number_set import NumberSet

_MAX_LISTED = 1000  # whole numbers are listed one by one up to here when no digit rule says which are multiples
_MAX_KEPT = 256  # sets whose texts are remembered from schema to schema
_STANDARD = Limits()


def integer_text(numbers: NumberSet, limits: Limits = _STANDARD) -> Expr:
    """Texts of the whole numbers of the set."""
    return _integers(numbers, room_of(limits))


def number_text(numbers: NumberSet, limits: Limits = _STANDARD) -> Expr:
    """Texts of all numbers of the set, whole or not."""
    return decimals.number_text(numbers, room_of(limits))


def fraction_text(numbers: NumberSet, limits: Limits = _STANDARD) -> Expr:
    """Texts of the numbers of the set that are not whole."""
    return decimals.fraction_text(numbers, room_of(limits))


@cache
def _any_integer(room: Room) -> Expr:
    return constant(alt(lit("0"), seq(SIGN, NONZERO, repeat(DIGIT, 0, room.whole - 1))))


@lru_cache(maxsize=_MAX_KEPT)
def _integers(numbers: NumberSet, room: Room) -> Expr:
    """Texts of the whole numbers of the set."""
    low, high = numbers.whole_bounds()
    if low is not None and high is not None and low > high:
        return NEVER
    step = _common_step(numbers.multiples)
    drop_steps = tuple({s.numerator for s in numbers.not_multiples})
    if 1 in drop_steps:
        return NEVER
    if step == 1 and not drop_steps and low is None and high is None:
        language = _any_integer(room)
    else:
        listed = _listed(numbers, low, high, step)
        if listed is not None:
            return listed
        counted = [Fraction(s) for s in (step, *drop_steps)]
        bounds = numbers.low, numbers.high
        shorter = room_beside(counted, room, bounds, whole=True)
        is_free = low is None and high is None
        language = _any_integer(shorter) if is_free else _signed_range(low, high, shorter)
        if step > 1:
            language = conj(language, whole_multiples(step, room))
        for drop in drop_steps:
            language = minus(language, whole_multiples(drop, room))
    points = [int(v) for v in numbers.excluded if v == int(v)]
    return minus(language, alt(*(lit(str(p)) for p in points))) if points else language


def _listed(numbers: NumberSet, low: int | None, high: int | None, step: int) -> Expr | None:
    """The few whole numbers between the bounds that are multiples of `step`, one by one."""
    if low is None or high is None or (step == 1 and not numbers.not_multiples):
        return None
    first = -(-low // step) * step
    if (high - first) // step >= _MAX_LISTED:
        return None
    return alt(*(lit(str(n)) for n in range(first, high + 1, step) if numbers.holds(Decimal(n))))


def _common_step(steps: tuple[Fraction, ...]) -> int:
    """The whole number whose multiples are the whole numbers that are multiples of every one of `steps`."""
    result = 1
    for step in steps:
        result = lcm(result, step.numerator)
    return result


def _signed_range(low: int | None, high: int | None, room: Room) -> Expr:
    """Whole numbers from `low` to `high`."""
    parts: list[Expr] = []
    if low is None or low < 0:
        least = 1 if high is None or high >= 0 else -high
        parts.append(seq(lit("-"), whole_numbers(least, None if low is None else -low, room.whole)))
    if high is None or high >= 0:
        parts.append(whole_numbers(max(low or 0, 0), high, room.whole))
    return alt(*parts)


__all__ = ["NumberSet", "fraction_text", "integer_text", "number_text"]
