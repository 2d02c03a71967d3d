"""Trie walks: node by node and level by level give the same, and equal taking every token's bytes."""

from __future__ import annotations

from unittest.mock import patch

from grammar_strategies import grammars
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_grammar
from radixlm.grammar.expr import Grammar
from radixlm.grammar.stepping import StateStore
from radixlm.grammar.token_costs import token_costs
from radixlm.grammar.vocabulary import Vocabulary
from radixlm.grammar.walking import TrieView

tokens = st.lists(
    st.binary(max_size=5).map(lambda data: bytes(b"ab"[byte & 1] for byte in data)),
    min_size=2,
    max_size=25,
)


@given(grammars(), tokens, st.booleans())
@settings(max_examples=100, deadline=None)
def test_a_walk_finds_exactly_the_nodes_that_stepping_reaches(
    grammar: Grammar, texts: list[bytes], is_by_level: bool
) -> None:
    vocabulary = Vocabulary([*texts, b"a", b"b"], [])
    try:
        program = compile_grammar(grammar, vocabulary.alphabet)
    except GrammarError:
        return
    store = StateStore(program, token_costs(program, vocabulary))
    few = 0 if is_by_level else 99
    with (
        patch("radixlm.grammar.walking._FEW_CHILDREN", few),
        patch("radixlm.grammar.walking._FEW_NODES", few),
    ):
        walked = TrieView(vocabulary.trie, store).walk([0], store.start)
    found = dict(zip(walked.nodes.tolist(), walked.indices.tolist(), strict=True))
    assert len(found) == walked.nodes.size, "no node twice"
    assert not walked.stopped, "a real state has no holes"
    for node in range(1, vocabulary.trie.num_nodes):
        after = store.step_bytes(store.start, vocabulary.trie.path(node))
        assert (after is not None) == (node in found)
        if after is not None:
            assert store.states[found[node]] is after
