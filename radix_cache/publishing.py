"""Publishing: how the pages of a lease enter the tree while its sequence still runs. Owns the commit algorithm.
Knows tree, eviction queue and pool; knows nothing of requests, scheduling or the K/V in the pages.

Whole pages are walked down from the end of the lease's path. Where the tree already has them (another lease published the
same tokens meanwhile) the lease moves to the tree's page and its own is freed: one prefix, one page. The rest becomes an
edge: the node the lease stands on grows in place when nobody else stands there, so a long decode is one node and costs
O(1) amortised a token; otherwise a new child.

The last page, not full yet, is published as a tail so that others can copy the tokens it has. Three cases:

    nothing alike in the tree     the tail enters, or grows where it is
    a page starts with its tokens it stays (or becomes) private: publishing it would help nobody; while others have yet
                                  to copy from it, it stays published as it is
    its tokens start with a page  that page is superseded: dropped when unlocked, now or when its last lock goes

A tail is written only by its lease; readers copy the slots it had when they came, and slots are only appended.
"""

from __future__ import annotations

from ..errors import InvariantError
from .eviction import EvictionQueue
from .lease import Lease, PageReplacement
from .pages import PagePool
from .stats import CacheStats
from .tree import I32, Node, RadixTree, common_prefix_length, sort_key


class Publisher:
    """Moves computed pages of leases into the tree, and takes unlocked nodes out of it."""

    __slots__ = ("_pool", "_queue", "_stats", "_tree")

    def __init__(
        self, tree: RadixTree, queue: EvictionQueue, pool: PagePool, stats: CacheStats
    ) -> None:
        self._tree = tree
        self._queue = queue
        self._pool = pool
        self._stats = stats

    def publish_whole_pages(self, lease: Lease, token_ids: I32) -> list[PageReplacement]:
        """Publish whole pages: `token_ids` follow position `lease.num_shared` and fill a number of pages."""
        page_size = self._tree.page_size
        replaced: list[PageReplacement] = []
        tail = self._withdraw_tail(lease)
        while token_ids.size:
            child, agreeing = self._tree.closest_child(lease.node, token_ids[:page_size])
            if child is None or agreeing < page_size:
                self._append(lease, token_ids, tail)
                return replaced
            if tail is not None:  # the page it was to become is in the tree already
                self._queue.unlock_end(tail)
                tail = None
            num_pages = common_prefix_length(child.token_ids, token_ids) // page_size
            replaced += self._follow(lease, child, num_pages)
            token_ids = token_ids[num_pages * page_size :]
        return replaced

    def publish_tail(self, lease: Lease, token_ids: I32) -> None:
        """Publish the part of a page that follows position `lease.num_shared`, fewer tokens than a page."""
        tail = lease.tail
        if tail is not None and token_ids.size == tail.num_tokens:
            return
        if tail is not None and len(lease.node.children) == 1:
            self._tree.grow_only_child(tail, token_ids[tail.num_tokens :])
            return
        is_covered = self._tree.covers(lease.node, sort_key(token_ids))
        if is_covered and tail is not None and tail.num_locks > 1:
            return  # others have yet to copy from this page: the node they locked stays the one that holds it
        tail = self._withdraw_tail(lease)
        if is_covered:
            if tail is not None:
                self._queue.unlock_end(tail)
            return
        if tail is None:
            page_index = lease.num_shared // self._tree.page_size
            tail = self._new_node(lease, token_ids, [lease.page_ids[page_index]])
        else:
            tail.append_tokens(token_ids[tail.num_tokens :])
        self._enter(lease.node, tail)
        lease.tail = tail

    def drop_if_superseded(self, node: Node) -> None:
        """Take a tail out whose last lock went, when a sibling holds all its tokens and more."""
        is_tail = node.in_tree and 0 < node.num_tokens < self._tree.page_size
        if is_tail and not node.num_locks and self._tree.is_extended(node):
            self._stats.num_superseded_pages += 1
            self.remove(node)

    def remove(self, node: Node) -> None:
        """Take an unlocked leaf out of the tree and free its pages."""
        if node.num_locks or node.children:
            raise InvariantError("only an unlocked leaf can leave the tree")
        parent = self._tree.parent_of(node)
        self._queue.forget(node)
        self._tree.detach(node)
        self._pool.drop_all(node.pages)
        self._queue.enter_if_leaf(parent)
        self._tree.prune_root(parent)

    def split(self, node: Node, num_pages: int) -> Node:
        """Cut a node after `num_pages` pages and return the upper part."""
        self._stats.num_splits += 1
        return self._tree.split(node, num_pages)

    def _withdraw_tail(self, lease: Lease) -> Node | None:
        """Take the lease's tail out of the tree, if it has one. Its page is private again, its locks stay as they are."""
        tail = lease.tail
        if tail is not None:
            self._tree.detach(tail)
            lease.tail = None
        return tail

    def _follow(self, lease: Lease, child: Node, num_pages: int) -> list[PageReplacement]:
        """Move the lease's next `num_pages` pages to those of `child`, which hold the same tokens."""
        if num_pages < len(child.pages):
            child = self.split(child, num_pages)
        self._queue.lock_end(child)
        first = lease.num_shared // self._tree.page_size
        replaced: list[PageReplacement] = []
        for index, new in enumerate(child.pages, start=first):
            replaced.append(PageReplacement(index, lease.page_ids[index], new))
            self._pool.drop(lease.page_ids[index])
            lease.page_ids[index] = new
        lease.node = child
        lease.num_shared += num_pages * self._tree.page_size
        self._stats.num_duplicate_pages += num_pages
        return replaced

    def _append(self, lease: Lease, token_ids: I32, tail: Node | None) -> None:
        """Add pages that the tree does not have below the lease's node, and stand at their end."""
        page_size = self._tree.page_size
        first = lease.num_shared // page_size
        pages = lease.page_ids[first : first + token_ids.size // page_size]
        lease.num_shared += int(token_ids.size)
        self._stats.num_published_pages += len(pages)
        if tail is not None and tail.num_locks > 1:
            # Others have yet to copy from this page: the node they locked must stay the one that holds it.
            tail.append_tokens(token_ids[tail.num_tokens : page_size])
            self._enter(lease.node, tail)
            lease.node = tail
            token_ids, pages = token_ids[page_size:], pages[1:]
        if not pages:
            return
        node = lease.node
        if node.parent is not None and not node.children and node.num_locks == 1:
            node.append_tokens(token_ids)
            node.pages.extend(pages)
        else:
            lease.node = self._new_node(lease, token_ids, pages)
            self._enter(node, lease.node)

    def _new_node(self, lease: Lease, token_ids: I32, pages: list[int]) -> Node:
        node = Node(token_ids, pages)
        node.num_locks = 1
        node.last_access = lease.node.last_access
        return node

    def _enter(self, parent: Node, node: Node) -> None:
        """Attach a locked node, and drop the tail that it supersedes."""
        self._tree.attach(parent, node)
        shorter = self._tree.previous_prefix(node)
        if shorter is not None:
            self.drop_if_superseded(shorter)
