"""Multiples as regular expressions over decimal digits.

Owns "a whole number divisible by p" and "a plain decimal that is a multiple of p/10**q", for the p that divide a small power of ten:
there divisibility is a rule on the last digits. Other steps have no short expression and are refused. Knows nothing of schemas.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import gcd

from ....errors import GrammarError
from ...expr import EMPTY, Expr, alt, lit, opt, repeat, seq
from .digits import DIGIT, NONZERO, SIGN, Room, any_whole

_MAX_TAIL_DIGITS = 4  # divisors of 10**this are a rule on the last digits


@lru_cache(maxsize=64)
def whole_multiples(step: int, room: Room) -> Expr:
    """Whole numbers divisible by `step`, which must divide a small power of ten: a rule on the last digits."""
    num_digits = next((n for n in range(_MAX_TAIL_DIGITS + 1) if 10**n % step == 0), None)
    if num_digits is None:
        raise GrammarError(
            f"multipleOf {step} without narrow bounds is not supported (divisors of {10**_MAX_TAIL_DIGITS} are)",
            keyword="multipleOf",
        )
    tails = (
        alt(*(lit(f"{n:0{num_digits}d}") for n in range(0, 10**num_digits, step)))
        if num_digits
        else EMPTY
    )
    short = alt(*(lit(str(n)) for n in range(0, 10**num_digits, step)))
    long = seq(NONZERO, repeat(DIGIT, 0, room.whole - 1), tails)
    return seq(SIGN, alt(short, long))


@lru_cache(maxsize=64)
def decimal_multiples(step: Fraction, room: Room) -> Expr:
    """Plain decimals that are multiples of p/10**q: the digits up to place q make a multiple of p, only zeros follow."""
    num_places = 0
    while (step * 10**num_places).denominator != 1:
        num_places += 1
        if num_places > room.fraction:
            raise GrammarError(
                f"multipleOf {float(step)} has too many decimal places", keyword="multipleOf"
            )
    p = (step * 10**num_places).numerator
    num_tail = next((n for n in range(_MAX_TAIL_DIGITS + 1) if 10**n % p == 0), None)
    if num_tail is None:
        raise GrammarError(
            f"multipleOf {float(step)} of a number that need not be whole is not supported",
            keyword="multipleOf",
        )
    zeros = opt(seq(lit("."), repeat(lit("0"), 1, room.fraction)))
    if num_tail == 0 and num_places == 0:
        return seq(SIGN, any_whole(room), zeros)
    # a text with fewer digits than num_places after the point stands for itself padded with zeros
    parts = [
        _multiples_with_places(p, num_places, num_tail, n, room) for n in range(num_places + 1)
    ]
    return seq(SIGN, alt(*parts))


def _multiples_with_places(p: int, num_places: int, num_tail: int, shown: int, room: Room) -> Expr:
    """Texts with `shown` <= num_places digits after the point (or more, all zeros, when shown == num_places)."""
    scale = 10 ** (num_places - shown)
    part = p // gcd(p, scale)  # the digits shown must be a multiple of this
    width = next(n for n in range(num_tail + 1) if 10**n % part == 0)
    body = _split_point(part, width, shown, room)
    if shown < num_places:
        return body
    more = repeat(lit("0"), 0, room.fraction - num_places)
    return seq(body, opt(seq(lit("."), repeat(lit("0"), 1, room.fraction))) if shown == 0 else more)


def _split_point(part: int, width: int, shown: int, room: Room) -> Expr:
    """A whole part and `shown` fraction digits that together are a multiple of `part`, which divides 10**width."""
    point = lit(".") if shown else EMPTY
    if width <= shown:
        tails = [f"{n:0{width}d}" if width else "" for n in range(0, 10**width, part)]
        return seq(
            any_whole(room),
            point,
            repeat(DIGIT, shown - width, shown - width),
            alt(*(lit(t) for t in tails)),
        )
    texts: list[Expr] = []
    for n in range(0, 10**width, part):
        digits = f"{n:0{width}d}"
        whole, fraction = digits[: width - shown], digits[width - shown :]
        texts.append(seq(lit(str(int(whole))), point, lit(fraction)))
        texts.append(
            seq(NONZERO, repeat(DIGIT, 0, room.whole - 1), lit(whole), point, lit(fraction))
        )
    return alt(*texts)
