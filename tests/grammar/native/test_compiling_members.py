"""Sets of members as the native compiler emits them: by their definition, and as the Python passes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_programs import assert_same, check_against_definition, of

from radixlm.errors import GrammarError
from radixlm.grammar.expr import (
    EMPTY,
    NEVER,
    Clause,
    Grammar,
    Member,
    Members,
    alt,
    conj,
    lit,
    opt,
    ref,
    seq,
    star,
)
from radixlm.grammar.native.library import is_built

pytestmark = pytest.mark.skipif(not is_built(), reason="the native grammar engine was not built")


def test_a_set_whose_first_member_begins_with_the_set() -> None:
    """More than the Python passes take."""
    items = (Member(seq(ref("start"), lit("!"))), Member(lit("a"), is_run=True), Member(lit("b")))
    for separator in (lit(","), EMPTY):
        for clause in (Clause(), Clause(needs=frozenset({2})), Clause(bars=frozenset({1}))):
            for is_ordered in (False, True):
                members = Members(items, separator, 1, 3, (clause,), is_ordered)
                grammar = Grammar({"start": members}, "start")
                check_against_definition(grammar, b"ab!,", 4)


@st.composite
def member_sets(draw: st.DrawFn) -> Members:
    size = draw(st.integers(1, 4))
    some = st.frozensets(st.integers(0, size - 1), max_size=2)
    lo = draw(st.integers(0, 3))
    texts = [lit("a"), lit("b"), alt(lit("bb"), lit("a")), seq(lit("c"), star(lit("a")))]
    return Members(
        items=tuple(Member(text, draw(st.booleans())) for text in texts[:size]),
        separator=draw(st.sampled_from([lit(","), EMPTY])),
        lo=lo,
        hi=draw(st.sampled_from([None, lo, lo + 1, 4])),
        clauses=tuple(draw(st.lists(st.builds(Clause, some, some), min_size=1, max_size=3))),
        is_ordered=draw(st.booleans()),
    )


@settings(max_examples=60, deadline=None)
@given(member_sets(), st.booleans())
def test_sets_of_members_mean_what_their_definition_says(
    members: Members, is_bracketed: bool
) -> None:
    expr = seq(members, lit("c")) if is_bracketed else members
    check_against_definition(Grammar({"start": expr}, "start"), b"abc,", 4)
    assert_same(Grammar({"start": expr}, "start"), most=60)


def test_members_without_any_text_are_left_out() -> None:
    items = (Member(lit("a")), Member(NEVER), Member(lit("b"), is_run=True))
    for clauses in (
        (Clause(), Clause(needs=frozenset({1}))),
        (Clause(needs=frozenset({2}), bars=frozenset({1, 0})),),
        (Clause(bars=frozenset({0})), Clause(needs=frozenset({0}), bars=frozenset({0}))),
        (Clause(needs=frozenset({1})),),
        (),
    ):
        for separator in (lit(","), NEVER, EMPTY):
            for lo, hi in ((0, None), (2, None), (1, 1), (3, 3), (2, 1), (0, 0)):
                members = Members(items, separator, lo, hi, clauses)
                check_against_definition(Grammar({"start": members}, "start"), b"ab,", 4)


def test_members_that_have_no_meaning_are_refused() -> None:
    cases = [
        Members((Member(opt(lit("a"))),), lit(",")),
        Members((Member(lit("a")),), star(lit(","))),
        Members((Member(lit("a")),), lit(","), clauses=(Clause(needs=frozenset({1})),)),
        Members((Member(lit("a")),), lit(","), clauses=(Clause(bars=frozenset({-1})),)),
    ]
    for members in cases:
        with pytest.raises(GrammarError) as caught:
            of(members)
        assert caught.value.keyword == "members"
    with pytest.raises(GrammarError, match="rule calls") as caught:
        of(conj(Members((Member(lit("a")),), lit(",")), lit("a")))
    assert caught.value.keyword == "and"
