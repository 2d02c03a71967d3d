"""Which node goes next when pages are short: least recently used first, among leaves that nobody uses.
Owns lock counts, access times and the heap of candidates; knows nothing of tokens, keys or page counts.

A lock marks the whole path from a node to the root, the node itself included, so an unlocked node has only unlocked nodes
below it: every page of every unlocked node can be had, by eating the tree from its leaves. That sum is kept as a number
and never counted.

The order is a lazy heap of (last access, serial, node). A node enters when it becomes an unlocked leaf, also when it
becomes one because its last child went: it enters with its own, older or equal time, so the order stays that of last
access. An entry is stale when its node is locked, has children, left the tree or was used since; stale entries are
skipped when they surface, and the heap is rebuilt when they outnumber the live ones, so a push or a pop is O(log n)
amortised and nothing is ever scanned to find a victim.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from ..errors import InvariantError
from .tree import Node


class EvictionQueue:
    """Locks on paths and the order of eviction over the nodes of all trees."""

    __slots__ = ("_clock", "_heap", "_num_live", "_serial", "num_evictable")

    def __init__(self) -> None:
        self.num_evictable = 0  # pages of all unlocked nodes
        self._clock = 0
        self._serial = 0
        self._num_live = 0
        self._heap: list[tuple[int, int, Node]] = []

    def lock(self, node: Node) -> None:
        """Protect `node` and its ancestors, and mark them used now. O(depth)."""
        self._clock += 1
        step: Node | None = node
        while step is not None:
            self._leave(step)
            if step.num_locks == 0 and step.in_tree:
                self.num_evictable -= len(step.pages)
            step.num_locks += 1
            step.last_access = self._clock
            step = step.parent

    def unlock(self, node: Node) -> None:
        """Undo one lock() of `node`, and mark the path used now. O(depth)."""
        self._clock += 1
        step: Node | None = node
        while step is not None:
            self.unlock_one(step)
            step = step.parent
