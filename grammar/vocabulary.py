"""The tokens of a model as bytes: alphabet, flat tries, and slices of tokens that free text takes as a whole.

Owns the token bytes of one vocabulary in the shape that trie walks need. Knows nothing of grammars, tokenizers or models. Special tokens
(None) are never text; EOS ids are special too.

A trie is flat and in level order, so that the children of a node are a run of consecutive nodes and a whole level is walked by a few
numpy operations:

    node            0   1 2 3   4 5 ...
    byte            -   a b c   b x          the byte that leads to it
    child_start     1   4 6 ..               its children are child_start .. child_start+child_count
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .program import I32, U8
from .utf8 import byte_sequences

_ASCII_TEXT = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
_NON_ASCII = ((0x80, 0xD7FF), (0xE000, 0x10FFFF))


class Trie:
    """A flat trie over some tokens of a vocabulary."""

    def __init__(self, token_ids: Sequence[int], token_bytes: Sequence[bytes]) -> None:
        """`token_bytes[i]` (not empty) belongs to `token_ids[i]`."""
        order = sorted(range(len(token_ids)), key=token_bytes.__getitem__)
        texts = [token_bytes[i] for i in order]
        ids = np.array([token_ids[i] for i in order], dtype=np.int32)
        lengths = np.array([len(text) for text in texts], dtype=np.int32)
        self.max_token_bytes = int(lengths.max(initial=0))
        self._build(np.frombuffer(b"".join(texts), dtype=np.uint8), lengths, ids)

    def _build(self, text: U8, lengths: I32, ids: I32) -> None:
        """Level by level; tokens are sorted, so those that share a node are neighbours."""
        node_bytes: list[U8] = [np.zeros(1, dtype=np.uint8)]
        parents: list[I32] = [np.zeros(1, dtype=np.int32)]
        node_of_row = np.zeros(len(ids), dtype=np.int32)
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        next_node = 1
        rows = np.arange(len(ids))
        for depth in range(self.max_token_bytes):
            rows = rows[lengths[rows] > depth]
            column = text[starts[rows] + depth]
            parent = node_of_row[rows]
            differs = np.ones(len(rows), dtype=bool)
            differs[1:] = (column[1:] != column[:-1]) | (parent[1:] != parent[:-1])
            nodes = next_node - 1 + np.cumsum(differs, dtype=np.int32)
            node_bytes.append(column[differs])
            parents.append(parent[differs])
            node_of_row[rows] = nodes
            next_node += int(differs.sum())
        self.bytes: U8 = np.concatenate(node_bytes)
        self.num_nodes = next_node
        parent_of = np.concatenate(parents)
        self.parents: I32 = parent_of
        self.child_count: I32 = np.bincount(parent_of[1:], minlength=next_node).astype(np.int32)
        self.child_start: I32 = (
            1 + np.concatenate(([0], np.cumsum(self.child_count)[:-1]))
        ).astype(np.int32)
        # The same for walks node by node, where indexing numpy arrays would cost more than the walk.
        self.scalars: tuple[bytes, list[int], list[int]] = (
            self.bytes.tobytes(),
            self.child_start.tolist(),
            self.child_count.tolist(),
        )
        by_node = np.argsort(node_of_row, kind="stable")
        self.token_ids: I32 = ids[by_node]  # grouped by node
        self.token_nodes: I32 = node_of_row[by_node]
        self.token_count: I32 = np.bincount(node_of_row, minlength=next_node).astype(np.int32)
        self.token_start: I32 = np.concatenate(([0], np.cumsum(self.token_count)[:-1])).astype(
            np.int32
        )

    def path(self, node: int) -> bytes:
        """The bytes that lead to `node`."""
        found: list[int] = []
        while node:
            found.append(int(self.bytes[node]))
            node = int(self.parents[node])
        return bytes(reversed(found))


class Slice:
    """Tokens made of whole characters out of one set, with the trie of all other tokens."""

    def __init__(self, ascii_bytes: bytes, has_non_ascii: bool, vocabulary: Vocabulary) -> None:
        self.ascii_bytes = bytes(byte for byte in ascii_bytes if vocabulary.alphabet[byte])
        # The byte ranges of each kind of non-ASCII character; all of a token's bytes are in the alphabet.
        self.sequences = tuple(byte_sequences(_NON_ASCII)) if has_non_ascii else ()
        allowed = set(ascii_bytes)
        inside: list[int] = []
        outside: list[int] = []
        for token_id in vocabulary.text_ids:
            data = vocabulary.token_bytes[token_id] or b""
            (inside if _is_inside(data, allowed, has_non_ascii) else outside).append(token_id)
        self.num_tokens = len(inside)
        self.mask = pack_ids(np.array(inside, dtype=np.int64), vocabulary.vocab_size)
        self.rest = Trie(outside, [vocabulary.token_bytes[i] or b"" for i in outside])


def _is_inside(data: bytes, allowed: set[int], has_non_ascii: bool) -> bool:
    if data.isascii():
        return allowed.issuperset(data)
    if not has_non_ascii:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return all(byte in allowed for byte in data if byte < 0x80)


def pack_ids(token_ids: np.ndarray, vocab_size: int) -> np.ndarray:
    """A mask row (uint32 words, bit i%32 of word i//32) with the bits of `token_ids` set."""
    bits = np.zeros((vocab_size + 31) // 32 * 32, dtype=np.uint8)
    bits[token_ids] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


class Vocabulary:
    """`token_bytes[i]` are the bytes of token i, None for one that is never text; EOS ids end the output."""

    def __init__(self, token_bytes: Sequence[bytes | None], eos_token_ids: Sequence[int]) -> None:
        self.vocab_size = len(token_bytes)
        self.eos_token_ids = tuple(sorted({i for i in eos_token_ids if 0 <= i < self.vocab_size}))
        ends = set(self.eos_token_ids)
        self.token_bytes: list[bytes | None] = [
            None if i in ends or not data else data for i, data in enumerate(token_bytes)
        ]
        self.text_ids = [i for i, data in enumerate(self.token_bytes) if data is not None]
        texts = [data for data in self.token_bytes if data is not None]
        spelled = set(b"".join(texts))
        self.alphabet = bytes(int(byte in spelled) for byte in range(256))
        self.single_bytes = {data[0] for data in texts if len(data) == 1}
        self.max_token_bytes = max(map(len, texts), default=0)
        self.eos_mask = pack_ids(np.array(self.eos_token_ids, dtype=np.int64), self.vocab_size)

    # Made when first used: native matching has tries of its own.

    @cached_property
    def trie(self) -> Trie:
        """All tokens that are text."""
        return Trie(self.text_ids, [self.token_bytes[i] or b"" for i in self.text_ids])

    @cached_property
    def slices(self) -> tuple[Slice, ...]:
        """Tokens that free text, and letters and digits, take as a whole."""
        return (
            Slice(_ASCII_TEXT, True, self),
            Slice(bytes(byte for byte in range(0x80) if chr(byte).isalnum()), False, self),
        )
