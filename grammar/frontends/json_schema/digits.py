"""Decimal digit strings compared with bounds, as regular expressions.

Owns the languages "whole numbers from a to b without leading zeros" and "digits after the decimal point that are at least / at most
those of a bound", and how long numbers may be. Knows nothing of signs, schemas or JSON. A digit string is compared place by place:
equal so far, or already decided.
"""

from __future__ import annotations

from functools import cache

import msgspec

from ...expr import EMPTY, NEVER, Expr, Limits, alt, byte_set, constant, lit, opt, repeat, seq

DIGIT = constant(byte_set(b"0123456789"))
NONZERO = constant(byte_set(b"123456789"))
SIGN = opt(lit("-"))


class Room(msgspec.Struct, frozen=True, gc=False):
    """How long numbers may be: digits before the point, digits behind it, magnitude of the exponent."""

    whole: int
    fraction: int
    exponent: int


def room_of(limits: Limits) -> Room:
    """The room that `limits` leave."""
    return Room(limits.number_integer_digits, limits.number_fraction_digits, limits.number_exponent)


@cache
def any_whole(room: Room) -> Expr:
    """A whole number without a sign."""
    return alt(lit("0"), seq(NONZERO, repeat(DIGIT, 0, room.whole - 1)))


@cache
def digit_range(low: int, high: int) -> Expr:
    """One digit from `low` to `high`; nothing when that is empty."""
    return byte_set(range(0x30 + low, 0x31 + high)) if low <= high else NEVER


def whole_numbers(low: int, high: int | None, max_digits: int) -> Expr:
    """Whole numbers from `low` >= 0 to `high` (None: all of at most `max_digits` digits), in canonical spelling."""
    top = 10**max_digits - 1
    return _bounded(low, top if high is None else min(high, top))


def _bounded(low: int, high: int) -> Expr:
    if low > high:
        return NEVER
    parts: list[Expr] = []
    short, long = len(str(low)), len(str(high))
    if short == long:
        return _same_length(str(low), str(high))
    if low == 0:
        parts.append(lit("0"))
        low, short = 1, 1
        if high < 10:
            return alt(*parts, digit_range(1, high))
    if low != 10 ** (short - 1):
        parts.append(_same_length(str(low), "9" * short))
        short += 1
    if str(high) != "9" * long:
        parts.append(_same_length("1" + "0" * (long - 1), str(high)))
        long -= 1
    if short <= long:
        parts.append(seq(NONZERO, repeat(DIGIT, short - 1, long - 1)))
    return alt(*parts)


def _same_length(low: str, high: str) -> Expr:
    """Digit strings of one length, from `low` to `high`."""
    if not low:
        return EMPTY
    first, last, rest = int(low[0]), int(high[0]), len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return seq(digit_range(first, last), repeat(DIGIT, rest, rest))
    if first == last:
        return seq(digit_range(first, last), _same_length(low[1:], high[1:]))
    parts = [seq(digit_range(first, first), _same_length(low[1:], "9" * rest))]
    if first + 1 <= last - 1:
        parts.append(seq(digit_range(first + 1, last - 1), repeat(DIGIT, rest, rest)))
    parts.append(seq(digit_range(last, last), _same_length("0" * rest, high[1:])))
    return alt(*parts)


def digits_above(bound: str, *, strict: bool, room: int) -> Expr:
    """Fraction digits, at least one and at most `room`, whose value is >= `bound` (strict: >). `bound` has no trailing zeros."""
    if room <= 0:
        return NEVER
    if not bound:
        if not strict:
            return repeat(DIGIT, 1, room)
        return seq(repeat(lit("0"), 0, room - 1), NONZERO, repeat(DIGIT, 0, room - 1))
    first, rest = int(bound[0]), bound[1:]
    if rest:
        equal = seq(digit_range(first, first), digits_above(rest, strict=strict, room=room - 1))
    elif strict:
        equal = seq(digit_range(first, first), digits_above("", strict=True, room=room - 1))
    else:
        equal = seq(digit_range(first, first), repeat(DIGIT, 0, room - 1))
    return alt(equal, seq(digit_range(first + 1, 9), repeat(DIGIT, 0, room - 1)))


def digits_below(bound: str, *, strict: bool, room: int) -> Expr:
    """Fraction digits, at least one and at most `room`, whose value is <= `bound` (strict: <). `bound` has no trailing zeros."""
    if room <= 0:
        return NEVER
    if not bound:
        return NEVER if strict else repeat(lit("0"), 1, room)
    first, rest = int(bound[0]), bound[1:]
    head = digit_range(first, first)
    if rest:
        equal = seq(head, opt(digits_below(rest, strict=strict, room=room - 1)))
    elif strict:
        equal = NEVER
    else:
        equal = seq(head, repeat(lit("0"), 0, room - 1))
    return alt(equal, seq(digit_range(0, first - 1), repeat(DIGIT, 0, room - 1)))
