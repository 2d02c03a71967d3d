"""Languages of JSON numbers: bounds, multiples, whole numbers and the others, excluded values.

Owns what number texts a set of numeric constraints leaves. Knows nothing of schemas. Every number is of bounded length:

    whole numbers        -?(0|[1-9][0-9]*), at most MAX_INTEGER_DIGITS digits; no fraction, no exponent, never -0
    unbounded decimals   the same, then at most MAX_FRACTION_DIGITS digits of a fraction, then an exponent of magnitude below 200
    bounded decimals     plain decimals; or one digit other than 0, an optional fraction and an exponent, compared by exponent and digits

A set of numbers is a disjunction of `NumberSet`s elsewhere; one set is a conjunction here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, lcm

from ...expr import EMPTY, NEVER, Expr, alt, byte_set, conj, lit, minus, opt, repeat, seq
from .digits import (
    ANY_WHOLE,
    DIGIT,
    MAX_FRACTION_DIGITS,
    MAX_INTEGER_DIGITS,
    NONZERO,
    SIGN,
    digits_above,
    digits_below,
    whole_numbers,
)
from .multiples import decimal_multiples, whole_multiples

_MAX_EXPONENT = 199
_MAX_LISTED = 1000  # whole numbers are listed one by one up to here when no digit rule says which are multiples

_EXPONENT_DIGITS = alt(repeat(DIGIT, 1, 2), seq(lit("1"), DIGIT, DIGIT))
_EXPONENT = seq(byte_set(b"eE"), opt(byte_set(b"+-")), _EXPONENT_DIGITS)
ANY_INTEGER = alt(lit("0"), seq(SIGN, NONZERO, repeat(DIGIT, 0, MAX_INTEGER_DIGITS - 1)))
_ANY_FRACTION = seq(lit("."), repeat(DIGIT, 1, MAX_FRACTION_DIGITS))
ANY_NUMBER = seq(SIGN, ANY_WHOLE, opt(_ANY_FRACTION), opt(_EXPONENT))
_PLAIN_DECIMAL = seq(SIGN, ANY_WHOLE, opt(_ANY_FRACTION))
_NOT_WHOLE = seq(
    SIGN,
    ANY_WHOLE,
    lit("."),
    repeat(lit("0"), 0, MAX_FRACTION_DIGITS - 1),
    NONZERO,
    repeat(DIGIT, 0, MAX_FRACTION_DIGITS - 1),
)


@dataclass(frozen=True, slots=True)
class NumberSet:
    """Numbers inside bounds that are multiples of all of `multiples` and of none of `not_multiples`, and are not in `excluded`."""

    low: Decimal | None = None
    high: Decimal | None = None
    low_open: bool = False  # low itself is out
    high_open: bool = False
    multiples: tuple[Fraction, ...] = ()
    not_multiples: tuple[Fraction, ...] = ()
    excluded: tuple[Decimal, ...] = ()

    def above(self, bound: Decimal, is_open: bool) -> NumberSet:
        """With the lower bound `bound` too."""
        if self.low is None or bound > self.low or (bound == self.low and is_open):
            return replace(self, low=bound, low_open=is_open)
        return self

    def below(self, bound: Decimal, is_open: bool) -> NumberSet:
        """With the upper bound `bound` too."""
        if self.high is None or bound < self.high or (bound == self.high and is_open):
            return replace(self, high=bound, high_open=is_open)
        return self

    def divided(self, step: Fraction) -> NumberSet:
        """Multiples of `step` only."""
        return self if step in self.multiples else replace(self, multiples=(*self.multiples, step))

    def undivided(self, step: Fraction) -> NumberSet:
        """Only what is not a multiple of `step`."""
        return replace(self, not_multiples=(*self.not_multiples, step))

    def without(self, value: Decimal) -> NumberSet:
        """All but `value`."""
        return replace(self, excluded=(*self.excluded, value))

    def holds(self, value: Decimal) -> bool:
        """Is `value` in the set?"""
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        if self.high is not None and (value > self.high or (self.high_open and value == self.high)):
            return False
        exact = Fraction(value)
        if any((exact / step).denominator != 1 for step in self.multiples):
            return False
        return value not in self.excluded and all(
            (exact / s).denominator != 1 for s in self.not_multiples
        )

    @property
    def is_empty(self) -> bool:
        """Do the bounds leave nothing?"""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))

    def whole_bounds(self) -> tuple[int | None, int | None]:
        """The least and greatest whole number inside the bounds."""
        low = high = None
        if self.low is not None:
            low = ceil(self.low) + (1 if self.low_open and self.low == ceil(self.low) else 0)
        if self.high is not None:
            high = floor(self.high) - (1 if self.high_open and self.high == floor(self.high) else 0)
        return low, high


# ---------------------------------------------------------------------------------------------- whole numbers


def integer_text(numbers: NumberSet) -> Expr:
    """Texts of the whole numbers of the set."""
    low, high = numbers.whole_bounds()
    if low is not None and high is not None and low > high:
        return NEVER
    step = _common_step(numbers.multiples)
    drop_steps = tuple(s.numerator for s in numbers.not_multiples)
    if 1 in drop_steps:
        return NEVER
    if step == 1 and not drop_steps and low is None and high is None:
        language = ANY_INTEGER
    else:
        listed = _listed(numbers, low, high, step)
        if listed is not None:
            return listed
        language = _signed_range(low, high)
        if step > 1:
            language = conj(language, whole_multiples(step))
        for drop in drop_steps:
            language = minus(language, whole_multiples(drop))
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


def _signed_range(low: int | None, high: int | None) -> Expr:
    """Whole numbers from `low` to `high`."""
    parts: list[Expr] = []
    if low is None or low < 0:
        least = 1 if high is None or high >= 0 else -high
        parts.append(
            seq(lit("-"), whole_numbers(least, None if low is None else -low, MAX_INTEGER_DIGITS))
        )
    if high is None or high >= 0:
        parts.append(whole_numbers(max(low or 0, 0), high, MAX_INTEGER_DIGITS))
    return alt(*parts)


# ---------------------------------------------------------------------------------------------- decimals


def number_text(numbers: NumberSet) -> Expr:
    """Texts of all numbers of the set, whole or not."""
    bounded = numbers.low is not None or numbers.high is not None
    if not bounded and not numbers.multiples and not numbers.not_multiples and not numbers.excluded:
        return ANY_NUMBER
    if numbers.multiples or numbers.not_multiples or numbers.excluded:
        language = _plain_range(numbers) if bounded else _PLAIN_DECIMAL
        return _without_points(_with_multiples(language, numbers), numbers)
    return alt(_plain_range(numbers), _scientific_range(numbers))


def fraction_text(numbers: NumberSet) -> Expr:
    """Texts of the numbers of the set that are not whole."""
    bounded = numbers.low is not None or numbers.high is not None
    language = conj(_plain_range(numbers), _NOT_WHOLE) if bounded else _NOT_WHOLE
    return _without_points(_with_multiples(language, numbers), numbers)


def _with_multiples(language: Expr, numbers: NumberSet) -> Expr:
    for step in numbers.multiples:
        language = conj(language, decimal_multiples(step))
    for step in numbers.not_multiples:
        language = minus(language, decimal_multiples(step))
    return language


def _without_points(language: Expr, numbers: NumberSet) -> Expr:
    points = [_plain_spellings(value) for value in numbers.excluded]
    return minus(language, alt(*points)) if points else language


def _plain_spellings(value: Decimal) -> Expr:
    """Every plain decimal spelling of one value."""
    whole, fraction = _digits_of(value.copy_abs())
    zeros = repeat(lit("0"), 0, MAX_FRACTION_DIGITS)
    tail = seq(lit("." + fraction), zeros) if fraction else opt(seq(lit("."), zeros))
    sign = SIGN if value == 0 else lit("-") if value < 0 else EMPTY
    return seq(sign, lit(str(whole)), tail)


def _digits_of(value: Decimal) -> tuple[int, str]:
    """Whole part, and fraction digits without trailing zeros, of a value >= 0."""
    whole, _, fraction = format(Decimal(value), "f").partition(
        "."
    )  # exact, where arithmetic would round to the context
    return int(whole), fraction.rstrip("0")


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


def _plain_range(numbers: NumberSet) -> Expr:
    """Plain decimals inside the bounds."""
    return alt(*(seq(lit(sign), _plain_span(span)) for sign, span in _magnitudes(numbers)))


def _plain_span(span: _Span) -> Expr:
    low_whole, low_digits = _digits_of(span.low)
    room = MAX_FRACTION_DIGITS
    at_least = _ends_above(low_digits, span.low_open, room)
    any_end = opt(_ANY_FRACTION)
    if span.high is None:
        rest = seq(whole_numbers(low_whole + 1, None, MAX_INTEGER_DIGITS), any_end)
        return alt(seq(lit(str(low_whole)), at_least), rest)
    high_whole, high_digits = _digits_of(span.high)
    at_most = _ends_below(high_digits, span.high_open, room)
    if low_whole == high_whole:
        return seq(lit(str(low_whole)), conj(at_least, at_most))
    return alt(
        seq(lit(str(low_whole)), at_least),
        seq(whole_numbers(low_whole + 1, high_whole - 1, MAX_INTEGER_DIGITS), any_end),
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


def _scientific_range(numbers: NumberSet) -> Expr:
    """Numbers inside the bounds as d.ddde+x with d from 1 to 9."""
    return alt(*(seq(lit(sign), _scientific_span(span)) for sign, span in _magnitudes(numbers)))


def _scientific_span(span: _Span) -> Expr:
    low = (
        (-_MAX_EXPONENT - 1, None) if span.low == 0 else (span.low.adjusted(), _mantissa(span.low))
    )
    if span.high is None:
        high = (_MAX_EXPONENT + 1, None)
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
        parts.append(_mantissa_at(top, low[0]))
    if high[1] is not None and (high[0] != low[0] or low[1] is None):
        parts.append(_mantissa_at(_Span(Decimal(1), False, high[1], span.high_open), high[0]))
    between = _exponents(low[0] + 1, high[0] - 1)
    parts.append(seq(NONZERO, opt(_ANY_FRACTION), between))
    return alt(*parts)


def _mantissa_at(span: _Span, exponent: int) -> Expr:
    if span.is_empty or abs(exponent) > _MAX_EXPONENT:
        return NEVER
    return seq(_plain_span(span), _exponents(exponent, exponent))


def _exponents(low: int, high: int) -> Expr:
    """An exponent from `low` to `high`: e or E, an optional plus, one-digit magnitudes also as two digits."""
    low, high = max(low, -_MAX_EXPONENT), min(high, _MAX_EXPONENT)
    parts: list[Expr] = []
    if high >= 0 and low <= high:
        parts.append(seq(opt(lit("+")), _exponent_digits(max(low, 0), high)))
    if low < 0 and low <= high:
        parts.append(seq(lit("-"), _exponent_digits(max(-high, 0), -low)))
    return seq(byte_set(b"eE"), alt(*parts)) if parts else NEVER


def _exponent_digits(low: int, high: int) -> Expr:
    if low > 9:
        return whole_numbers(low, high, 3)
    return alt(whole_numbers(low, high, 3), seq(lit("0"), whole_numbers(low, min(high, 9), 3)))
