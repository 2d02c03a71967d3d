"""The matcher against a slow recogniser over random grammars: membership, exact masks, budgets, rollback."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from unittest.mock import patch

import pytest
from expr_oracle import Oracle
from grammar_strategies import LETTERS, grammars
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from toy_vocabulary import (
    EOS,
    SPECIAL,
    accepts,
    allowed,
    matcher_of,
    vocabulary_of,
)

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_grammar
from radixlm.grammar.expr import (
    EMPTY,
    Expr,
    Grammar,
    Repeat,
    alt,
    lit,
    opt,
    ref,
    seq,
    star,
)
from radixlm.grammar.masks import TokenMasks
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.program import GrammarProgram
from radixlm.grammar.vocabulary import Vocabulary

VOCABULARY = vocabulary_of(
    b"a", b"b", b"ab", b"ba", b"aa", b"aba", b"bbb", b"abab", b"aaaaaa", b"abba"
)
TEXTS = [bytes(text) for size in range(6) for text in product(LETTERS, repeat=size)]


def compiled(grammar: Grammar, vocabulary: Vocabulary = VOCABULARY) -> GrammarProgram | None:
    try:
        return compile_grammar(grammar, vocabulary.alphabet)
    except GrammarError as error:
        assert error.keyword == "unsatisfiable"  # noqa: PT017
        return None


def check_against_oracle(grammar: Grammar) -> None:
    """Same language on short texts; masks allow exactly what can still be completed."""
    program = compiled(grammar)
    oracle = Oracle(grammar)
    language = {text for text in TEXTS if oracle.accepts(text)}
    if program is None:
        assert language == set()
        return
    matcher = matcher_of(program, VOCABULARY)
    prefixes = {text[:size] for text in language for size in range(len(text) + 1)}
    for text in TEXTS:
        fork = matcher.fork()
        is_alive = fork.advance_bytes(text) if text else True
        assert (is_alive and fork.is_accepting) == (text in language), text
        if text in prefixes:
            assert is_alive, text
        if is_alive and len(text) <= 3:
            check_state(fork, text, oracle)


def check_state(matcher: Matcher, text: bytes, oracle: Oracle) -> None:
    """The mask agrees with bytes, every allowed token has a witness, and the distance is that of a real completion."""
    ids = allowed(matcher, VOCABULARY)
    assert (EOS in ids) == matcher.is_accepting
    assert SPECIAL not in ids
    for token_id in VOCABULARY.text_ids:
        fork = matcher.fork()
        is_alive = fork.advance(token_id)
        assert (token_id in ids) == is_alive, (text, token_id)
        if is_alive and fork.distance() < 8:
            whole = text + (VOCABULARY.token_bytes[token_id] or b"") + fork.shortest_completion()
            assert oracle.accepts(whole), (text, token_id, whole)
    assert len(matcher.shortest_completion()) == matcher.distance()


@given(grammars())
@settings(max_examples=60, deadline=None)
def test_random_grammars_accept_and_mask_exactly(grammar: Grammar) -> None:
    check_against_oracle(grammar)


@contextmanager
def everything_called_and_counted() -> Iterator[None]:
    """Tiny parts become regions and counted loops, and walks go level by level: what large grammars and vocabularies do."""
    names = (
        "analysis.SHARED_SIZE_MIN",
        "analysis.UNROLL_SIZE_MAX",
        "walking._FEW_CHILDREN",
        "walking._FEW_NODES",
    )
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(patch(f"radixlm.grammar.{name}", 0))
        yield


@given(grammars())
@settings(max_examples=80, deadline=None)
def test_the_same_with_every_shared_part_a_region_and_every_repeat_counted(
    grammar: Grammar,
) -> None:
    with everything_called_and_counted():
        check_against_oracle(grammar)


@given(grammars(), st.randoms(use_true_random=False), st.integers(0, 6))
@settings(max_examples=50, deadline=None)
def test_random_walks_within_a_budget_always_end_in_an_accepted_text(
    grammar: Grammar, rng: random.Random, slack: int
) -> None:
    program = compiled(grammar)
    assume(program is not None)
    assert program is not None
    matcher = matcher_of(program, VOCABULARY)
    assume(matcher.distance() < 12)
    budget = matcher.distance() + slack
    data = b""
    while True:
        ids = allowed(matcher, VOCABULARY, budget)
        assert ids, "a mask is never empty"
        token_id = rng.choice(sorted(ids))
        if token_id == EOS:
            break
        assert budget > 0
        assert matcher.advance(token_id)
        data += VOCABULARY.token_bytes[token_id] or b""
        budget -= 1
        assert matcher.distance() <= budget
        if rng.random() < 0.3 and matcher.is_accepting:
            break
        if budget == 0:
            assert matcher.is_accepting
            break
    assert Oracle(grammar).accepts(data)


@given(grammars(), st.integers(0, 8))
@settings(max_examples=50, deadline=None)
def test_a_budget_allows_exactly_the_tokens_that_can_be_completed_within_it(
    grammar: Grammar, extra: int
) -> None:
    with everything_called_and_counted():
        program = compiled(grammar)
    assume(program is not None)
    assert program is not None
    matcher = matcher_of(program, VOCABULARY)
    for _ in range(4):
        budget = matcher.distance() + extra
        ids = allowed(matcher, VOCABULARY, budget)
        free = allowed(matcher, VOCABULARY)
        for token_id in VOCABULARY.text_ids:
            fork = matcher.fork()
            is_wanted = fork.advance(token_id) and fork.distance() <= budget - 1
            assert (token_id in ids) == is_wanted
        if matcher.distance():
            assert allowed(matcher, VOCABULARY, matcher.distance() - 1) == free
            step = matcher.shortest_completion()[:1]
            before = matcher.distance()
            assert matcher.advance_bytes(step)
            assert matcher.distance() <= before - 1
        elif not matcher.advance_bytes(b"a"):
            return


@given(grammars(), st.lists(st.integers(0, 11), max_size=8))
@settings(max_examples=50, deadline=None)
def test_rollback_and_fork_equal_a_replay(grammar: Grammar, moves: list[int]) -> None:
    program = compiled(grammar)
    assume(program is not None)
    assert program is not None
    masks = TokenMasks(program, VOCABULARY)
    matcher, taken = Matcher(masks), []
    for move in moves:
        if move == EOS:
            matcher.rollback(2)
            taken = taken[:-2]
        elif move == SPECIAL:
            matcher = matcher.fork()
        elif matcher.advance(move):
            taken.append(move)
        else:
            assert matcher.error
            matcher.rollback(0)
        replay = Matcher(masks)
        assert all(replay.advance(token_id) for token_id in taken)
        assert replay.num_tokens == matcher.num_tokens == len(taken)
        assert (replay.is_accepting, replay.is_complete) == (
            matcher.is_accepting,
            matcher.is_complete,
        )
        assert replay.distance() == matcher.distance()
        assert replay.forced_bytes() == matcher.forced_bytes()
        assert allowed(replay, VOCABULARY) == allowed(matcher, VOCABULARY)


def test_left_recursion_in_every_form_terminates_and_is_right() -> None:
    forms: list[dict[str, Expr]] = [
        {"start": alt(seq(ref("start"), lit("a")), lit("b"))},
        {"start": alt(seq(ref("start"), ref("start")), lit("a"))},
        {
            "start": alt(seq(ref("x"), lit("a")), lit("b")),
            "x": alt(seq(ref("start"), lit("b")), lit("a")),
        },
        {"start": alt(seq(opt(lit("a")), ref("start"), lit("b")), lit("a"))},
        {"start": alt(ref("start"), lit("a"))},
        {"start": alt(ref("x"), lit("a")), "x": alt(ref("start"), lit("b"))},
        {
            "start": alt(seq(Repeat(ref("x"), 2, 70), lit("b")), lit("a")),
            "x": alt(ref("start"), lit("bb")),
        },
        {"start": star(star(alt(ref("start"), EMPTY, lit("ab"))))},
        {"start": seq(ref("x"), ref("x")), "x": alt(EMPTY, seq(ref("start"), lit("a")), lit("b"))},
    ]
    for rules in forms:
        check_against_oracle(Grammar(rules, "start"))


def test_a_grammar_that_only_calls_itself_is_unsatisfiable() -> None:
    for rules in (
        {"start": ref("start")},
        {"start": seq(lit("a"), ref("start"))},
        {"start": seq()},
    ):
        grammar = Grammar(rules, "start")
        if rules["start"] == EMPTY:
            assert accepts(
                matcher_of(compile_grammar(grammar, VOCABULARY.alphabet), VOCABULARY), b""
            )
        else:
            with pytest.raises(GrammarError, match="no output"):
                compile_grammar(grammar, VOCABULARY.alphabet)
