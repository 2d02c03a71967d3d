"""Multiples as expressions over decimal digits.

Owns "a whole number divisible by p" and "a plain decimal that is a multiple of p/10**q". Where p divides a small power of ten that is a
rule on the last digits, else `remainders` has it. The languages say nothing of leading zeros or lengths: they are to be met with one that
does, of numbers no longer than `room_beside` leaves. Knows nothing of schemas.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from ....errors import GrammarError
from ...expr import EMPTY, Expr, alt, lit, opt, repeat, seq
from .digits import DIGIT, NONZERO, SIGN, Room, any_whole
from .remainders import Multiples, multiples_of

_MAX_TAIL_DIGITS = 4  # divisors of 10**this are a rule on the last digits ...
_MAX_TAILS = 100  # ... where these are few
_MAX_COUNTED = 16_000  # remainders x digits of one product
_LEAST_DIGITS = 15  # that must stay for numbers without near bounds


def room_beside(
    steps: Iterable[Fraction],
    room: Room,
    bounds: tuple[Decimal | None, Decimal | None],
    *,
    whole: bool,
) -> Room:
    """`room`, with fewer digits before the point where `steps` have many remainders: the two are counted together.

    GrammarError with keyword `multipleOf` where too few would be left for numbers inside `bounds`.
    """
    shared, others = (
        1,
        1,
    )  # remainders of what 2 and 5 do not divide are counted together, the rest multiplies
    for step in steps:
        p, num_places = (step.numerator, 0) if whole else places_of(step, room)
        if _tail_digits(p) is None:
            multiples = multiples_of(p, num_places, not whole)
            shared = lcm(shared, multiples.num_coprime)
            others *= -(-multiples.num_states // multiples.num_coprime)
    low, high = bounds
    wanted = room.whole
    if low is not None and high is not None:
        wanted = min(wanted, max(low.adjusted(), high.adjusted(), 0) + 1)
        if low < 0 < high:
            others *= 2  # one language for each sign
    digits = _MAX_COUNTED // (shared * others)
    if digits >= wanted:
        return room
    if digits < min(wanted, _LEAST_DIGITS):
        raise GrammarError(
            f"multipleOf leaves {shared * others} remainders to tell apart, more than {_MAX_COUNTED} with {wanted} digits",
            keyword="multipleOf",
        )
    return Room(digits, room.fraction, room.exponent)


def _tail_digits(p: int) -> int | None:
    """How many last digits decide whether a number is a multiple of p; None where that rule is long."""
    found = next((n for n in range(_MAX_TAIL_DIGITS + 1) if 10**n % p == 0), None)
    return None if found is None or 10**found // p > _MAX_TAILS else found


def _signed(multiples: Multiples) -> Expr:
    return seq(SIGN, multiples.text)


@lru_cache(maxsize=64)
def whole_multiples(step: int, room: Room) -> Expr:
    """Whole numbers divisible by `step`; GrammarError where that has too many remainders."""
    num_digits = _tail_digits(step)
    if num_digits is None:
        return _signed(multiples_of(step, 0, False))
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
    p, num_places = places_of(step, room)
    num_tail = _tail_digits(p)
    if num_tail is None:
        return _signed(multiples_of(p, num_places, True))
    zeros = opt(seq(lit("."), repeat(lit("0"), 1, room.fraction)))
    if num_tail == 0 and num_places == 0:
        return seq(SIGN, any_whole(room), zeros)
    # a text with fewer digits than num_places after the point stands for itself padded with zeros
    parts = [
        _multiples_with_places(p, num_places, num_tail, n, room) for n in range(num_places + 1)
    ]
    return seq(SIGN, alt(*parts))


def places_of(step: Fraction, room: Room) -> tuple[int, int]:
    """(p, q) such that `step` is p/10**q, with the least q."""
    num_places = 0
    while (step * 10**num_places).denominator != 1:
        num_places += 1
        if num_places > room.fraction:
            raise GrammarError(
                f"multipleOf {float(step)} has too many decimal places", keyword="multipleOf"
            )
    return (step * 10**num_places).numerator, num_places


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
