"""Texts of numbers that need not be whole.

Owns which texts the bounds, multiples and excluded values of a `NumberSet` leave, whole numbers among them or not:

    unbounded       -?(0|[1-9][0-9]*), a fraction or none, an exponent or none
    bounded         plain decimals; or one digit other than 0, an optional fraction and an exponent, compared by exponent and digits
    with multiples or excluded values      plain decimals only

All are of bounded length (`Room`). Knows nothing of schemas.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache

from ...expr import NEVER, Expr, alt, byte_set, conj, constant, lit, minus, opt, repeat, seq
from .digits import DIGIT, NONZERO, SIGN, Room, any_whole, digits_above, digits_below, whole_numbers
from .listed_numbers import digits_of, few_multiples, plain_spellings
from .multiples import decimal_multiples, room_beside
from .number_set import NumberSet

_MAX_KEPT = 256  # sets whose texts are remembered from schema to schema


@cache
def _any_fraction(room: Room) -> Expr:
    return seq(lit("."), repeat(DIGIT, 1, room.fraction))


@cache
def _any_plain(room: Room) -> Expr:
    return seq(SIGN, any_whole(room), opt(_any_fraction(room)))


@cache
def _any_number(room: Room) -> Expr:
    digits = _exponent_digits(0, room.exponent)
    if room.exponent > 99:
        digits = alt(
            repeat(DIGIT, 1, 2), whole_numbers(100, room.exponent, len(str(room.exponent)))
        )
    exponent = seq(byte_set(b"eE"), opt(byte_set(b"+-")), digits)
    return constant(seq(_any_plain(room), opt(exponent)))


@cache
def _not_whole(room: Room) -> Expr:
    zeros, digits = repeat(lit("0"), 0, room.fraction - 1), repeat(DIGIT, 0, room.fraction - 1)
    return seq(SIGN, any_whole(room), lit("."), zeros, NONZERO, digits)


@lru_cache(maxsize=_MAX_KEPT)
def number_text(numbers: NumberSet, room: Room) -> Expr:
    """Texts of all numbers of the set, whole or not."""
    bounded = numbers.low is not None or numbers.high is not None
    if not bounded and not numbers.multiples and not numbers.not_multiples and not numbers.excluded:
        return _any_number(room)
    if numbers.multiples or numbers.not_multiples or numbers.excluded:
        listed = few_multiples(numbers, room)
        if listed is not None:
            return listed
        room = _room_beside_multiples(numbers, room)
        language = _plain_range(numbers, room) if bounded else _any_plain(room)
        return _without_points(_with_multiples(language, numbers, room), numbers, room)
    return alt(_plain_range(numbers, room), _scientific_range(numbers, room))


@lru_cache(maxsize=_MAX_KEPT)
def fraction_text(numbers: NumberSet, room: Room) -> Expr:
    """Texts of the numbers of the set that are not whole."""
    bounded = numbers.low is not None or numbers.high is not None
    room = _room_beside_multiples(numbers, room)
    language = conj(_plain_range(numbers, room), _not_whole(room)) if bounded else _not_whole(room)
    return _without_points(_with_multiples(language, numbers, room), numbers, room)


def _room_beside_multiples(numbers: NumberSet, room: Room) -> Room:
    steps, bounds = (*numbers.multiples, *numbers.not_multiples), (numbers.low, numbers.high)
    return room_beside(steps, room, bounds, whole=False)


def _with_multiples(language: Expr, numbers: NumberSet, room: Room) -> Expr:
    for step in numbers.multiples:
        language = conj(language, decimal_multiples(step, room))
    for step in numbers.not_multiples:
        language = minus(language, decimal_multiples(step, room))
    return language


def _without_points(language: Expr, numbers: NumberSet, room: Room) -> Expr:
    points = [plain_spellings(value, room) for value in numbers.excluded]
    return minus(language, alt(*points)) if points else language


def _mantissa(value: Decimal) -> Decimal:
    """The value with its decimal point after the first digit."""
    digits = value.as_tuple().digits
    return Decimal((0, digits, 1 - len(digits)))


@dataclass(frozen=True, slots=True)
class _Span:
    """Magnitudes from low to high (None: no bound)."""

    low: Decimal
    low_open: bool
    high: Decimal | None
    high_open: bool

    @property
    def is_empty(self) -> bool:
        if self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))


_ZERO = Decimal(0)


def _magnitudes(numbers: NumberSet) -> list[tuple[str, _Span]]:
    """The set's bounds as spans of magnitudes, by sign. Zero is written without a sign, except among numbers that go below it."""
    spans: list[tuple[str, _Span]] = []
    if numbers.high is None or numbers.high >= 0:
        low, is_open = (
            (numbers.low, numbers.low_open)
            if numbers.low is not None and numbers.low >= 0
            else (_ZERO, False)
        )
        spans.append(("", _Span(low, is_open, numbers.high, numbers.high_open)))
    if numbers.low is None or numbers.low < 0:
        low, is_open = (
            (numbers.high.copy_negate(), numbers.high_open)
            if numbers.high is not None and numbers.high <= 0
            else (_ZERO, False)
        )
        high = None if numbers.low is None else numbers.low.copy_negate()
        spans.append(("-", _Span(low, is_open, high, numbers.low_open)))
    return [(sign, span) for sign, span in spans if not span.is_empty]


