"""What the native compiler is given: parts that are equal, parts that are permanent, and no trace of where objects lie."""

from __future__ import annotations

import pytest
from native_programs import VOCABULARY, assert_same, of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_by_passes
from radixlm.grammar.expr import (
    Expr,
    Grammar,
    Limits,
    Seq,
    chars,
    lit,
    minus,
    opt,
    plus,
    ref,
    seq,
)
from radixlm.grammar.native.encoding import permanent
from radixlm.grammar.native.library import is_built

pytestmark = pytest.mark.skipif(not is_built(), reason="the native grammar engine was not built")


def test_equal_parts_are_built_once() -> None:
    def part() -> Expr:
        return seq(*[chars((i, i + 3)) for i in range(0x30, 0x60)])

    shared = part()
    same = of(seq(lit("<"), shared, lit(","), shared, lit(">")))
    equal = of(seq(lit("<"), part(), lit(","), part(), lit(">")))
    assert equal.to_body() == same.to_body()
    assert same.num_states < 70


def test_permanent_expressions_are_used_without_looking_inside() -> None:
    digits = permanent(plus(chars("0123456789")))
    number = permanent(seq(digits, opt(seq(lit("."), digits)), minus(digits, lit("0"))))
    expr = Seq((lit("<"), number, lit(","), number, Seq((lit("a"), digits))))
    plain = compile_by_passes(Grammar({"start": expr}, "start"), VOCABULARY.alphabet, Limits())
    for _ in range(2):
        program = of(expr)
        assert program.distances[program.start] == plain.distances[plain.start]
        assert_same(Grammar({"start": expr}, "start"))
    copy = Seq((expr.items[0], Seq(number.items), *expr.items[2:]))
    assert of(copy).to_body() == of(expr).to_body(), "equal by content"


def test_a_permanent_expression_that_calls_a_rule_is_refused_once() -> None:
    permanent(seq(lit("a"), ref("x")))
    with pytest.raises(GrammarError, match="'x'"):
        of(lit("a"))
    assert of(lit("a")).num_states > 0
