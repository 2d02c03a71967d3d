"""Distances for a vocabulary: the program's own where every byte has a token, searched again where one has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from grammar_strategies import grammars
from hypothesis import given, settings

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_grammar
from radixlm.grammar.expr import Grammar, alt, chars, lit, plus, ref, repeat, seq
from radixlm.grammar.token_costs import NEVER, token_costs
from radixlm.grammar.vocabulary import Vocabulary

LETTERS = Vocabulary([b"a", b"b"], [])


@given(grammars())
@settings(max_examples=60, deadline=None)
def test_both_searches_agree(grammar: Grammar) -> None:
    """One more edge over a byte without a token, from an end state to itself, asks for the search over the flat arrays."""
    try:
        program = compile_grammar(grammar, LETTERS.alphabet)
    except GrammarError:
        return
    alphabet = program.alphabet.copy()
    alphabet[ord("z")] = 1
    row = {
        "edge_from": int(program.ends[0]),
        "edge_lo": ord("z"),
        "edge_hi": ord("z"),
        "edge_to": int(program.ends[0]),
    }
    place = int(np.searchsorted(program.edge_from, row["edge_from"]))
    columns = {name: np.insert(getattr(program, name), place, value) for name, value in row.items()}
    wider = replace(
        program, alphabet=alphabet, distances=np.zeros_like(program.distances), **columns
    )
    wider.check()
    assert token_costs(wider, LETTERS) == program.distances.tolist()
    assert token_costs(program, LETTERS) == program.distances.tolist()


def test_ways_over_bytes_without_a_token_are_not_counted() -> None:
    vocabulary = Vocabulary([b"a", b"bb", b"c"], [])
    cases = [
        (alt(lit("bb"), lit("aaa")), 3),
        (plus(lit("bb")), NEVER),
        (chars("bc"), 1),
        (seq(repeat(ref("x"), 50, 90), lit("a")), 101),
        (seq(repeat(lit("b"), 80, 90), lit("a")), NEVER),
    ]
    for expr, wanted in cases:
        program = compile_grammar(
            Grammar({"start": expr, "x": alt(seq(lit("b"), ref("x")), lit("ac"))}, "start"),
            vocabulary.alphabet,
        )
        assert token_costs(program, vocabulary)[program.start] == wanted
