"""What the native compiler refuses, with the keywords of the Python passes."""

from __future__ import annotations

import pytest
from native_programs import native, of, refusal

from radixlm.errors import GrammarError
from radixlm.grammar.expr import (
    Alt,
    Bytes,
    Chars,
    Erase,
    Expr,
    Grammar,
    Limits,
    Minus,
    Ref,
    Repeat,
    alt,
    chars,
    conj,
    lit,
    minus,
    ref,
    repeat,
    seq,
    star,
)
from radixlm.grammar.native.compiling import compile_body
from radixlm.grammar.native.library import is_built

pytestmark = pytest.mark.skipif(not is_built(), reason="the native grammar engine was not built")

MARK = 0xFF


def test_a_product_that_contains_itself_by_a_call_is_refused() -> None:
    call = ref("x")
    around = seq(lit("a"), call, lit("b"))
    for rule in (conj(call, lit("a")), minus(star(lit("a")), around), Erase(around, 1 << MARK)):
        for start in (call, around):
            with pytest.raises(GrammarError) as caught:
                of(start, x=rule)
            assert caught.value.keyword == "and"


def test_limits_are_named_as_by_the_python_passes() -> None:
    wide = seq(*[alt(lit("a"), star(Chars(((0x61, 0x62 + i),)))) for i in range(40)])
    cases: list[tuple[Expr, Limits, str]] = [
        (wide, Limits(expressions=20), "expressions"),
        (wide, Limits(states=30), "states"),
        (wide, Limits(transitions=30), "transitions"),
        (wide, Limits(program_bytes=300), "program_bytes"),
        (repeat(lit("ab"), 0, 1001), Limits(repeat_bound=1000), "repeat_bound"),
        (Repeat(lit("ab"), 0, 1 << 80), Limits(), "repeat_bound"),
        (Repeat(lit("ab"), 3, 2), Limits(), "repeat"),
        (Repeat(lit("ab"), -1, 2), Limits(), "repeat"),
        (conj(repeat(chars("ab"), 0, 900), star(lit("ab"))), Limits(product_states=20), "product_states"),
        (conj(repeat(lit("aab"), 0, 9), repeat(lit("a"), 0, 90)), Limits(product_states=20), "product_states"),
        (conj(ref("x"), lit("a")), Limits(), "and"),
        (Minus(lit("a"), seq(lit("b"), ref("x"))), Limits(), "and"),
        (Ref("nowhere"), Limits(), "nowhere"),
        (Bytes(0), Limits(), "unsatisfiable"),
        (Chars(()), Limits(), "unsatisfiable"),
        (Alt(()), Limits(), "unsatisfiable"),
    ]  # fmt: skip
    for expr, limits, keyword in cases:
        grammar = Grammar({"start": expr, "x": lit("a")}, "start")
        assert refusal(grammar, limits) == keyword
        with pytest.raises(GrammarError) as caught:
            native(grammar, limits)
        assert caught.value.keyword == keyword
        if keyword in ("states", "transitions", "product_states", "expressions", "program_bytes"):
            assert f"limits.{keyword}=" in caught.value.message
    with pytest.raises(GrammarError, match="256"):
        compile_body(Grammar({"s": lit("a")}, "s"), b"")
