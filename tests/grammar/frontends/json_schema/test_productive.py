"""Rules without a text leave a grammar."""

from __future__ import annotations

import pytest
from slow_recogniser import slow_accepts

from radixlm.errors import GrammarError
from radixlm.grammar.expr import (
    EMPTY,
    NEVER,
    Clause,
    Expr,
    Grammar,
    Member,
    Members,
    alt,
    lit,
    opt,
    ref,
    seq,
)
from radixlm.grammar.frontends.json_schema.productive import prune

COMMA = lit(",")


def pruned(**rules: Expr) -> Grammar:
    return prune(Grammar({**rules, "dead": seq(lit("x"), ref("dead"))}, "start"))


def members(*clauses: Clause, lo: int = 0, hi: int | None = None) -> Members:
    """Of a, dead, b and a run of c."""
    items = (Member(lit("a")), Member(ref("dead")), Member(lit("b")), Member(lit("c"), True))
    return Members(items, COMMA, lo, hi, clauses or (Clause(),))


def test_a_recursion_without_an_end_is_refused() -> None:
    with pytest.raises(GrammarError, match="no value"):
        prune(Grammar({"start": seq(lit("["), ref("start"), lit("]"))}, "start"))


def test_dead_alternatives_and_options_go() -> None:
    grammar = pruned(start=seq(alt(lit("a"), ref("dead")), opt(seq(COMMA, ref("dead")))))
    assert grammar.rules == {"start": lit("a")}


def test_a_grammar_that_is_all_alive_stays_the_same_object() -> None:
    grammar = Grammar({"start": seq(lit("a"), ref("b")), "b": opt(ref("start"))}, "start")
    assert prune(grammar) is grammar


def test_a_long_chain_of_rules_whatever_its_order() -> None:
    names = [str(n) for n in range(2000)]
    chain: dict[str, Expr] = {n: seq(lit("["), ref(str(int(n) + 1))) for n in names}
    for order in (names, names[::-1]):
        rules = {"start": ref("0"), **{n: chain[n] for n in order}}
        with pytest.raises(GrammarError):
            prune(Grammar(rules, "start"))
        alive = Grammar({**rules, "2000": lit("x")}, "start")
        assert prune(alive) is alive


def test_dead_members_go_with_the_clauses_that_need_them() -> None:
    needs_dead, bars_dead = Clause(frozenset({1})), Clause(frozenset({2}), frozenset({1, 0}))
    result = pruned(start=members(needs_dead, bars_dead)).rules["start"]
    assert result == Members(
        (Member(lit("a")), Member(lit("b")), Member(lit("c"), True)),
        COMMA,
        clauses=(Clause(frozenset({1}), frozenset({0})),),
    )
    assert slow_accepts(Grammar({"start": result}, "start"), "c,b,c")


@pytest.mark.parametrize(
    "part",
    [
        members(Clause(frozenset({1}))),
        members(Clause(frozenset({0, 2})), hi=1),
        members(Clause(bars=frozenset({3})), lo=3),
        members(Clause(frozenset({1})), Clause(bars=frozenset({0, 2, 3})), lo=1),
        Members((Member(lit("a")), Member(lit("b"))), ref("dead"), lo=2),
    ],
)
def test_members_that_cannot_be_met_are_nothing(part: Members) -> None:
    grammar = pruned(start=alt(lit("x"), part))
    assert grammar.rules["start"] == lit("x")


def test_a_dead_separator_leaves_one_member() -> None:
    part = Members((Member(lit("a")), Member(lit("b"))), ref("dead"))
    result = pruned(start=part).rules["start"]
    assert isinstance(result, Members)
    assert (result.separator, result.hi) == (EMPTY, 1)
    none_left = Members((Member(ref("dead")),), COMMA)
    assert pruned(start=none_left).rules["start"] == EMPTY
    assert NEVER not in pruned(start=members()).rules.values()
