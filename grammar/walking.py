"""Walks of a token trie against a program's states: which tokens keep the match alive, and where they lead.

Owns the walk itself and the test whether a state takes a whole slice. Knows nothing of masks, memos or budgets. States that allow few
bytes are walked node by node; the others level by level with numpy, each (state, byte class) pair computed once for all its nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .program import I32, U8
from .stepping import DEAD, UNKNOWN, MatchState, StateStore
from .vocabulary import Slice, Trie

_FEW_BYTES = 6


@dataclass(frozen=True, slots=True)
class Walked:
    """Nodes whose bytes keep the match alive, with the table index of the state there; walks stop behind `stopped` nodes."""

    nodes: I32
    indices: I32
    stopped: dict[
        int, list[int]
    ]  # state index -> nodes with children whose state has returned into a hole


class TrieView:
    """A trie as one program sees it."""

    def __init__(self, trie: Trie, store: StateStore) -> None:
        self.trie = trie
        self._store = store
        self._node_class: U8 = store.program.class_of_byte[trie.bytes]
        self._raw_bytes = trie.bytes.tobytes()
        self._child_start: list[int] = trie.child_start.tolist()
        self._child_count: list[int] = trie.child_count.tolist()

    def walk(self, roots: list[int], state: MatchState) -> Walked:
        """All alive nodes strictly below `roots`, when `state` is the state at each of them."""
        nodes: list[int] = []
        indices: list[int] = []
        stopped: dict[int, list[int]] = {}
        wide: list[tuple[int, int]] = []
        root_index = self._store.index(state)
        work = [(root, root_index) for root in roots]
        while work:
            node, index = work.pop()
            if not self._child_count[node]:
                continue
            live = self._store.live_bytes(self._store.states[index])
            if len(live) > _FEW_BYTES:
                wide.append((node, index))
                continue
            for byte, child in self._children(node, live):
                after = self._after(index, self._store.class_of_byte[byte])
                if after == DEAD:
                    continue
                nodes.append(child)
                indices.append(after)
                if not self._store.has_holes[after]:
                    work.append((child, after))
                elif self._child_count[child]:
                    stopped.setdefault(after, []).append(child)
        found_nodes, found_indices = self._walk_levels(wide, stopped)
        return Walked(
            np.concatenate((np.array(nodes, dtype=np.int32), *found_nodes)),
            np.concatenate((np.array(indices, dtype=np.int32), *found_indices)),
            stopped,
        )

    def _children(self, node: int, live: tuple[int, ...]) -> list[tuple[int, int]]:
        start = self._child_start[node]
        end = start + self._child_count[node]
        found = [(byte, self._raw_bytes.find(byte, start, end)) for byte in live]
        return [(byte, child) for byte, child in found if child >= 0]

    def _after(self, index: int, byte_class: int) -> int:
        after = int(self._store.table[index, byte_class])
        return self._store.fill(index, byte_class) if after == UNKNOWN else after

    def _walk_levels(
        self, roots: list[tuple[int, int]], stopped: dict[int, list[int]]
    ) -> tuple[list[I32], list[I32]]:
        found_nodes: list[I32] = []
        found_indices: list[I32] = []
        frontier = np.array(roots, dtype=np.int32).reshape(-1, 2)
        nodes, indices = frontier[:, 0], frontier[:, 1]
        trie = self.trie
        while nodes.size:
            counts = trie.child_count[nodes]
            ends = np.cumsum(counts)
            if not ends[-1]:
                break
            children = np.arange(ends[-1], dtype=np.int32) + np.repeat(
                (trie.child_start[nodes] - ends + counts).astype(np.int32), counts
            )
            after = self._step_all(np.repeat(indices, counts), self._node_class[children])
            alive = after >= 0
            nodes, indices = children[alive], after[alive]
            found_nodes.append(nodes)
            found_indices.append(indices)
            holes = self._store.has_holes[indices]
            if holes.any():
                for node, index in zip(nodes[holes].tolist(), indices[holes].tolist(), strict=True):
                    if self._child_count[node]:
                        stopped.setdefault(index, []).append(node)
                nodes, indices = nodes[~holes], indices[~holes]
        return found_nodes, found_indices

    def _step_all(self, indices: I32, classes: U8) -> I32:
        after = self._store.table[indices, classes]
        unknown = np.flatnonzero(after == UNKNOWN)
        if unknown.size:
            num_classes = self._store.num_classes
            pairs = np.unique(indices[unknown].astype(np.int64) * num_classes + classes[unknown])
            for pair in pairs.tolist():
                self._store.fill(pair // num_classes, pair % num_classes)
            after = self._store.table[indices, classes]
        return after


class SliceView:
    """A slice as one program sees it: its characters as sequences of byte classes."""

    def __init__(self, part: Slice, store: StateStore) -> None:
        self.part = part
        self._store = store
        alphabet = store.program.alphabet
        self._singles = sorted({store.class_of_byte[byte] for byte in part.ascii_bytes})
        self._sequences = [
            [
                sorted(
                    {store.class_of_byte[byte] for byte in range(low, high + 1) if alphabet[byte]}
                )
                for low, high in ranges
            ]
            for ranges in part.sequences
        ]

    def is_taken_by(self, state: MatchState) -> bool:
        """Whether every character of the slice leads from `state` back to it, so that all its tokens are allowed."""
        index = self._store.index(state)
        if state.holes or any(self._after(index, single) != index for single in self._singles):
            return False
        for sequence in self._sequences:
            reached = {index}
            for classes in sequence:
                reached = {self._after(source, c) for source in reached for c in classes}
                if DEAD in reached:
                    return False
            if not reached <= {index}:
                return False
        return True

    def _after(self, index: int, byte_class: int) -> int:
        after = int(self._store.table[index, byte_class])
        return self._store.fill(index, byte_class) if after == UNKNOWN else after
