"""Which node goes next when pages are short: least recently used first, among leaves that nobody uses.
Owns lock counts, access times and the heap of candidates; knows nothing of tokens, keys or page counts.

A lock marks the whole path from a node to the root, the node itself included, so an unlocked node has only unlocked nodes
below it: every page of every unlocked node can be had, by eating the tree from its leaves. That sum is kept as a number
and never counted.

The order is a lazy heap of (last access, serial, node). A node enters when it becomes an unlocked leaf, also when it
becomes one because its last child went: it enters with its own access time, so the order stays that of last access. A
node knows the serial of its live entry; locking or removing it takes that away, and the stale entry is skipped when it
surfaces. The heap is rebuilt when stale entries outnumber live ones, so a push or a pop is O(log n) amortised and
nothing is ever scanned to find a victim.

What is known of the future moves a node in time, and is no lock: `outlook` n > 0 says that n more paths are expected here, and until
they came the node counts as used a while from now; SPENT says that none is, and it counts as never used. Either is wrong at times, which
costs order alone: a node that is waited for in vain grows old like any other, later.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from ..errors import InvariantError
from .tree import Node

SPENT = -1
_HEAD_START = 512  # locks and unlocks by which a node that is waited for is younger
_MIN_STALE = 64  # below this many stale entries a rebuild is not worth it


class EvictionQueue:
    """Locks on paths, and the order of eviction over the nodes of all namespaces."""

    __slots__ = ("_clock", "_heap", "_num_live", "_serial", "num_evictable")

    def __init__(self) -> None:
        self.num_evictable = 0  # pages of all unlocked nodes
        self._clock = 0
        self._serial = 0
        self._num_live = 0
        self._heap: list[tuple[int, int, Node]] = []

    @property
    def num_entries(self) -> int:
        """Length of the heap, stale entries included (to watch that it stays bounded)."""
        return len(self._heap)

    def lock(self, node: Node) -> None:
        """Protect `node` and all its ancestors, and mark them used now. O(depth)."""
        self._clock += 1
        step: Node | None = node
        while step is not None:
            self.lock_end(step)
            step = step.parent

    def arrived(self, node: Node) -> None:
        """A path came to `node`, which may have been waited for, there and above. O(depth)."""
        step: Node | None = node
        while step is not None:
            step.outlook = max(step.outlook - 1, 0)
            step = step.parent

    def unlock(self, node: Node) -> None:
        """Undo one lock() of `node`, and mark the path used now. O(depth)."""
        self._clock += 1
        step: Node | None = node
        while step is not None:
            self.unlock_end(step)
            step = step.parent

    def lock_end(self, node: Node) -> None:
        """Lengthen a locked path by `node`, a child of its end. O(1)."""
        if node.num_locks == 0 and node.in_tree:
            self.num_evictable -= len(node.pages)
            self._leave(node)
        node.num_locks += 1
        node.last_access = self._clock

    def unlock_end(self, node: Node) -> None:
        """Shorten a locked path by its end, `node`. O(log n)."""
        if node.num_locks <= 0:
            raise InvariantError("a node was unlocked more often than locked")
        node.num_locks -= 1
        node.last_access = self._clock + _HEAD_START if node.outlook > 0 else self._clock
        if node.outlook == SPENT:
            node.last_access = 0
        if node.num_locks == 0 and node.in_tree:
            self.num_evictable += len(node.pages)
            self.enter_if_leaf(node)

    def enter_if_leaf(self, node: Node) -> None:
        """Make an unlocked node without children a candidate (its last lock or its last child just went)."""
        if node.num_locks or node.children or node.queue_serial or node.parent is None:
            return
        self._serial += 1
        node.queue_serial = self._serial
        heappush(self._heap, (node.last_access, self._serial, node))
        self._num_live += 1

    def forget(self, node: Node) -> None:
        """Stop counting an unlocked node, because it is about to leave the tree."""
        self.num_evictable -= len(node.pages)
        self._leave(node)

    def oldest(self) -> Node | None:
        """The unlocked leaf used least recently; it stays a candidate until it is forgotten or locked."""
        while self._heap:
            _, serial, node = self._heap[0]
            if node.queue_serial == serial:
                return node
            heappop(self._heap)
        return None

    def _leave(self, node: Node) -> None:
        if not node.queue_serial:
            return
        node.queue_serial = 0
        self._num_live -= 1
        if len(self._heap) > 2 * self._num_live + _MIN_STALE:
            self._heap = [entry for entry in self._heap if entry[2].queue_serial == entry[1]]
            heapify(self._heap)

    def check(self, nodes: list[Node]) -> None:
        """Raise InvariantError unless the counts and the heap agree with `nodes`, all nodes of all trees but the roots."""
        if any(node.num_locks < 0 for node in nodes):
            raise InvariantError("a node has a negative number of locks")
        evictable = sum(len(node.pages) for node in nodes if not node.num_locks)
        if evictable != self.num_evictable:
            raise InvariantError(f"{evictable} pages are evictable, {self.num_evictable} counted")
        for node in nodes:
            is_candidate = not node.num_locks and not node.children
            if is_candidate != bool(node.queue_serial):
                raise InvariantError("the candidates of eviction are not the unlocked leaves")
            if not node.num_locks and any(child.num_locks for child in node.children):
                raise InvariantError("an unlocked node has a locked child")
        live = {id(node): at for at, serial, node in self._heap if node.queue_serial == serial}
        queued = {id(node): node.last_access for node in nodes if node.queue_serial}
        if live != queued or len(live) != self._num_live:
            raise InvariantError("the heap of candidates differs from the unlocked leaves")
