"""What the native compiler is given: parts that are equal, constants of the process, lists of texts, and no trace of where objects lie."""

from __future__ import annotations

import pytest
from native_programs import VOCABULARY, assert_same, native, of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_by_passes
from radixlm.grammar.expr import (
    Alt,
    Expr,
    Grammar,
    Limits,
    Ref,
    Repeat,
    Seq,
    Unlisted,
    alt,
    chars,
    constant,
    constant_call,
    lit,
    minus,
    opt,
    plus,
    ref,
    seq,
)
from radixlm.grammar.native.encoding import encode
from radixlm.grammar.native.library import is_built
from radixlm.grammar.unlisted import written_out

pytestmark = pytest.mark.skipif(not is_built(), reason="the native grammar engine was not built")


def test_equal_parts_are_built_once() -> None:
    def part() -> Expr:
        return seq(*[chars((i, i + 3)) for i in range(0x30, 0x60)])

    shared = part()
    same = of(seq(lit("<"), shared, lit(","), shared, lit(">")))
    equal = of(seq(lit("<"), part(), lit(","), part(), lit(">")))
    assert equal.to_body() == same.to_body()
    assert same.num_states < 70


def test_constants_are_used_without_looking_inside() -> None:
    digits = constant(plus(chars("0123456789")))
    number = constant(seq(digits, opt(seq(lit("."), digits)), minus(digits, lit("0"))))
    expr = Seq((lit("<"), number, lit(","), number, Seq((lit("a"), digits))))
    plain = compile_by_passes(Grammar({"start": expr}, "start"), VOCABULARY.alphabet, Limits())
    for _ in range(2):
        program = of(expr)
        assert program.distances[program.start] == plain.distances[plain.start]
        assert_same(Grammar({"start": expr}, "start"))
    copy = Seq((expr.items[0], Seq(number.items), *expr.items[2:]))
    assert of(copy).to_body() == of(expr).to_body(), "equal by content"
    with_constants = len(encode(Grammar({"start": expr}, "start")).words)
    assert with_constants < len(encode(Grammar({"start": copy}, "start")).words)


def test_constants_may_call_rules_of_their_own() -> None:
    rules: dict[str, Expr] = {
        "test: nested": alt(lit("a"), seq(lit("b"), ref("test: nested"), ref("test: end"))),
        "test: end": plus(lit("c")),
    }
    nested = constant_call(rules, "test: nested")
    assert constant_call({"test: nested": lit("x")}, "test: nested") is nested, "the first counts"
    whole = seq(lit("<"), nested, opt(seq(lit(","), nested)), lit(">"))
    grammar = Grammar({"start": whole, **rules}, "start")
    assert_same(grammar)
    renamed = {name + "!": _with_marks(body) for name, body in grammar.rules.items()}
    assert of_rules(grammar) == of_rules(Grammar(renamed, "start!"))


def _with_marks(part: Expr) -> Expr:
    """The part with an exclamation mark behind each name."""
    match part:
        case Ref(name):
            return ref(name + "!")
        case Seq(items) | Alt(items):
            return type(part)(tuple(map(_with_marks, items)))
        case Repeat(item, lo, hi):
            return Repeat(_with_marks(item), lo, hi)
        case _:
            return part


def of_rules(grammar: Grammar) -> bytes:
    return native(grammar).to_body()


def test_a_constant_that_calls_an_unknown_rule_is_refused_once() -> None:
    constant(seq(lit("a"), ref("x")))
    with pytest.raises(GrammarError, match="'x'"):
        of(lit("a"))
    assert of(lit("a")).num_states > 0


_TAIL = seq(chars("ab"), lit("!"))
_SPECIAL = lit("?b")


@pytest.mark.parametrize(
    "texts",
    [
        (b"",),
        (b"ab",),
        (b"", b"a"),
        (b"a", b"aa", b"aab", b"ab", b"b"),
        (b"aaa", b"aab", b"abaab", b"b", b"ba", b"bbbbbb"),
    ],
)
def test_unlisted_texts_are_the_tree_written_out(texts: tuple[bytes, ...]) -> None:
    expr = Unlisted(texts, 1 << ord("a") | 1 << ord("b"), _TAIL, _SPECIAL)
    grammar = Grammar({"start": seq(lit("<"), expr, lit(">"))}, "start")
    assert_same(grammar, most=300)
    written = written_out(grammar)
    assert not any(isinstance(part, Unlisted) for part in written.rules["start"].items)  # type: ignore[union-attr]
    assert of_rules(grammar) == of_rules(written)


@pytest.mark.parametrize("texts", [(), (b"b", b"a"), (b"a", b"a"), (b"a", b"")])
def test_lists_out_of_order_are_refused(texts: tuple[bytes, ...]) -> None:
    with pytest.raises(GrammarError, match="damaged"):
        of(Unlisted(texts, 3 << ord("a"), _TAIL, _SPECIAL))


def test_many_listed_texts_inside_each_other_are_a_part_each() -> None:
    texts = tuple(b"a" * n for n in range(1000))
    expr = Unlisted(texts, 3 << ord("a"), _TAIL, _SPECIAL)
    assert 1000 < of(seq(expr, lit(">"))).num_states < 5000
    with pytest.raises(GrammarError) as info:
        of(expr, Limits(expressions=2000))
    assert info.value.keyword == "expressions"
