"""Walks of a token trie against a program's states: which tokens keep the match alive, and where they lead.

Owns the walk itself and the test whether a state takes a whole slice. Knows nothing of masks, memos or budgets. States that allow few
bytes are walked node by node; the others level by level with numpy, each (state, byte class) pair computed once for all its nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .program import I32, U8
from .stepping import DEAD, UNKNOWN, MatchState, StateStore
from .vocabulary import Slice, Trie

_FEW_CHILDREN = 12
_FEW_NODES = 24
_MAX_CHAIN = 8


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
        self._node_class: U8 | None = None  # made by the first walk that needs it
        self._raw_bytes, self._child_start, self._child_count = trie.scalars

    def walk(self, roots: list[int], state: MatchState) -> Walked:
        """All alive nodes strictly below `roots`, when `state` is the state at each of them."""
        walk = _Walk(self, roots, self._store.index(state))
        while walk.few or walk.many:
            walk.by_node()
            walk.by_level()
        return walk.result()

    def children(self, node: int, index: int) -> list[tuple[int, int]] | None:
        """(child, state index there) for the alive children of one node; None if they are too many for this."""
        start, count = self._child_start[node], self._child_count[node]
        classes, raw, store = self._store.class_of_byte, self._raw_bytes, self._store
        if count > _FEW_CHILDREN:
            live = store.live_bytes(store.states[index])
            if len(live) > _FEW_CHILDREN:
                return None
            places = [
                place for byte in live if (place := raw.find(byte, start, start + count)) >= 0
            ]
        else:
            places = range(start, start + count)
        found: list[tuple[int, int]] = []
        for place in places:
            byte_class = classes[raw[place]]
            after = int(store.table[index, byte_class])
            if after == UNKNOWN:
                after = store.fill(index, byte_class)
            if after != DEAD:
                found.append((place, after))
        return found

    def level(self, nodes: I32, indices: I32) -> tuple[I32, I32]:
        """The alive children of all `nodes`, and the state indices there."""
        counts = self.trie.child_count[nodes]
        ends = np.cumsum(counts)
        total = int(ends[-1])
        starts = (self.trie.child_start[nodes] - ends + counts).astype(np.int32)
        children = np.arange(total, dtype=np.int32) + np.repeat(starts, counts)
        if self._node_class is None:
            self._node_class = self._store.program.class_of_byte[self.trie.bytes]
        after = self._step_all(np.repeat(indices, counts), self._node_class[children])
        alive = after >= 0
        return children[alive], after[alive]

    def has_children(self, node: int) -> bool:
        """Whether some token is longer than the one that ends at `node`."""
        return self._child_count[node] > 0

    def has_holes(self, index: int) -> bool:
        """Whether the state with this index has returned into a hole."""
        return bool(self._store.has_holes[index])

    def hole_flags(self, indices: I32) -> npt.NDArray[np.bool_]:
        """The same for many states."""
        return self._store.has_holes[indices]

    def _step_all(self, indices: I32, classes: U8) -> I32:
        after = self._store.table[indices, classes]
        unknown = np.flatnonzero(after == UNKNOWN)
        if unknown.size:
            pairs = zip(indices[unknown].tolist(), classes[unknown].tolist(), strict=True)
            for index, byte_class in set(pairs):
                self._store.fill(index, byte_class)
            after = self._store.table[indices, classes]
        return after


class _Walk:
    """One walk in progress: `few` is walked node by node, `many` (one array each of nodes and indices) level by level."""

    def __init__(self, view: TrieView, roots: list[int], index: int) -> None:
        self._view = view
        self.few = [(root, index) for root in roots]
        self.many: list[tuple[int, int]] = []
        self._nodes: list[int] = []
        self._indices: list[int] = []
        self._arrays: list[tuple[I32, I32]] = []
        self._stopped: dict[int, list[int]] = {}

    def by_node(self) -> None:
        """Walk until nothing is left, or only nodes with many children that many bytes may lead to."""
        view = self._view
        while self.few:
            node, index = self.few.pop()
            if not view.has_children(node):
                continue
            children = view.children(node, index)
            if children is None:
                self.many.append((node, index))
                continue
            for child, after in children:
                self._nodes.append(child)
                self._indices.append(after)
                if not view.has_holes(after):
                    self.few.append((child, after))
                elif view.has_children(child):
                    self._stopped.setdefault(after, []).append(child)

    def by_level(self) -> None:
        """Walk levels until few nodes are left; those go back to `few`."""
        frontier = np.array(self.many, dtype=np.int32).reshape(-1, 2)
        nodes, indices = frontier[:, 0], frontier[:, 1]
        is_first = True
        while nodes.size > _FEW_NODES or (is_first and nodes.size):
            nodes, indices = self._view.level(nodes, indices)
            self._arrays.append((nodes, indices))
            parents = self._view.trie.child_count[nodes] > 0
            nodes, indices = nodes[parents], indices[parents]
            holes = self._view.hole_flags(indices)
            if holes.any():
                for node, index in zip(nodes[holes].tolist(), indices[holes].tolist(), strict=True):
                    self._stopped.setdefault(index, []).append(node)
                nodes, indices = nodes[~holes], indices[~holes]
            is_first = False
        self.many = []
        self.few.extend(zip(nodes.tolist(), indices.tolist(), strict=True))

    def result(self) -> Walked:
        """Everything found."""
        nodes = [np.array(self._nodes, dtype=np.int32), *(pair[0] for pair in self._arrays)]
        indices = [np.array(self._indices, dtype=np.int32), *(pair[1] for pair in self._arrays)]
        return Walked(np.concatenate(nodes), np.concatenate(indices), self._stopped)


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

    def chain(self, state: MatchState) -> list[MatchState] | None:
        """The states after one character of the slice, after two, and so on, if those are the same whatever the characters are.

        None if they are not, if some character is not possible, or if the chain does not soon come to a state that stays. Else all
        tokens of the slice are allowed from `state`, and lead to a state of the chain.
        """
        found: list[MatchState] = []
        index = self._store.index(state)
        while len(found) < _MAX_CHAIN and not self._store.states[index].holes:
            after = self._after_any_character(index)
            if after == DEAD:
                return None
            found.append(self._store.states[after])
            if after == index:
                return found
            index = after
        return None

    def _after_any_character(self, index: int) -> int:
        """The one state that every character leads to, or DEAD if there is no such state."""
        reached = {self._after(index, single) for single in self._singles[:1]}
        for single in self._singles:
            if self._after(index, single) not in reached:
                return DEAD
        for sequence in self._sequences:
            ends = {index}
            for classes in sequence:
                ends = {self._after(source, c) for source in ends for c in classes}
                if DEAD in ends:
                    return DEAD
            reached |= ends
        return reached.pop() if len(reached) == 1 else DEAD

    def _after(self, index: int, byte_class: int) -> int:
        after = int(self._store.table[index, byte_class])
        return self._store.fill(index, byte_class) if after == UNKNOWN else after
