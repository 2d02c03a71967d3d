"""The matcher's behaviour, named case by named case; random grammars are in test_matcher_properties.py."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
from expr_oracle import Oracle
from toy_vocabulary import (
    EOS,
    SPECIAL,
    accepts,
    allowed,
    byte_vocabulary,
    matcher_of,
    vocabulary_of,
)

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_grammar, compile_spec
from radixlm.grammar.expr import (
    Expr,
    Grammar,
    Limits,
    Repeat,
    alt,
    any_char,
    chars,
    lit,
    opt,
    plus,
    ref,
    repeat,
    seq,
    star,
)
from radixlm.grammar.masks import TokenMasks
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.spec import Choice, Regex
from radixlm.grammar.vocabulary import Vocabulary


def of(expr: Expr, vocabulary: Vocabulary | None = None, **rules: Expr) -> Matcher:
    vocabulary = vocabulary or byte_vocabulary()
    return matcher_of(
        compile_grammar(Grammar({"start": expr, **rules}, "start"), vocabulary.alphabet), vocabulary
    )


def test_ambiguous_recursion_keeps_few_configurations() -> None:
    """Two alternatives at every level of nesting, told apart only at the end: 2^40 stacks, one shared structure."""
    matcher = of(
        alt(ref("x"), ref("y")),
        x=seq(lit("("), opt(alt(ref("x"), ref("y"))), lit(")")),
        y=seq(lit("("), opt(alt(ref("x"), ref("y"))), lit("]")),
    )
    closers = bytes(random.Random(5).choice(b")]") for _ in range(40))
    assert accepts(matcher, b"(" * 40 + closers)
    assert not accepts(matcher, b"(" * 40 + closers[1:])
    assert not accepts(matcher, b"(" * 40 + closers + b")")


def test_deep_recursion_needs_no_python_recursion() -> None:
    matcher = of(
        alt(
            seq(lit("["), opt(ref("start")), lit("]")),
            seq(lit("{"), Repeat(ref("start"), 0, 50), lit("}")),
        )
    )
    for opened, closed in ((b"[", b"]"), (b"{", b"}")):
        assert matcher.fork().advance_bytes(opened * 5000)
        assert accepts(matcher, opened * 1500 + closed * 1500)
        fork = matcher.fork()
        assert fork.advance_bytes(opened * 1500)
        assert fork.distance() == 1500
        assert allowed(fork, byte_vocabulary()) == {2 + byte for byte in b"[{" + closed}


def test_large_counted_repeats_are_counted_not_copied() -> None:
    vocabulary = byte_vocabulary(b"aaaa", b"aaaaaaaa")
    program = compile_spec(Regex('"(a|é){2,32767}"'), vocabulary.alphabet)
    assert program.num_states < 50
    matcher = matcher_of(program, vocabulary)
    quote = 2 + ord('"')
    assert matcher.distance() == 4
    assert matcher.advance_bytes(b'"a')
    assert quote not in allowed(matcher, vocabulary)
    assert matcher.advance_bytes(b"a" * 32760)
    assert {quote, 258, 2 + ord("a")} <= allowed(matcher, vocabulary)
    assert 259 not in allowed(matcher, vocabulary)
    assert matcher.advance_bytes("é".encode() * 5)
    assert allowed(matcher, vocabulary) == {quote, 2 + ord("a"), 2 + "é".encode()[0]}
    assert matcher.advance_bytes(b"a")
    assert allowed(matcher, vocabulary) == {quote}


def test_tokens_that_cross_a_counted_bound_are_told_apart_near_it_and_shared_far_from_it() -> None:
    texts = [
        b"a",
        b'"',
        *(b"a" * size + b'"' for size in range(1, 6)),
        *(b"a" * size for size in range(2, 6)),
    ]
    vocabulary = vocabulary_of(*texts)
    program = compile_spec(Regex('"a{40,60}"'), vocabulary.alphabet)
    assert program.loop_lo.tolist() == [40], "the repeat is counted"
    masks = TokenMasks(program, vocabulary)
    matcher = Matcher(masks)
    assert matcher.advance(3)
    for count in range(61):
        assert allowed(matcher, vocabulary) == {
            2 + index
            for index, text in enumerate(texts)
            if (count + text.count(b"a") >= 40 or b'"' not in text)
            and count + text.count(b"a") <= 60
        }
        assert matcher.distance() == max(40 - count, 0) + 1
        assert matcher.advance(2) == (count < 60)
    assert len(masks.store.states) < 200


def test_ambiguous_counted_repeats_are_exact() -> None:
    matcher = of(repeat(alt(lit("a"), lit("aa"), lit("aba")), 40, 100))
    assert not accepts(matcher, b"a" * 39)
    assert accepts(matcher, b"a" * 40)
    assert accepts(matcher, b"a" * 200)
    assert not accepts(matcher, b"a" * 201)
    assert accepts(matcher, b"aba" * 40)
    assert not accepts(matcher, b"aba" * 39 + b"ab")
    assert accepts(matcher, b"aba" * 100)
    assert not accepts(matcher, b"aba" * 100 + b"a")
    assert matcher.distance() == 40


def test_nested_bounded_repeats_compile_small_and_match() -> None:
    vocabulary = byte_vocabulary()
    for pattern in (
        "((a{0,100}){0,100}){0,100}",
        "((a{0,100}b?){0,100}c?){0,100}",
        "(((a|ab){3,90}){3,90}){3,90}",
    ):
        program = compile_spec(Regex(pattern), vocabulary.alphabet)
        assert program.num_states < 100
        matcher = matcher_of(program, vocabulary)
        assert accepts(matcher, b"a" * 300)
        assert not accepts(matcher, b"a" * 30 + b"x")


def test_forced_bytes_are_the_single_continuation_in_whole_code_points() -> None:
    matcher = of(seq(lit('{"né": '), alt(lit("1é}"), lit("2ê}"))))
    assert matcher.forced_bytes() == '{"né": '.encode()
    assert matcher.forced_bytes(max_bytes=4) == b'{"n'
    assert matcher.advance_bytes('{"né": 1'.encode())
    assert matcher.forced_bytes() == "é}".encode()
    assert matcher.advance_bytes("é".encode()[:1])
    assert matcher.forced_bytes() == b""
    both = of(alt(lit("é"), lit("ê")))
    assert both.forced_bytes() == b"", "only the first byte is shared"


def test_nothing_is_forced_where_the_text_may_end() -> None:
    matcher = of(seq(lit("ab"), opt(lit("cd"))))
    assert matcher.forced_bytes() == b"ab"
    assert matcher.advance_bytes(b"ab")
    assert matcher.is_accepting
    assert matcher.forced_bytes() == b""
    assert matcher.advance_bytes(b"c")
    assert matcher.forced_bytes() == b"d"


def test_eos_is_allowed_exactly_when_complete_and_alone_when_nothing_can_follow() -> None:
    vocabulary = Vocabulary([None, b"a", None, b"b", None], [0, 2, 99])
    matcher = of(seq(lit("a"), opt(lit("b"))), vocabulary)
    assert allowed(matcher, vocabulary) == {1}
    assert not matcher.fork().advance(0)
    assert matcher.advance(1)
    assert allowed(matcher, vocabulary) == {0, 2, 3}
    assert matcher.advance(3)
    assert matcher.is_complete
    assert allowed(matcher, vocabulary) == {0, 2}
    assert matcher.advance(2)
    assert matcher.is_complete
    assert allowed(matcher, vocabulary) == {0, 2}
    assert not matcher.advance(1)
    matcher.rollback(2)
    assert matcher.advance(3)


def test_a_failed_matcher_is_a_value_with_a_reason() -> None:
    matcher = of(lit("ab"))
    assert not matcher.advance(2 + ord("b"))
    assert matcher.error == "the grammar does not allow b'b' here"
    assert not matcher.advance(2 + ord("a")), "it stays failed"
    matcher.rollback(0)
    assert matcher.error is None
    for token_id, reason in (
        (SPECIAL, "special"),
        (-1, "not in the vocabulary"),
        (9999, "not in"),
        (EOS, "not complete"),
    ):
        fork = matcher.fork()
        assert not fork.advance(token_id)
        assert reason in (fork.error or "")
    assert matcher.advance(2 + ord("a"))


def test_bytes_that_no_token_spells_leave_the_alphabet_before_anything_else() -> None:
    vocabulary = vocabulary_of(b"a", b"c", b"<", b"ab")
    matcher = of(seq(plus(chars("abcz")), opt(lit("é")), star(any_char())), vocabulary)
    ids = allowed(matcher, vocabulary)
    assert ids == {2, 3, 5}
    with pytest.raises(GrammarError, match="no output"):
        of(lit("z"), vocabulary)
    forced = of(alt(lit("zz"), lit("ca")), vocabulary)
    assert forced.forced_bytes() == b"ca"


def test_without_single_byte_tokens_a_distance_promises_nothing_and_budgets_are_ignored() -> None:
    vocabulary = vocabulary_of(b"ab", b"a")
    matcher = of(plus(lit("ab")), vocabulary)
    assert matcher.distance() >= 1 << 60
    assert allowed(matcher, vocabulary, budget=1) == {2, 3}
    mixed = of(alt(lit("abab"), lit("a")), vocabulary)
    assert mixed.distance() == 1
    assert allowed(mixed, vocabulary, budget=1) == {3}


def test_masks_stay_right_over_a_vocabulary_with_split_characters() -> None:
    texts = [
        b"\xc3",
        b"\xa9",
        b"\xaa",
        "é".encode(),
        "éa".encode(),
        b"a\xc3",
        b"\xa9\xc3",
        b"\xf0\x9f",
        b"\x98\x80",
        b'"',
        b'a"',
        b"a",
    ]
    vocabulary = vocabulary_of(*texts)
    grammar = Grammar(
        {"start": seq(lit('"'), repeat(chars("aéê", (0x1F600, 0x1F600)), 1, 3), lit('"'))}, "start"
    )
    oracle = Oracle(grammar)
    matcher = matcher_of(compile_grammar(grammar, vocabulary.alphabet), vocabulary)
    whole = {
        '"' + "".join(text) + '"' for size in (1, 2, 3) for text in product("aéê😀", repeat=size)
    }
    language = {text.encode() for text in whole if set(text.encode()) <= set(b"".join(texts))}
    assert all(map(oracle.accepts, language))
    prefixes = {text[:size] for text in language for size in range(len(text) + 1)}
    for prefix in prefixes:
        fork = matcher.fork()
        assert fork.advance_bytes(prefix) if prefix else True
        expected = {2 + index for index, text in enumerate(texts) if prefix + text in prefixes}
        assert allowed(fork, vocabulary) == expected | ({EOS} if prefix in language else set())


def test_choices_match_exactly_one_option() -> None:
    vocabulary = byte_vocabulary(b"red", b"redd")
    matcher = matcher_of(
        compile_spec(Choice(("red", "redder", "", "réd", "blue")), vocabulary.alphabet), vocabulary
    )
    for text in ("red", "redder", "", "réd", "blue"):
        assert accepts(matcher, text.encode())
    for text in ("r", "redd", "redderr", "bluered"):
        assert not accepts(matcher, text.encode())
    assert {258, 259, EOS} <= allowed(matcher, vocabulary)


def test_masks_survive_the_store_forgetting_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("radixlm.grammar.stepping._MAX_STATES", 12)
    vocabulary = byte_vocabulary(b"aa", b"ab", b"b,")
    grammar = Grammar(
        {
            "start": seq(lit("["), repeat(seq(ref("item"), lit(",")), 0, 90), lit("]")),
            "item": plus(chars("ab")),
        },
        "start",
    )
    program = compile_grammar(grammar, vocabulary.alphabet)
    small, fresh = matcher_of(program, vocabulary), None
    rng = random.Random(3)
    data = b""
    for _ in range(60):
        fresh = matcher_of(program, vocabulary)
        assert fresh.advance_bytes(data) if data else True
        ids = allowed(small, vocabulary)
        assert ids == allowed(fresh, vocabulary)
        token_id = rng.choice(sorted(ids - {EOS, 2 + ord("]")}))
        assert small.advance(token_id)
        data += vocabulary.token_bytes[token_id] or b""
    small.rollback(30)
    assert small.num_tokens == 30
    assert allowed(small, vocabulary)


def test_the_mask_memo_stays_within_its_bytes() -> None:
    vocabulary = byte_vocabulary()
    program = compile_spec(Regex("(?:[a-y]{3}z){5}"), vocabulary.alphabet)
    masks = TokenMasks(program, vocabulary, memo_bytes=3000)
    matcher = Matcher(masks)
    for byte in b"abczabczabczabcz":
        assert allowed(matcher, vocabulary)
        assert matcher.advance(2 + byte)
    assert masks.num_memo_bytes <= 3000


def test_every_limit_names_itself() -> None:
    vocabulary = byte_vocabulary()
    cases: list[tuple[Limits, Expr]] = [
        (Limits(states=10), alt(*(seq(chars("ab"), lit(f"{i}x")) for i in range(20)))),
        (Limits(transitions=10), alt(*(lit(f"{i}x") for i in range(20)))),
        (Limits(expressions=5), alt(*(opt(lit(f"{i}x")) for i in range(20)))),
        (Limits(repeat_bound=10), repeat(lit("a"), 0, 11)),
        (Limits(program_bytes=100), lit("a")),
    ]
    for limits, expr in cases:
        name = next(
            n for n in Limits.__dataclass_fields__ if getattr(limits, n) != getattr(Limits(), n)
        )
        with pytest.raises(GrammarError, match=f"limits.{name}=") as caught:
            compile_grammar(Grammar({"s": expr}, "s"), vocabulary.alphabet, limits)
        assert caught.value.keyword == name


def test_a_mask_row_may_be_reused_between_calls() -> None:
    vocabulary = byte_vocabulary()
    matcher = of(lit("ab"), vocabulary)
    row = np.full((vocabulary.vocab_size + 31) // 32, 0xFFFFFFFF, dtype=np.uint32)
    matcher.fill_mask(row)
    assert np.unpackbits(row.view(np.uint8)).sum() == 1


@pytest.mark.parametrize(
    ("pattern", "tokens", "allowed"),
    [
        ("(?:é{100}|a{5})x", [b"a", "é".encode(), b"x"], {0}),
        ("x|(?:(?:(?:(?:a{1000000}b){1000000}c){1000000}d){1000000}e){1000000}", [b"x", b"a", b"b", b"c", b"d", b"e"], {0}),
    ],
)  # fmt: skip
def test_a_way_too_long_for_any_budget_is_closed_not_an_overflow(
    pattern: str, tokens: list[bytes], allowed: set[int]
) -> None:
    vocabulary = Vocabulary([*tokens, None], [len(tokens)])
    matcher = Matcher(TokenMasks(compile_spec(Regex(pattern), vocabulary.alphabet), vocabulary))
    mask = np.zeros(1, dtype=np.uint32)
    matcher.fill_mask(mask, 20)
    assert {i for i in range(len(tokens)) if int(mask[0]) >> i & 1} == allowed
