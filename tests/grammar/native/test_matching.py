"""Native matching against the numpy half, bit for bit: the same programs, the same tokens, the same answers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from grammar_strategies import grammars, regular_exprs
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from toy_vocabulary import EOS, SPECIAL, byte_vocabulary, vocabulary_of

from radixlm.errors import GrammarError
from radixlm.grammar import frontends
from radixlm.grammar.compiler import compile_by_passes
from radixlm.grammar.expr import (
    EMPTY,
    Clause,
    Expr,
    Grammar,
    Limits,
    Member,
    Members,
    Repeat,
    alt,
    byte_set,
    chars,
    lit,
    opt,
    ref,
    repeat,
    seq,
    star,
)
from radixlm.grammar.masks import TokenMasks
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.native import library
from radixlm.grammar.native.matching import NativeMasks, NativeMatcher
from radixlm.grammar.program import GrammarProgram
from radixlm.grammar.spec import JsonSchema, Regex, Spec
from radixlm.grammar.vocabulary import Vocabulary
from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.tokenizer import load_tokenizer

pytestmark = pytest.mark.skipif(not library.is_built(), reason="the native library is not built")

AB = vocabulary_of(b"a", b"b", b"ab", b"ba", b"aa", b"aba", b"bbb", b"abab", b"aaaaaa", b"abba")
NO_SINGLE_B = vocabulary_of(b"a", b"ab", b"ba", b"bb", b"aab", b"bbbb")
TEXT = byte_vocabulary(
    b'",', b'"}', b'"]', b"abc", b"abc", "é!".encode(), "é".encode() * 3, b'{"', b'":', b"  ", b"\xc3", b"12", b"1" * 70,
)  # fmt: skip
TINY_STATES = 1  # bytes: every step trims


def compile_grammar(grammar: Grammar, alphabet: bytes) -> GrammarProgram:
    """By the Python passes, whose thresholds tests can change."""
    return compile_by_passes(grammar, alphabet, Limits())


def compile_spec(spec: Spec, alphabet: bytes) -> GrammarProgram:
    return compile_grammar(frontends.build(spec, Limits()), alphabet)


class Pair:
    """A native matcher and the numpy one, always asked the same."""

    def __init__(self, native: NativeMatcher, python: Matcher, vocabulary: Vocabulary) -> None:
        self.native, self.python, self.vocabulary = native, python, vocabulary

    def check(self, *budgets: int) -> list[int]:
        """Everything that can be asked is equal; the allowed ids."""
        native, python = self.native, self.python
        assert native.is_accepting == python.is_accepting
        assert native.is_complete == python.is_complete
        assert native.num_tokens == python.num_tokens
        assert native.distance() == python.distance()
        assert native.forced_bytes() == python.forced_bytes()
        assert native.forced_bytes(3) == python.forced_bytes(3)
        assert native.shortest_completion(50) == python.shortest_completion(50)
        assert native.error == python.error
        for budget in (None, *budgets):
            row = self.mask(budget)
        return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()

    def mask(self, budget: int | None = None) -> np.ndarray:
        size = (self.vocabulary.vocab_size + 31) // 32
        ours, theirs = np.full(size, 7, np.uint32), np.zeros(size, np.uint32)
        self.native.fill_mask(ours, budget)
        self.python.fill_mask(theirs, budget)
        assert (ours == theirs).all(), (budget, ours ^ theirs)
        return ours

    def advance(self, token_id: int) -> bool:
        done = self.python.advance(token_id)
        assert self.native.advance(token_id) == done
        assert self.native.error == self.python.error
        return done

    def rollback(self, num_tokens: int) -> None:
        self.native.rollback(num_tokens)
        self.python.rollback(num_tokens)

    def fork(self) -> Pair:
        return Pair(self.native.fork(), self.python.fork(), self.vocabulary)


def pair_of(
    program: GrammarProgram,
    vocabulary: Vocabulary,
    memo_bytes: int = 32 << 20,
    state_bytes: int = 64 << 20,
) -> Pair:
    masks = NativeMasks(program.to_body(), vocabulary, memo_bytes, state_bytes)
    return Pair(NativeMatcher(masks), Matcher(TokenMasks(program, vocabulary)), vocabulary)


def walk(pair: Pair, rng: random.Random, num_steps: int) -> None:
    """Random moves: allowed and refused tokens, rollbacks, forks, budgets."""
    for _ in range(num_steps):
        distance = pair.python.distance()
        ids = pair.check(distance, distance + 1, distance + rng.randrange(12), distance - 1)
        choice = rng.random()
        if choice < 0.1:
            pair.rollback(rng.randrange(4))
        elif choice < 0.15:
            pair = pair.fork()
        elif choice < 0.25 or not ids:
            if not pair.advance(rng.randrange(-1, pair.vocabulary.vocab_size + 1)):
                pair.check()
                pair.rollback(rng.randrange(2))
        else:
            assert pair.advance(rng.choice(ids))


@contextmanager
def everything_called_and_counted() -> Iterator[None]:
    """Tiny parts become regions and counted loops."""
    with ExitStack() as stack:
        for name in ("SHARED_SIZE_MIN", "UNROLL_SIZE_MAX"):
            stack.enter_context(patch(f"radixlm.grammar.analysis.{name}", 0))
        yield


def compiled(grammar: Grammar, vocabulary: Vocabulary) -> GrammarProgram:
    try:
        return compile_grammar(grammar, vocabulary.alphabet)
    except GrammarError:
        assume(False)
        raise


@given(
    grammars(), st.booleans(), st.sampled_from([AB, NO_SINGLE_B]), st.randoms(use_true_random=False)
)
@settings(max_examples=100, deadline=None)
def test_random_grammars_are_matched_alike(
    grammar: Grammar, is_called: bool, vocabulary: Vocabulary, rng: random.Random
) -> None:
    with everything_called_and_counted() if is_called else ExitStack():
        program = compiled(grammar, vocabulary)
    walk(pair_of(program, vocabulary), rng, 12)


@given(regular_exprs(), st.randoms(use_true_random=False))
@example(alt(byte_set(b"a"), byte_set(b"b")), random.Random(69))  # merges that took turns for ever
@settings(max_examples=40, deadline=None)
def test_nothing_is_lost_when_every_step_forgets_what_it_can(
    expr: Expr, rng: random.Random
) -> None:
    grammar = Grammar(
        {"s": seq(lit("b"), Repeat(alt(expr, seq(lit("a"), opt(ref("s")))), 1, 3))}, "s"
    )
    with everything_called_and_counted():
        program = compiled(grammar, AB)
    walk(pair_of(program, AB, memo_bytes=0, state_bytes=TINY_STATES), rng, 15)


SET_TEXTS = ("a", "b", "bb", "ab", "aba")


@st.composite
def member_sets(draw: st.DrawFn) -> Members:
    size = draw(st.integers(1, 5))
    some = st.frozensets(st.integers(0, size - 1), max_size=2)
    lo = draw(st.integers(0, 4))
    return Members(
        items=tuple(Member(lit(text), draw(st.booleans())) for text in SET_TEXTS[:size]),
        separator=draw(st.sampled_from([lit("b"), EMPTY, alt(lit("a"), lit("bb"))])),
        lo=lo,
        hi=draw(st.sampled_from([None, lo, lo + 1, 5])),
        clauses=tuple(draw(st.lists(st.builds(Clause, some, some), min_size=1, max_size=3))),
        is_ordered=draw(st.booleans()),
    )


@given(
    member_sets(),
    st.booleans(),
    st.sampled_from([AB, NO_SINGLE_B]),
    st.randoms(use_true_random=False),
)
@settings(max_examples=100, deadline=None)
def test_sets_of_members_are_matched_alike(
    members: Members, is_nested: bool, vocabulary: Vocabulary, rng: random.Random
) -> None:
    rules: dict[str, Expr] = {"s": members}
    if is_nested:  # one member holds the set itself
        inner = Member(seq(lit("ba"), opt(ref("s")), lit("ab")))
        rules = {"s": Members((*members.items, inner), members.separator, members.lo, members.hi, members.clauses, members.is_ordered)}  # fmt: skip
    program = compiled(Grammar(rules, "s"), vocabulary)
    walk(pair_of(program, vocabulary), rng, 12)


STRING = seq(
    lit('"'),
    repeat(alt(chars((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)), lit("\\n")), 0, 90),
    lit('"'),
)
KEYS = Regex('("(a|abc|12|é)[^"]{0,40}"|"[a-z]*":"[^"\\\\]*"|"[^"\\\\ab]{3,8}")*')


@pytest.mark.parametrize(
    "program",
    [
        compile_spec(Regex('"[^"\\\\]*"|[a-z]{2,60}1*'), TEXT.alphabet),
        compile_spec(Regex('"([^"]|\\\\.){3,70}"(, ?[0-9]{1,80})?'), TEXT.alphabet),
        compile_spec(KEYS, TEXT.alphabet),
        compile_spec(Regex("([^<]|<[^a])*<abc>[0-9]+"), TEXT.alphabet),
        compile_spec(Regex("((((a|aa){2,9}){2,9}){2,9}){2,9}"), TEXT.alphabet),
        compile_grammar(
            Grammar({"v": alt(STRING, seq(lit("["), opt(seq(ref("v"), star(seq(lit(","), ref("v"))))), lit("]")))}, "v"),
            TEXT.alphabet,
        ),
        compile_spec(
            JsonSchema(
                '{"type":"object","properties":{"a":{"type":"string","maxLength":60},"abc":{"type":"array","items":{"type":"integer"}}},'
                '"required":["abc"]}'
            ),
            TEXT.alphabet,
        ),
    ],
    ids=["string", "escapes", "keys", "trigger", "nested", "recursive", "schema"],
)  # fmt: skip
@pytest.mark.parametrize("limits", [(32 << 20, 64 << 20), (4000, 100_000), (0, TINY_STATES)])
def test_text_and_structure_are_matched_alike(
    program: GrammarProgram, limits: tuple[int, int]
) -> None:
    for seed in range(3):
        walk(pair_of(program, TEXT, *limits), random.Random(seed), 25)


def test_text_with_exceptions_may_go_on_behind_the_end_of_its_region() -> None:
    not_a, not_b = chars((0x20, 0x60), (0x62, 0x10FFFF)), chars((0x20, 0x61), (0x63, 0x10FFFF))
    rules: dict[str, Expr] = {
        "s": seq(lit("<"), ref("r"), lit("b"), opt(alt(ref("s"), ref("r"))), lit("c")),
        "r": alt(seq(alt(not_a, seq(lit("a"), not_b)), star(alt(not_a, lit("a")))), lit("a")),
    }
    vocabulary = byte_vocabulary(b"ab", b"abc", b"xab", b"xa", b"ab<xab", "éab".encode(), b"abx")
    with everything_called_and_counted():
        program = compile_grammar(Grammar(rules, "s"), vocabulary.alphabet)
    for seed in range(5):
        pair = pair_of(program, vocabulary)
        assert pair.native.advance_bytes(b"<") == pair.python.advance_bytes(b"<")
        walk(pair, random.Random(seed), 10)


@pytest.mark.model
@pytest.mark.parametrize(
    "schema",
    [
        '{"type":"object","properties":{"name":{"type":"string","maxLength":30},"tags":{"type":"array","items":{"enum":["a","abc","b c"]}},'
        '"date":{"type":"string","format":"date"},"n":{"type":"integer","minimum":-5,"maximum":1234}},"required":["name"]}',
        '{"additionalProperties":{"anyOf":[{"type":"number"},{"type":"object"},{"type":"string","pattern":"^[a-z]+é?$"}]}}',
        "{}",
    ],
)
def test_a_real_vocabulary_is_matched_alike(schema: str, smollm2_files: ModelFiles) -> None:
    facts = load_tokenizer(smollm2_files)
    vocabulary = Vocabulary(facts.token_bytes, facts.eos_token_ids)
    program = compile_spec(JsonSchema(schema), vocabulary.alphabet)
    shared = pair_of(program, vocabulary)
    for seed in range(3):
        rng = random.Random(seed)
        pair = shared.fork()
        for _ in range(12):
            distance = pair.python.distance()
            ids = pair.check(distance, distance + rng.randrange(30))
            assert pair.advance(rng.choice(ids))


def test_refusals_say_the_same() -> None:
    vocabulary = byte_vocabulary(b"aab", b"b" * 60)
    program = compile_spec(Regex("a*b{60,}"), vocabulary.alphabet)
    pair = pair_of(program, vocabulary)
    for token_id in (EOS, SPECIAL, -1, vocabulary.vocab_size, 1 << 70, 2 + ord("c"), 258):
        fork = pair.fork()
        assert not fork.advance(token_id) or token_id == 258
        fork.check()
        assert fork.fork().native.error == fork.python.error
        fork.advance(2 + ord("b"))
    for data in (b"aabx", b"b" * 60 + b"x", b""):
        fork = pair.fork()
        assert fork.native.advance_bytes(data) == fork.python.advance_bytes(data)
        fork.check()
    assert pair.advance(259)
    assert pair.advance(EOS)
    assert pair.native.is_complete
    assert pair.check() == [EOS]
    assert pair.native.advance_bytes(b"b") == pair.python.advance_bytes(b"b")
    pair.check()


def test_rows_of_any_kind_are_filled() -> None:
    program = compile_spec(Regex("a+"), TEXT.alphabet)
    matcher = NativeMatcher(NativeMasks(program.to_bytes(), TEXT))
    size = (TEXT.vocab_size + 31) // 32
    wanted = np.zeros(size, np.uint32)
    matcher.fill_mask(wanted)
    table = np.zeros((3, 2 * size), np.uint32)
    matcher.fill_mask(table[1, ::2])
    assert (table[1, ::2] == wanted).all()
    matcher.fill_mask(table[2, :size], np.int64(9))  # type: ignore[arg-type]
    assert (table[2, :size] == wanted).all()
    matcher.fill_mask_at(table.ctypes.data, 1 << 90)
    assert (table[0, :size] == wanted).all()
    for bad in (np.zeros(size + 1, np.uint32), np.zeros(size, np.int64)):
        with pytest.raises(ValueError, match="uint32 words"):
            matcher.fill_mask(bad)  # type: ignore[arg-type]


def test_matchers_outlive_their_masks_and_vocabulary() -> None:
    vocabulary = vocabulary_of(b"a", b"b")
    masks = NativeMasks(compile_spec(Regex("(a|b){3}"), vocabulary.alphabet).to_body(), vocabulary)
    matcher = NativeMatcher(masks)
    fork = matcher.fork()
    del masks, matcher, vocabulary
    assert fork.advance(2)
    assert fork.distance() == 2


def test_memory_stays_within_its_limits() -> None:
    program = compile_spec(Regex("([ab]{1,60}c){1,1000}"), TEXT.alphabet)
    masks = NativeMasks(program.to_body(), TEXT, 10_000, 400_000)
    matcher = NativeMatcher(masks)
    row = np.zeros((TEXT.vocab_size + 31) // 32, np.uint32)
    for step in range(3000):
        matcher.fill_mask(row, 10_000)
        assert matcher.advance_bytes(b"abb"[: 1 + step % 5 % 3] + b"c" * (step % 7 == 6))
        if step % 20 == 0 or matcher.error:
            matcher.rollback(19)
        assert masks.num_memo_bytes <= 10_000
        assert masks.num_bytes < 1_500_000


@pytest.mark.parametrize("source", ["regex", "members"])
def test_damaged_programs_are_refused_or_matched_without_harm(source: str) -> None:
    vocabulary = byte_vocabulary(b"ab", b"aab")
    if source == "regex":
        program = compile_spec(Regex("((ab|a(b|c){2,900}){1,50}d)*"), vocabulary.alphabet)
    else:
        items = tuple(Member(lit(text), text == "c") for text in ("a", "bb", "c"))
        members = Members(
            items, lit(","), 1, 4, (Clause(frozenset({0})), Clause(bars=frozenset({1})))
        )
        program = compile_grammar(Grammar({"s": members}, "s"), vocabulary.alphabet)
    body = program.to_body()
    row = np.zeros((vocabulary.vocab_size + 31) // 32, np.uint32)
    rng = random.Random(7)
    num_refused = 0
    for _ in range(1500):
        damaged = bytearray(body)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 2, 255, rng.randrange(256)))
        if rng.random() < 0.1:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            matcher = NativeMatcher(NativeMasks(bytes(damaged), vocabulary))
            for data in (b"a", b"b", b"b", b"c", b",", b"c"):
                matcher.fill_mask(row, rng.choice((None, 5)))
                matcher.advance_bytes(data)
                matcher.forced_bytes()
                matcher.shortest_completion(100)
                matcher.rollback(0)
        except GrammarError as error:
            assert "damaged" in str(error)  # noqa: PT017
            num_refused += 1
    assert num_refused > 200


def test_another_version_of_the_library_is_refused(tmp_path: object) -> None:
    with (
        patch.object(library, "ABI_VERSION", 10**6),
        pytest.raises(OSError, match="another version"),
    ):
        library.load.__wrapped__(library.PATH)
    assert not library.is_built(library.PATH.with_name("no_such.so"))
