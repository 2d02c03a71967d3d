"""The flat trie holds every token once, where its bytes lead; slices part the tokens."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.grammar.vocabulary import Trie, Vocabulary, pack_ids

tokens = st.lists(
    st.one_of(
        st.none(),
        st.binary(max_size=4),
        st.sampled_from([b"a", b"ab", b"abc", "é".encode(), b'"', b"\xa9"]),
    ),
    max_size=30,
)


def ids_at(trie: Trie, node: int) -> list[int]:
    start = int(trie.token_start[node])
    return trie.token_ids[start : start + int(trie.token_count[node])].tolist()


@given(tokens)
@settings(max_examples=150, deadline=None)
def test_every_token_stands_at_the_node_of_its_bytes(token_bytes: list[bytes | None]) -> None:
    vocabulary = Vocabulary([None, *token_bytes], [0])
    trie = vocabulary.trie
    found = {
        token_id: trie.path(node)
        for node in range(trie.num_nodes)
        for token_id in ids_at(trie, node)
    }
    assert found == {i: data for i, data in enumerate(vocabulary.token_bytes) if data}
    paths = [trie.path(node) for node in range(trie.num_nodes)]
    assert len(set(paths)) == len(paths)
    assert set(paths) == {
        data[:size] for data in found.values() for size in range(len(data) + 1)
    } | {b""}
    for node in range(trie.num_nodes):
        start, count = int(trie.child_start[node]), int(trie.child_count[node])
        assert (trie.parents[start : start + count] == node).all()
        assert sorted(set(children := trie.bytes[start : start + count].tolist())) == children


@given(tokens)
@settings(max_examples=100, deadline=None)
def test_slices_part_the_tokens_into_whole_characters_and_the_rest(
    token_bytes: list[bytes | None],
) -> None:
    vocabulary = Vocabulary(token_bytes, [])
    for part, is_inside in zip(
        vocabulary.slices,
        (
            lambda text: all(c not in '"\\' and c >= " " and c != "\x7f" for c in text),
            lambda text: text.isascii() and text.isalnum(),
        ),
        strict=True,
    ):
        bits = np.unpackbits(part.mask.view(np.uint8), bitorder="little")
        inside = set(np.flatnonzero(bits).tolist())
        assert inside.isdisjoint(part.rest.token_ids.tolist())
        assert inside | set(part.rest.token_ids.tolist()) == set(vocabulary.text_ids)
        for token_id in vocabulary.text_ids:
            text = (vocabulary.token_bytes[token_id] or b"").decode(errors="replace")
            is_text = (vocabulary.token_bytes[token_id] or b"") == text.encode()
            assert (token_id in inside) == (is_text and is_inside(text))


def test_special_empty_and_eos_tokens_are_never_text() -> None:
    vocabulary = Vocabulary([None, b"a", b"", b"b", b"ab"], [3, 0, 77, -1])
    assert vocabulary.text_ids == [1, 4]
    assert vocabulary.eos_token_ids == (0, 3)
    assert vocabulary.alphabet == bytes(int(byte in b"ab") for byte in range(256))
    assert vocabulary.single_bytes == {ord("a")}
    assert vocabulary.eos_mask.tolist() == [0b1001]


def test_a_vocabulary_without_text_is_no_accident() -> None:
    vocabulary = Vocabulary([None, b""], [0])
    assert vocabulary.trie.num_nodes == 1
    assert vocabulary.max_token_bytes == 0


def test_rows_are_packed_as_bit_i_of_word_i_by_32() -> None:
    row = pack_ids(np.array([0, 33, 69]), 70)
    assert row.dtype == np.uint32
    assert row.tolist() == [1, 2, 32]
