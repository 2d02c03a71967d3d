"""Grammars in a grammar: rules renamed, calls with them."""

from __future__ import annotations

from radixlm.grammar.expr import (
    Clause,
    Expr,
    Grammar,
    Member,
    Members,
    alt,
    conj,
    constant,
    lit,
    ref,
    repeat,
    seq,
)
from radixlm.grammar.frontends.embedding import embed


def test_calls_are_renamed_wherever_they_stand() -> None:
    item = seq(lit("["), ref("b"))
    members = Members((Member(item), Member(lit("c"), True)), ref("s"), 1, 2, (Clause(),), True)
    rules: dict[str, Expr] = {}
    start = embed(
        Grammar({"a": alt(members, repeat(ref("a"), 2, 3)), "b": lit("x"), "s": lit(",")}, "a"),
        "p:",
        rules,
    )
    assert start == ref("p:a")
    renamed = seq(lit("["), ref("p:b"))
    wanted = Members((Member(renamed), Member(lit("c"), True)), ref("p:s"), 1, 2, (Clause(),), True)
    assert rules == {
        "p:a": alt(wanted, repeat(ref("p:a"), 2, 3)),
        "p:b": lit("x"),
        "p:s": lit(","),
    }


def test_what_calls_nothing_stays_the_same_object() -> None:
    fixed = constant(seq(lit("a"), conj(lit("b"), lit("c"))))
    part = repeat(seq(fixed, lit("d")), 1, 5)
    rules: dict[str, Expr] = {}
    embed(Grammar({"a": part}, "a"), "p:", rules)
    assert rules["p:a"] is part
