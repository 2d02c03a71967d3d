"""Sets of members: exactly the sequences that their rules allow, and every mask and distance along the way."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import EOS, allowed, matcher_of, vocabulary_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_grammar
from radixlm.grammar.expr import (
    EMPTY,
    NEVER,
    Clause,
    Expr,
    Grammar,
    Limits,
    Member,
    Members,
    conj,
    lit,
    ref,
    seq,
    star,
)

TEXTS = ("a", "b", "bb", "ca")
VOCABULARY = vocabulary_of(b"a", b"b", b"c", b",", b"(", b")", b",b", b"a,", b"bb,", b"a)")


def holds(members: Members, order: tuple[int, ...]) -> bool:
    """Whether the items may come in this order, by the definition."""
    if not members.lo <= len(order) <= (members.hi if members.hi is not None else len(order)):
        return False
    for item in set(order):
        if order.count(item) > 1 and not members.items[item].is_run:
            return False
    if members.is_ordered and list(order) != sorted(order):
        return False
    there = set(order)
    return any(clause.needs <= there and not clause.bars & there for clause in members.clauses)


def texts_of(members: Members, most: int) -> set[str]:
    """All texts of at most `most` members."""
    separator = "" if members.separator == EMPTY else ","
    return {
        separator.join(TEXTS[item] for item in order)
        for count in range(most + 1)
        for order in product(range(len(members.items)), repeat=count)
        if holds(members, order)
    }


@st.composite
def member_sets(draw: st.DrawFn) -> Members:
    size = draw(st.integers(1, 4))
    some = st.frozensets(st.integers(0, size - 1), max_size=2)
    lo = draw(st.integers(0, 3))
    return Members(
        items=tuple(Member(lit(text), draw(st.booleans())) for text in TEXTS[:size]),
        separator=draw(st.sampled_from([lit(","), EMPTY])),
        lo=lo,
        hi=draw(st.sampled_from([None, lo, lo + 1, 4])),
        clauses=tuple(draw(st.lists(st.builds(Clause, some, some), min_size=1, max_size=3))),
        is_ordered=draw(st.booleans()),
    )


@settings(max_examples=200, deadline=None)
@given(member_sets())
def test_texts_masks_and_distances_are_those_of_the_definition(members: Members) -> None:
    wanted = {f"({text})" for text in texts_of(members, 5)}
    expr = seq(lit("("), members, lit(")"))
    if not wanted:
        with pytest.raises(GrammarError):
            compile_grammar(Grammar({"start": expr}, "start"), VOCABULARY.alphabet)
        return
    program = compile_grammar(Grammar({"start": expr}, "start"), VOCABULARY.alphabet)
    start = matcher_of(program, VOCABULARY)
    longest = 12
    lengths: dict[str, int] = {}  # by beginning, of the shortest text with it
    for text in wanted:
        for end in range(len(text) + 1):
            lengths[text[:end]] = min(len(text), lengths.get(text[:end], len(text)))
    reached = {""}
    work = [""]
    for text in work:
        matcher = start.fork()
        assert matcher.advance_bytes(text.encode()) or not text
        assert matcher.is_accepting == (text in wanted)
        assert matcher.distance() <= lengths[text] - len(text)
        mask = allowed(matcher, VOCABULARY)
        assert (EOS in mask) == (text in wanted)
        for token, data in enumerate(VOCABULARY.token_bytes):
            if data is None:
                continue
            after = text + data.decode()
            if len(after) > longest:
                continue
            is_start = after in lengths
            assert (token in mask) == is_start or not _is_decided(members, after), after
            if is_start and after not in reached:
                reached.add(after)
                work.append(after)


def _is_decided(members: Members, text: str) -> bool:
    """Whether five members are enough to know if `text` is a beginning: runs go on for ever."""
    return len(text) < 5


def compiled(expr: Expr, **rules: Expr) -> object:
    return compile_grammar(Grammar({"start": expr, **rules}, "start"), VOCABULARY.alphabet)


def test_a_member_may_hold_the_set_itself() -> None:
    inner = seq(lit("("), ref("set"), lit(")"))
    members = Members((Member(lit("a")), Member(inner)), lit(","), clauses=(Clause(),))
    program = compile_grammar(
        Grammar({"start": seq(lit("("), ref("set"), lit(")")), "set": members}, "start"),
        VOCABULARY.alphabet,
    )
    for text, is_right in (
        ("()", True),
        ("(a)", True),
        ("((a,()),a)", True),
        ("(a,((),a))", True),
        ("(a,a)", False),
        ("((),())", False),
        ("((a,()),b)", False),
    ):
        matcher = matcher_of(program, VOCABULARY)
        assert (matcher.advance_bytes(text.encode()) and matcher.is_accepting) == is_right, text


def test_a_member_that_no_text_satisfies_is_left_out() -> None:
    items = (Member(lit("a")), Member(seq(lit("b"), NEVER)), Member(lit("x")))  # no token spells x
    optional = Members(items, lit(","))
    matcher = matcher_of(
        compile_grammar(Grammar({"s": optional}, "s"), VOCABULARY.alphabet), VOCABULARY
    )
    assert matcher.advance_bytes(b"a")
    assert matcher.is_complete
    needed = Members(items, lit(","), clauses=(Clause(frozenset({1})),))
    with pytest.raises(GrammarError):
        compiled(needed)


@pytest.mark.parametrize(
    ("expr", "keyword"),
    [
        (Members((Member(star(lit("a"))),), lit(",")), "members"),
        (Members((Member(lit("a")),), star(lit(","))), "members"),
        (Members((Member(lit("a")),), lit(","), clauses=(Clause(frozenset({1})),)), "members"),
        (Members((Member(lit("a"), True),), lit(","), 0, 1 << 40), "repeat_bound"),
        (conj(Members((Member(lit("a")),), lit(",")), lit("a")), "and"),
    ],
)
def test_a_set_without_meaning_is_refused(expr: Expr, keyword: str) -> None:
    with pytest.raises(GrammarError) as caught:
        compile_grammar(Grammar({"s": expr}, "s"), VOCABULARY.alphabet, Limits())
    assert caught.value.keyword == keyword


def test_forty_members_in_any_order_need_few_states() -> None:
    items = tuple(Member(lit(f"{'ab'[i % 2]}{'a' * (i // 2)}")) for i in range(40))
    every = Clause(frozenset(range(40)))
    expr = Members(items, lit(","), clauses=(every,))
    program = compile_grammar(Grammar({"s": expr}, "s"), VOCABULARY.alphabet)
    matcher = matcher_of(program, VOCABULARY)
    total = sum(1 + i // 2 for i in range(40)) + 39
    assert matcher.distance() == total
    for i in reversed(range(40)):
        assert matcher.advance_bytes(f"{'ab'[i % 2]}{'a' * (i // 2)}{',' if i else ''}".encode())
        assert not i or not matcher.fork().advance_bytes(f"{'ab'[i % 2]}{'a' * (i // 2)},".encode())
    assert matcher.is_complete
