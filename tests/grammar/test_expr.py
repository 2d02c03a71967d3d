"""Smart constructors keep the language and simplify the shape."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from expr_oracle import language
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.grammar.expr import (
    CONSTANTS,
    EMPTY,
    NEVER,
    Alt,
    Chars,
    Expr,
    Grammar,
    Lit,
    Minus,
    Repeat,
    Seq,
    alt,
    chars,
    constant,
    join,
    lit,
    minus,
    normal_ranges,
    outside_ranges,
    repeat,
    seq,
)


def test_sequences_flatten_and_join_literals() -> None:
    assert seq(lit("a"), seq(lit("b"), lit("c"))) == Lit(b"abc")
    assert seq(lit("a"), NEVER, lit("b")) == NEVER
    assert seq() == EMPTY == lit("")
    assert join([lit("a"), lit("b"), lit("c")], lit(",")) == Lit(b"a,b,c")


def test_alternatives_flatten_and_drop_repeated_objects() -> None:
    a, b = lit("a"), lit("b")
    assert alt(a, alt(b, a)) == Alt((a, b))
    assert alt(a) is a
    assert alt() == NEVER
    assert minus(a, NEVER) is a


def test_ranges_are_merged_clipped_and_free_of_surrogates() -> None:
    assert normal_ranges([(5, 9), (0, 3), (4, 4)]) == ((0, 9),)
    assert normal_ranges([(0xD000, 0xE001)]) == ((0xD000, 0xD7FF), (0xE000, 0xE001))
    assert outside_ranges([]) == ((0, 0xD7FF), (0xE000, 0x10FFFF))
    assert outside_ranges([(0, 0x10FFFF)]) == ()
    assert chars("ba", (0x61, 0x63)) == Chars(((0x61, 0x63),))
    assert chars() == NEVER


@given(st.sets(st.integers(0, 40)), st.integers(0, 3))
def test_outside_is_the_complement(codes: set[int], width: int) -> None:
    ranges = [(code, code + width) for code in codes]
    inside = {c for low, high in normal_ranges(ranges) for c in range(low, high + 1)}
    outside = {c for low, high in outside_ranges(ranges) for c in range(low, min(high, 60) + 1)}
    assert inside == {c for code in codes for c in range(code, code + width + 1)}
    assert inside | outside >= set(range(61))
    assert not inside & outside


def test_trivial_repeats_vanish() -> None:
    a = lit("a")
    assert repeat(a, 1, 1) is a
    assert repeat(a, 0, 0) == EMPTY
    assert repeat(a, 2, 1) == NEVER
    assert repeat(EMPTY, 3, None) == EMPTY


@given(*[st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 4))) for _ in range(2)])
@settings(max_examples=150, deadline=None)
def test_a_repeat_of_a_repeat_is_merged_only_where_it_is_the_same_language(
    inner: tuple[int, int | None], outer: tuple[int, int | None]
) -> None:
    item = Repeat(lit("a"), inner[0], None if inner[1] is None else max(inner))  # type: ignore[type-var]
    lo, hi = outer[0], None if outer[1] is None else max(outer)  # type: ignore[type-var]
    merged, plain = repeat(item, lo, hi), Repeat(item, lo, hi)
    left, right = (language(Grammar({"s": expr}, "s"), b"a", 18) for expr in (merged, plain))
    assert left == right


def test_merged_repeats_are_one_repeat() -> None:
    hundred = repeat(lit("a"), 0, 100)
    assert repeat(repeat(hundred, 0, 100), 0, 100) == Repeat(Lit(b"a"), 0, 1_000_000)
    assert repeat(Repeat(lit("a"), 2, 2), 1, 5) == Repeat(Repeat(Lit(b"a"), 2, 2), 1, 5), (
        "odd counts are missing"
    )


def test_expressions_are_hashable_values() -> None:
    pairs = product([seq(lit("a"), chars("b")), alt(lit("a"), lit("b"))], repeat=2)
    assert [hash(x) == hash(y) for x, y in pairs] == [True, False, False, True]
    assert isinstance(seq(lit("a"), chars("b")), Seq)


def test_expressions_are_values() -> None:
    assert Seq((Lit(b"a"),)) == Seq((Lit(b"a"),)) != Alt((Lit(b"a"),))
    assert len({Lit(b"a"), Lit(b"a"), Chars(((0, 1),))}) == 2
    with pytest.raises(AttributeError):
        Lit(b"a").data = b"b"  # pyright: ignore[reportAttributeAccessIssue]
    match Repeat(Lit(b"a"), 1, None):
        case Repeat(Lit(data), lo, hi):
            assert (data, lo, hi) == (b"a", 1, None)


@pytest.mark.parametrize(
    "wrap", [lambda e: Repeat(e, 1, 2), lambda e: Minus(e, NEVER), lambda e: Seq((e,))]
)
def test_long_chains_are_freed_without_recursion(wrap: Callable[[Expr], Expr]) -> None:
    part: Expr = lit("a")
    for _ in range(300_000):
        part = wrap(part)
    del part


def test_a_constant_keeps_its_identity() -> None:
    part = constant(Seq((Lit(b"a"), Lit(b"b"))))
    assert CONSTANTS[id(part)] is part
