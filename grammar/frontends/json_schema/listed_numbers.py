"""Numbers that are written one by one: every plain spelling of a value, and of the few multiples that bounds leave.

Knows nothing of schemas.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from ...expr import EMPTY, Expr, alt, lit, opt, repeat, seq
from .digits import SIGN, Room
from .multiples import places_of
from .number_set import NumberSet

_MAX_LISTED = 200


def plain_spellings(value: Decimal, room: Room) -> Expr:
    """Every plain decimal spelling of one value."""
    whole, fraction = digits_of(value.copy_abs())
    sign = SIGN if value == 0 else lit("-") if value < 0 else EMPTY
    if fraction:
        tail = seq(lit("." + fraction), repeat(lit("0"), 0, room.fraction - len(fraction)))
    else:
        tail = opt(seq(lit("."), repeat(lit("0"), 1, room.fraction)))
    return seq(sign, lit(str(whole)), tail)


def digits_of(value: Decimal) -> tuple[int, str]:
    """Whole part, and fraction digits without trailing zeros, of a value >= 0."""
    whole, _, fraction = format(Decimal(value), "f").partition(
        "."
    )  # exact, where arithmetic would round to the context
    return int(whole), fraction.rstrip("0")


def few_multiples(numbers: NumberSet, room: Room) -> Expr | None:
    """The plain spellings of the numbers of the set; None where bounds and the widest step leave many, or do not say."""
    if numbers.low is None or numbers.high is None or not numbers.multiples:
        return None
    step = max(numbers.multiples)
    first, last = ceil(Fraction(numbers.low) / step), floor(Fraction(numbers.high) / step)
    if last - first >= _MAX_LISTED:
        return None
    p, num_places = places_of(step, room)
    values = (_decimal(n * p, num_places) for n in range(first, last + 1))
    return alt(*(plain_spellings(value, room) for value in values if numbers.holds(value)))


def _decimal(digits: int, num_places: int) -> Decimal:
    """`digits` / 10**`num_places`, exactly."""
    sign, text = int(digits < 0), str(abs(digits))
    return Decimal((sign, tuple(map(int, text)), -num_places))