def _plain_range(numbers: NumberSet, room: Room) -> Expr:
    """Plain decimals inside the bounds."""
    return alt(*(seq(lit(sign), _plain_span(span, room)) for sign, span in _magnitudes(numbers)))


def _plain_span(span: _Span, room: Room) -> Expr:
    low_whole, low_digits = digits_of(span.low)
    at_least = _ends_above(low_digits, span.low_open, room.fraction)
    any_end = opt(_any_fraction(room))
    if span.high is None:
        rest = seq(whole_numbers(low_whole + 1, None, room.whole), any_end)
        return alt(seq(lit(str(low_whole)), at_least), rest)
    high_whole, high_digits = digits_of(span.high)
    at_most = _ends_below(high_digits, span.high_open, room.fraction)
    if low_whole == high_whole:
        return seq(lit(str(low_whole)), conj(at_least, at_most))
    return alt(
        seq(lit(str(low_whole)), at_least),
        seq(whole_numbers(low_whole + 1, high_whole - 1, room.whole), any_end),
        seq(lit(str(high_whole)), at_most),
    )


def _ends_above(digits: str, is_open: bool, room: int) -> Expr:
    """What may follow the whole part: nothing where a fraction of 0 will do, or a point and digits at or above the bound."""
    fraction = seq(lit("."), digits_above(digits, strict=is_open, room=room))
    return opt(fraction) if not digits and not is_open else fraction


def _ends_below(digits: str, is_open: bool, room: int) -> Expr:
    fraction = seq(lit("."), digits_below(digits, strict=is_open, room=room))
    if not digits and is_open:
        return NEVER
    return opt(fraction)


def _scientific_range(numbers: NumberSet, room: Room) -> Expr:
    """Numbers inside the bounds as d.ddde+x with d from 1 to 9."""
    return alt(
        *(seq(lit(sign), _scientific_span(span, room)) for sign, span in _magnitudes(numbers))
    )


def _scientific_span(span: _Span, room: Room) -> Expr:
    low = (
        (-room.exponent - 1, None) if span.low == 0 else (span.low.adjusted(), _mantissa(span.low))
    )
    if span.high is None:
        high = (room.exponent + 1, None)
    elif span.high == 0:
        return NEVER
    else:
        high = (span.high.adjusted(), _mantissa(span.high))
    parts: list[Expr] = []
    if low[1] is not None:
        top = _Span(
            low[1],
            span.low_open,
            high[1] if high[0] == low[0] else Decimal(10),
            span.high_open or high[0] != low[0],
        )
        parts.append(_mantissa_at(top, low[0], room))
    if high[1] is not None and (high[0] != low[0] or low[1] is None):
        parts.append(_mantissa_at(_Span(Decimal(1), False, high[1], span.high_open), high[0], room))
    between = _exponents(low[0] + 1, high[0] - 1, room)
    parts.append(seq(NONZERO, opt(_any_fraction(room)), between))
    return alt(*parts)


def _mantissa_at(span: _Span, exponent: int, room: Room) -> Expr:
    if span.is_empty or abs(exponent) > room.exponent:
        return NEVER
    return seq(_plain_span(span, room), _exponents(exponent, exponent, room))


def _exponents(low: int, high: int, room: Room) -> Expr:
    """An exponent from `low` to `high`: e or E, an optional plus, one-digit magnitudes also as two digits."""
    low, high = max(low, -room.exponent), min(high, room.exponent)
    parts: list[Expr] = []
    if high >= 0 and low <= high:
        parts.append(seq(opt(lit("+")), _exponent_digits(max(low, 0), high)))
    if low < 0 and low <= high:
        parts.append(seq(lit("-"), _exponent_digits(max(-high, 0), -low)))
    return seq(byte_set(b"eE"), alt(*parts)) if parts else NEVER


def _exponent_digits(low: int, high: int) -> Expr:
    if low > 9:
        return whole_numbers(low, high, len(str(high)))
    return alt(
        whole_numbers(low, high, len(str(high))), seq(lit("0"), whole_numbers(low, min(high, 9), 1))
    )
