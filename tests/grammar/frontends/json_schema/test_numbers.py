"""Number languages against arithmetic."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_recogniser import slow_accepts
from toy_vocabulary import accepts, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_grammar
from radixlm.grammar.expr import Expr, Grammar, Limits
from radixlm.grammar.frontends.json_schema.numbers import (
    NumberSet,
    fraction_text,
    integer_text,
    number_text,
)

_bounds = st.one_of(
    st.none(),
    st.integers(-1200, 1200).map(Decimal),
    st.decimals(-30, 30, places=2),
    st.decimals(-1, 1, places=3),
    st.sampled_from(
        [Decimal("1e3"), Decimal("-2.5e2"), Decimal("1e-3"), Decimal("9007199254740991")]
    ),
)
_sets = st.builds(NumberSet, _bounds, _bounds, st.booleans(), st.booleans())
_near = st.sampled_from(["", "0", "1", "5", "9", "00", "50", "99", "001"])


def in_language(language: Expr, text: str) -> bool:
    return slow_accepts(Grammar({"n": language}, "n"), text)


def whole_texts(numbers: NumberSet) -> set[str]:
    """Whole numbers around the bounds and around powers of ten."""
    centres = {0, 10, -10, 99, 1000, -1000}
    centres |= {int(b) for b in (numbers.low, numbers.high) if b is not None}
    return {str(c + d) for c in centres for d in (-11, -10, -2, -1, 0, 1, 2, 9, 10, 11)}


@settings(max_examples=120, deadline=None)
@given(_sets)
def test_whole_numbers_are_in_exactly_when_they_are_inside_the_bounds(numbers: NumberSet):
    language = integer_text(numbers)
    for text in whole_texts(numbers):
        assert in_language(language, text) == numbers.holds(Decimal(text)), text


@settings(max_examples=60, deadline=None)
@given(_sets, _near, _near)
def test_decimals_are_in_exactly_when_they_are_inside_the_bounds(
    numbers: NumberSet, digits: str, more: str
):
    language = number_text(numbers)
    wholes = whole_texts(numbers)
    fraction = f".{digits}{more}" if digits or more else ""
    for text in {*wholes, *(whole + fraction for whole in (*wholes, "-0"))}:
        expected = numbers.holds(Decimal(text))
        if text.startswith("-0") and Decimal(text) == 0:
            assert not in_language(language, text) or expected, text
        else:
            assert in_language(language, text) == expected, text


@settings(max_examples=150, deadline=None)
@given(_sets, st.integers(1, 9), _near, st.integers(-5, 5), st.booleans())
def test_scientific_spellings_are_in_exactly_when_they_are_inside_the_bounds(
    numbers: NumberSet, first: int, digits: str, exponent: int, is_negative: bool
):
    language = number_text(numbers)
    mantissa = f"{'-' if is_negative else ''}{first}" + (f".{digits}" if digits else "")
    for mark in (f"e{exponent}", f"E{exponent:+03d}"):
        text = mantissa + mark
        assert in_language(language, text) == numbers.holds(Decimal(text)), text


@given(st.sampled_from([1, 2, 4, 5, 10, 25, 100, 1000]), st.integers(-3000, 3000))
def test_multiples_of_divisors_of_powers_of_ten(step: int, value: int):
    language = integer_text(NumberSet().divided(Fraction(step)))
    assert in_language(language, str(value)) == (value % step == 0)


@settings(deadline=None)
@given(
    st.sampled_from(["0.01", "0.5", "0.25", "0.1", "2", "2.5", "20", "0.004"]),
    st.decimals(-300, 300, places=3),
    st.integers(0, 3),
)
def test_decimal_multiples_in_every_plain_spelling(step: str, value: Decimal, num_zeros: int):
    numbers = NumberSet().divided(Fraction(step))
    for text in {
        str(value),
        str(value) + "0" * num_zeros,
        str(int(value)),
        str(value).rstrip("0").rstrip("."),
    }:
        if text.startswith("-0") and Decimal(text) == 0:
            continue
        assert in_language(number_text(numbers), text) == numbers.holds(Decimal(text)), text


@given(st.decimals(-20, 20, places=2), st.sets(st.integers(-3, 3).map(Decimal), max_size=2))
def test_excluded_values_and_whole_numbers_are_out_of_fractions(
    value: Decimal, excluded: set[Decimal]
):
    numbers = NumberSet(excluded=tuple(excluded))
    text = str(value)
    assert in_language(fraction_text(numbers), text) == (value != int(value))
    if not text.startswith("-0.00"):
        assert in_language(number_text(numbers), text) == (value not in excluded)


@given(st.integers(-10, 10), st.integers(1, 6))
def test_numbers_that_are_no_multiples(value: int, step: int):
    numbers = NumberSet(Decimal(-10), Decimal(10)).undivided(Fraction(step))
    assert in_language(integer_text(numbers), str(value)) == (value % step != 0)


def test_bounds_are_exact_beyond_the_precision_of_decimal_contexts():
    bound = Decimal("0." + "1" * 35)
    language = number_text(NumberSet(low=bound))
    assert in_language(language, "0." + "1" * 35)
    assert not in_language(language, "0." + "1" * 34)


def test_numbers_have_bounded_length():
    assert in_language(number_text(NumberSet()), "1" * 40)
    assert not in_language(number_text(NumberSet()), "1" * 41)
    assert not in_language(number_text(NumberSet()), "0." + "1" * 41)
    assert not in_language(integer_text(NumberSet(low=Decimal(5))), "1" * 41)
    assert json.loads("9" * 40 + "." + "9" * 40 + "e199") < float("inf")


def test_limits_bound_the_length_of_numbers():
    limits = replace(
        Limits(), number_integer_digits=3, number_fraction_digits=2, number_exponent=12
    )
    free, low = NumberSet(), NumberSet(low=Decimal("1.5"))
    for language in (number_text(free, limits), number_text(low, limits)):
        for text in ("999", "2.25", "3.1e12", "3e+9"):
            assert in_language(language, text), text
        for text in ("1000", "2.125", "3e13"):
            assert not in_language(language, text), text
        assert in_language(number_text(free), "1000.125e13")
    for numbers in (free, NumberSet(low=Decimal(2))):
        assert in_language(integer_text(numbers, limits), "999")
        assert not in_language(integer_text(numbers, limits), "1000")
    halves = NumberSet(multiples=(Fraction(1, 2),))
    assert in_language(number_text(halves, limits), "100.50")
    assert not in_language(number_text(halves, limits), "100.500")
    assert in_language(fraction_text(free, limits), "100.25")
    assert not in_language(fraction_text(free, limits), "100.125")


def test_texts_of_equal_sets_are_one_object():
    assert number_text(NumberSet(low=Decimal(1))) is number_text(NumberSet(low=Decimal("1.0")))
    assert number_text(NumberSet()) is not number_text(NumberSet(), Limits(number_exponent=9))


_STEPS = [
    "3",
    "7",
    "11",
    "13",
    "0.07",
    "1.37",
    "6.75",
    "12",
    "60",
    "99",
    "0.003",
    "1024",
    "3600",
    "17.5",
    "0.3",
]


def compiled(language: Expr) -> Callable[[str], bool]:
    """Whether a text is in a language, by the compiled automaton: the recogniser would take long on these."""
    program = compile_grammar(Grammar({"n": language}, "n"), byte_vocabulary().alphabet)
    start = matcher_of(program, byte_vocabulary())
    return lambda text: accepts(start, text.encode())


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(_STEPS),
    st.sampled_from([None, "3", "7", "0.07", "0.3", "12"]),
    st.booleans(),
    st.sampled_from([None, "0", "-5", "-100.5", "0.07"]),
    st.sampled_from([None, "1000000", "1000.5", "3"]),
    st.integers(0, 1 << 20),
)
def test_multiples_of_any_step_and_numbers_that_are_none(
    step: str, other: str | None, is_multiple: bool, low: str | None, high: str | None, seed: int
):
    numbers = NumberSet(Decimal(low) if low else None, Decimal(high) if high else None)
    numbers = (numbers.divided if is_multiple else numbers.undivided)(Fraction(step))
    if other is not None:
        numbers = numbers.divided(Fraction(other))
    draw = Random(seed)
    factors = [draw.randint(-90, 90) for _ in range(9)] + [draw.randint(0, 10**8), 0]
    offsets = [Decimal(0)] * 4 + [Decimal("0.01"), Decimal(1), Decimal("-0.5")]
    values = [Decimal(step) * n + draw.choice(offsets) for n in factors]
    for make in (number_text, integer_text, fraction_text):
        try:
            is_text = compiled(make(numbers))
        except GrammarError as error:
            assert error.keyword in ("unsatisfiable", "multipleOf")  # noqa: PT017
            wanted = [value for value in values if numbers.holds(value) and _is_meant(make, value)]
            assert error.keyword == "multipleOf" or not wanted  # noqa: PT017
            continue
        for value in values:
            is_in = numbers.holds(value) and _is_meant(make, value)
            text = format(value, "f")
            if make is integer_text and value == int(value):
                text = str(int(value))
            if not text.startswith("-0") or value:
                assert is_text(text) == is_in, text
                assert is_text(text + "0") == is_in or "." not in text
            assert not is_text("0" + text)
            assert not is_text(text + ".")


def _is_meant(make: object, value: Decimal) -> bool:
    return make is number_text or (value == int(value)) == (make is integer_text)


def test_steps_with_many_remainders_are_listed_between_bounds_and_refused_without():
    step = Fraction(123456789)
    with pytest.raises(GrammarError, match="800 remainders") as caught:
        integer_text(NumberSet().divided(step))
    assert caught.value.keyword == "multipleOf"
    with pytest.raises(GrammarError, match="remainders"):
        number_text(NumberSet().divided(step))
    near = NumberSet(Decimal(0), Decimal(400_000_000)).divided(step)
    for language in (integer_text(near), number_text(near)):
        assert in_language(language, "370370367")
        assert not in_language(language, "370370368")
    assert in_language(number_text(near), "123456789.00")


def test_many_remainders_leave_fewer_digits():
    is_text = compiled(integer_text(NumberSet().divided(Fraction(797))))
    assert is_text(str(797 * 10**15))
    assert not is_text(str(797 * 10**30))
    with pytest.raises(GrammarError, match="with 40 digits"):
        integer_text(NumberSet().divided(Fraction(797)).undivided(Fraction(3)))
