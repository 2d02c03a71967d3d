"""The native compiler against the Python passes: same languages, same masks, same distances."""

from __future__ import annotations

import pytest
from grammar_strategies import grammars
from hypothesis import given, settings
from hypothesis import strategies as st
from native_programs import VOCABULARY, assert_same, native, of
from toy_vocabulary import accepts, matcher_of

from radixlm.grammar.expr import (
    Bytes,
    Erase,
    Expr,
    Grammar,
    Lit,
    alt,
    any_char,
    byte_set,
    chars,
    conj,
    lit,
    minus,
    opt,
    plus,
    ref,
    repeat,
    seq,
    star,
)
from radixlm.grammar.native.compiling import compile_body
from radixlm.grammar.native.library import is_built
from radixlm.grammar.program import GrammarProgram

pytestmark = pytest.mark.skipif(not is_built(), reason="the native grammar engine was not built")

MARK = 0xFF


@settings(max_examples=100, deadline=None)
@given(grammars(), st.integers(0, 1000))
def test_random_grammars_give_the_same_texts_masks_and_distances(
    grammar: Grammar, seed: int
) -> None:
    assert_same(grammar, seed=seed)


LEFT_RECURSIVE = {
    "direct": {"start": alt(seq(ref("start"), lit("+a")), lit("a"))},
    "twice": {"start": alt(seq(ref("start"), ref("start")), lit("a"), lit("ab"))},
    "indirect": {
        "start": alt(seq(ref("x"), lit("a")), lit("b")),
        "x": alt(seq(ref("start"), lit("b")), lit("a")),
    },
    "as a whole": {
        "start": alt(ref("x"), lit("b")),
        "x": alt(seq(ref("start"), lit("b")), seq(lit("a"), ref("x")), lit("a")),
    },
    "hidden": {"start": alt(seq(opt(lit("a")), ref("start"), lit("b")), lit("a"))},
    "only behind what may be empty": {
        "start": alt(seq(ref("x"), ref("start"), lit("a")), lit("b")),
        "x": opt(ref("start")),
    },
    "in a loop": {"start": alt(seq(repeat(ref("start"), 2, 200), lit("b")), lit("a"))},
    "in a star": {"start": alt(seq(star(ref("start")), lit("b")), lit("a"))},
    "nothing else": {"start": seq(ref("start"), lit("a"))},
    "itself": {"start": ref("start")},
    "in a circle": {"start": ref("x"), "x": ref("y"), "y": ref("x")},
    "beside a circle": {"start": alt(ref("x"), lit("a")), "x": alt(ref("x"), lit("ab"))},
}


@pytest.mark.parametrize("rules", LEFT_RECURSIVE.values(), ids=LEFT_RECURSIVE)
def test_left_recursion(rules: dict[str, Expr]) -> None:
    assert_same(Grammar(rules, "start"))


def test_products_and_erasures() -> None:
    word = star(chars("abc"))
    mark = byte_set([MARK])
    cases: list[Expr] = [
        conj(word, repeat(chars("bcd"), 2, 300)),
        minus(word, alt(lit("a"), seq(star(chars("abc")), lit("c")))),
        minus(minus(word, lit("a")), lit("b")),
        seq(lit("<"), repeat(minus(word, lit("ab")), 2, 2), lit(">")),
        Erase(seq(lit("a"), mark, lit("b"), star(mark)), 1 << MARK),
        Erase(conj(seq(star(chars("ab", (0xFF, 0xFF))), mark), star(alt(lit("a"), mark))), 1 << MARK),
        Erase(Erase(seq(byte_set([MARK, 0xFE]), byte_set([0xFE]), lit("ab")), 1 << MARK), 1 << 0xFE),
        conj(star(alt(lit("aé"), lit("b"))), seq(any_char(), any_char())),
        minus(repeat(any_char(), 0, 4), seq(star(any_char()), lit("a"), star(any_char()))),
        conj(lit("a"), lit("b")),
        conj(star(lit("a")), star(lit("b"))),
    ]  # fmt: skip
    for expr in cases:
        assert_same(Grammar({"start": expr}, "start"))
        assert_same(Grammar({"start": seq(opt(expr), lit("b"), star(seq(expr, lit(",")))) }, "start"))  # fmt: skip


