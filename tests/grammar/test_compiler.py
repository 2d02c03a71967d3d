"""The compile as a whole: sharing, sizes, refusals, and the cache of programs."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from toy_vocabulary import accepts, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import Limits, ProgramCache, compile_grammar, compile_spec
from radixlm.grammar.expr import (
    EMPTY,
    Bytes,
    Chars,
    Expr,
    Grammar,
    Minus,
    Ref,
    alt,
    chars,
    conj,
    lit,
    minus,
    opt,
    ref,
    repeat,
    seq,
    star,
)
from radixlm.grammar.spec import Choice, Regex

VOCABULARY = byte_vocabulary()


def compiled(expr: Expr, limits: Limits | None = None, **rules: Expr):
    return compile_grammar(Grammar({"start": expr, **rules}, "start"), VOCABULARY.alphabet, limits)


def test_a_doubling_of_shared_parts_stays_linear() -> None:
    """Thirty levels, each the one below twice: 2^30 copies of the word if parts were not shared."""
    part: Expr = chars("ab", "é")
    for _ in range(30):
        part = seq(part, part)
    program = compiled(part)
    assert program.num_states < 400
    assert matcher_of(program, VOCABULARY).distance() == 2**30


def test_a_call_shared_as_one_object_may_be_recursive() -> None:
    value = ref("value")
    rules = {"start": value, "value": alt(lit("a"), seq(lit("("), value, value, lit(")")))}
    matcher = matcher_of(compile_grammar(Grammar(rules, "start"), VOCABULARY.alphabet), VOCABULARY)
    assert accepts(matcher, b"(a(aa))")
    assert not accepts(matcher, b"(a(a))")


def test_ten_thousand_nested_parts_compile() -> None:
    part: Expr = lit("x")
    for _ in range(10_000):
        part = seq(lit("("), opt(part), lit(")"))
    assert accepts(matcher_of(compiled(part), VOCABULARY), b"(" * 9000 + b")" * 9000)


def test_rules_used_once_are_copied_in_and_right_recursion_needs_no_stack() -> None:
    program = compiled(seq(ref("x"), lit("!")), x=alt(seq(lit("a"), ref("x")), lit("b")))
    assert program.call_from.size == 1, "only the outer rule calls; x jumps to itself"
    matcher = matcher_of(program, VOCABULARY)
    assert accepts(matcher, b"a" * 3000 + b"b!")


def test_products_are_exact_and_count_inside_their_limit() -> None:
    word = star(chars("abc"))
    cases: list[tuple[Expr, list[bytes], list[bytes]]] = [
        (
            conj(word, repeat(chars("bcd"), 2, 300)),
            [b"bc", b"cb" * 150],
            [b"b", b"ab", b"bd", b"b" * 301],
        ),
        (
            minus(word, alt(lit("a"), seq(star(chars("abc")), lit("c")))),
            [b"", b"b", b"ca"],
            [b"a", b"c", b"abc"],
        ),
        (minus(minus(word, lit("a")), lit("b")), [b"", b"ab"], [b"a", b"b"]),
        (conj(minus(word, EMPTY), star(lit("ab"))), [b"ab", b"abab"], [b"", b"a"]),
        (
            seq(lit("<"), repeat(minus(word, lit("ab")), 2, 2), lit(">")),
            [b"<>", b"<ab>", b"<abc>"],
            [b"<", b"<d>"],
        ),
    ]
    for expr, good, bad in cases:
        matcher = matcher_of(compiled(expr), VOCABULARY)
        assert all(accepts(matcher, text) for text in good)
        assert not any(accepts(matcher, text) for text in bad)


def test_product_states_are_limited_by_name() -> None:
    for expr in (
        conj(repeat(chars("ab"), 0, 900), star(lit("ab"))),
        conj(repeat(lit("aab"), 0, 9), repeat(lit("a"), 0, 90)),
    ):
        with pytest.raises(GrammarError, match=r"limits\.product_states=20") as caught:
            compiled(expr, Limits(product_states=20))
        assert caught.value.keyword == "product_states"


def test_products_of_calls_are_refused() -> None:
    for expr in (conj(ref("x"), lit("a")), Minus(lit("a"), seq(lit("b"), ref("x")))):
        with pytest.raises(GrammarError, match="rule calls"):
            compiled(expr, x=lit("a"))


def test_wrong_grammars_are_refused() -> None:
    with pytest.raises(GrammarError, match="'nowhere'"):
        compiled(Ref("nowhere"))
    with pytest.raises(GrammarError, match="256"):
        compile_grammar(Grammar({"s": lit("a")}, "s"), b"")
    for nothing in (
        Bytes(0),
        Chars(()),
        alt(),
        conj(lit("a"), lit("b")),
        minus(lit("a"), lit("a")),
    ):
        with pytest.raises(GrammarError, match="no output"):
            compiled(nothing)


def test_alternatives_that_cannot_end_are_cut() -> None:
    program = compiled(
        alt(lit("yes"), seq(lit("no"), conj(lit("a"), lit("b"))), seq(lit("never"), ref("x"))),
        x=seq(lit("a"), ref("x")),
    )
    assert matcher_of(program, VOCABULARY).forced_bytes() == b"yes"


def test_specs_without_a_front_end_are_refused() -> None:
    @dataclass
    class _Holder:
        spec: object

    class Strange(msgspec.Struct, frozen=True, tag="strange"):
        text: str = ""

    with pytest.raises(GrammarError, match="'strange'"):
        compile_spec(_Holder(Strange()).spec, VOCABULARY.alphabet)  # type: ignore[arg-type]


def test_the_cache_drops_what_was_used_longest_ago() -> None:
    program = compile_spec(Regex("a"), VOCABULARY.alphabet)
    cache = ProgramCache(max_bytes=2 * program.num_bytes)
    for key in ("x", "y"):
        cache.put(key, program)
    assert cache.get("x") is program
    cache.put("z", program)
    assert (cache.get("x"), cache.get("y"), cache.get("z")) == (program, None, program)
    assert len(cache) == 2
    assert cache.num_bytes == 2 * program.num_bytes
    cache.put("z", program)
    assert cache.num_bytes == 2 * program.num_bytes
    cache.drop("z")
    cache.drop("z")
    assert cache.num_bytes == program.num_bytes
    cache.put("big", compile_spec(Choice(tuple(map(str, range(500)))), VOCABULARY.alphabet))
    assert len(cache) == 0
    assert cache.num_bytes == 0