def test_products_have_no_equal_states() -> None:
    """Everything over a and b whose fourth letter from the end is an a, and that minus nothing: 16 states, not more."""
    letters = chars("ab")
    expr = seq(star(letters), lit("a"), letters, letters, letters)
    once = of(conj(expr, star(letters))).num_states
    assert of(conj(expr, minus(star(letters), lit("c")))).num_states == once <= 16 + 3
    assert (
        of(conj(alt(*[seq(chars("ab"), lit(t)) for t in ("aaa", "baa")]), star(letters))).num_states
        <= 8
    )


@pytest.mark.parametrize(
    ("lo", "hi"), [(0, 1_000_000), (1_000_000, 1_000_000), (70, None), (3, 90)]
)
def test_counted_repeats(lo: int, hi: int | None) -> None:
    for item in (lit("ab"), alt(lit("a"), lit("ab")), opt(lit("ab"))):
        grammar = Grammar({"start": seq(repeat(item, lo, hi), lit("b"))}, "start")
        assert_same(grammar, most=40)
        assert native(grammar).num_states < 40


def test_characters_of_all_lengths() -> None:
    for ranges in ([(0x24, 0x10FFFF)], [(0x7F, 0x80)], [(0x7FF, 0x801), (0xFFF, 0x1000)], [(0xFFFF, 0x10001)],
                   [(0xE9, 0xE9), (0x10FFFF, 0x10FFFF)], [(0xD7F0, 0xE010)]):  # fmt: skip
        assert_same(Grammar({"start": repeat(chars(*ranges), 1, 2)}, "start"), most=300)


def test_deep_and_wide_grammars() -> None:
    deep: Expr = lit("x")
    for _ in range(5_000):
        deep = seq(lit("("), opt(deep), lit(")"))
    assert accepts(matcher_of(of(deep), VOCABULARY), b"(" * 4_000 + b")" * 4_000)
    rules = {f"r{i}": seq(lit("("), opt(ref(f"r{i + 1}")), lit(")")) for i in range(5_000)}
    grammar = Grammar({"start": ref("r0"), **rules, "r5000": lit("x")}, "start")
    assert accepts(matcher_of(native(grammar), VOCABULARY), b"(" * 4_000 + b")" * 4_000)
    words = [lit(f"word {i * i}") for i in range(10_000)]
    program = of(seq(alt(*words), lit("!")))
    assert program.num_states < 40_000
    matcher = matcher_of(program, VOCABULARY)
    assert accepts(matcher, b"word 99980001!")
    assert not accepts(matcher, b"word 99980002!")


def test_alternatives_share_their_common_beginnings() -> None:
    tails = [seq(lit(f'"name{i}":'), plus(chars("ab"))) for i in range(30)]
    program = of(alt(*tails, lit('"na'), lit('"name3')))
    assert max(map(len, [program.edge_to[program.edge_from == s] for s in range(40)])) <= 12
    assert_same(Grammar({"start": alt(*tails, lit('"na'), lit('"name3'))}, "start"))


def test_bytes_outside_the_alphabet_are_not_in_a_program() -> None:
    alphabet = bytes(int(byte in b"abc") for byte in range(256))
    expr = alt(
        lit("abc"), lit("abd"), seq(lit("xa"), lit("a")), seq(lit("b"), any_char()), Bytes(0)
    )
    body = compile_body(Grammar({"start": expr}, "start"), alphabet)
    program = GrammarProgram.from_body(body)
    assert set(program.edge_lo.tolist()) | set(program.edge_hi.tolist()) <= set(b"abc")


def test_a_program_does_not_depend_on_where_objects_lie() -> None:
    def build() -> Grammar:
        value = ref("value")
        body = alt(
            lit("a"),
            seq(lit("["), star(seq(value, Lit(b","))), lit("]")),
            conj(star(chars("ab")), chars("b")),
        )
        return Grammar({"value": body, "start": value}, "start")

    bodies = {native(grammar).to_body() for grammar in [build() for _ in range(20)]}
    assert len(bodies) == 1
