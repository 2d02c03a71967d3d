"""PrefixCache: which K/V already exists, and where new K/V goes. Owns leases and the balance of pages.
Knows tokens as integers and pages as integers; knows nothing of models, tensors, requests, text or time.

    open ──> extend ──> (copies, forward) ──> commit ──> extend ──> ... ──> release
     │ match + lock        by the caller        │ publish while running        │ publish, unlock, free the rest

Every page is at any moment exactly one of

    free        in the pool's free list
    evictable   published, and on no path that a lease holds
    locked      published on a lease's path, private to a lease, or still to be copied from

and the three add up to the capacity. Matching follows the tree to the token; the last, partial page of a match is copied
to a page of the lease's own (copy-on-write), so no page ever has two writers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ConfigError, InvariantError
from .audit import audit
from .eviction import SPENT, EvictionQueue
from .lease import Lease, PageCopy, PageReplacement
from .pages import PagePool
from .publishing import Publisher
from .stats import CacheStats
from .tree import I32, Match, Node, RadixTree

__all__ = ["Lease", "PageCopy", "PageReplacement", "PrefixCache", "TokenIds"]

TokenIds = I32 | Sequence[int]


class PrefixCache:
    """A pool of `num_pages` pages of `page_size` tokens, and the radix trees of what is in them."""

    def __init__(self, num_pages: int, page_size: int = 16) -> None:
        if num_pages < 1 or page_size < 1:
            raise ConfigError(
                f"a cache of {num_pages} pages of {page_size} tokens cannot hold anything",
                place="num_pages" if num_pages < 1 else "page_size",
            )
        self.page_size = page_size
        self.stats = CacheStats()
        self._pool = PagePool(num_pages)
        self._tree = RadixTree(page_size)
        self._queue = EvictionQueue()
        self._publisher = Publisher(self._tree, self._queue, self._pool, self.stats)
        self._leases: set[Lease] = set()

    # -- the balance -----------------------------------------------------------------------------------------------

    @property
    def num_pages(self) -> int:
        """Capacity in pages."""
        return self._pool.num_pages

    @property
    def num_free(self) -> int:
        """Pages that hold nothing."""
        return self._pool.num_free

    @property
    def num_evictable(self) -> int:
        """Published pages that no lease needs."""
        return self._queue.num_evictable

    @property
    def num_available(self) -> int:
        """Pages that extend() can give away: free and evictable ones."""
        return self._pool.num_free + self._queue.num_evictable

    @property
    def num_locked(self) -> int:
        """Pages in use by leases."""
        return self._pool.num_pages - self.num_available

    @property
    def num_leases(self) -> int:
        """Leases that are open."""
        return len(self._leases)

    # -- one sequence's life ---------------------------------------------------------------------------------------

    def open(self, token_ids: TokenIds, namespace: str = "", max_match: int | None = None) -> Lease:
        """Find the longest cached prefix of `token_ids`, lock it and return the hold on it.

        At most `max_match` tokens are matched (pass len - 1 so that one token is left to compute logits from). When
        the match ends inside a page, `lease.page_copies` has the copy to run before anything is written to the lease's
        pages. That copy needs a page, and its source stays locked meanwhile: if the pool could then not hold all of
        `token_ids`, the match is cut back to whole pages instead.
        """
        ids = _as_array(token_ids)
        root = self._tree.root_of(namespace)
        match = self._tree.match(root, ids if max_match is None else ids[: max(max_match, 0)])
        node, edge = match.node, match.edge
        if edge is not None and match.num_edge_pages:
            node = self._publisher.split(edge, match.num_edge_pages)
        num_whole = match.num_tokens(self.page_size) - match.num_partial_tokens
        self._queue.lock(node)
        self._queue.arrived(node)
        lease = Lease(namespace, node, _path_pages(node), num_whole, num_whole, num_whole)
        self._leases.add(lease)
        if edge is not None and match.num_partial_tokens:
            self._copy_on_write(lease, edge, match, num_prompt=int(ids.size))
        self.stats.num_lookups += 1
        self.stats.num_hits += lease.num_cached > 0
        self.stats.num_lookup_tokens += int(ids.size)
        self.stats.num_hit_tokens += lease.num_cached
        return lease

    def match_length(
        self, token_ids: TokenIds, namespace: str = "", max_match: int | None = None
    ) -> int:
        """Tokens that open() would find now. Locks nothing, counts nothing, is no use in the sense of eviction."""
        root = self._tree.roots.get(namespace)
        if root is None:
            return 0
        ids = _as_array(token_ids)
        match = self._tree.match(root, ids if max_match is None else ids[: max(max_match, 0)])
        return match.num_tokens(self.page_size)

    def extend(self, lease: Lease, num_tokens: int) -> bool:
        """Give the lease pages for positions below `num_tokens`, evicting what was used least recently.

        False when there are not enough; then nothing has changed.
        """
        self._require_open(lease)
        num_missing = -(-num_tokens // self.page_size) - len(lease.page_ids)
        if num_missing <= 0:
            return True
        if num_missing > self.num_available:
            return False
        self.evict(num_missing - self._pool.num_free)
        lease.page_ids += self._pool.allocate(num_missing)
        return True

    def copies_done(self, lease: Lease) -> None:
        """The lease's page copies have run (or run before whatever is launched next): unlock their source."""
        self._require_open(lease)
        self._finish_copies(lease)
        lease.num_committed = max(lease.num_committed, lease.num_cached)

    def commit(self, lease: Lease, token_ids: TokenIds, num_computed: int) -> list[PageReplacement]:
        """Publish the K/V of tokens below `num_computed`, which the lease's pages hold by now.

        `token_ids` is the whole sequence (only the part not yet published is read: pass a growing array, not a new
        one). Returns the entries of the page table that moved because another lease had published the same tokens;
        `lease.page_ids` is up to date. O(tokens published), not O(sequence).
        """
        self._require_open(lease)
        if num_computed > len(lease.page_ids) * self.page_size or num_computed > len(token_ids):
            raise InvariantError(
                f"{num_computed} tokens committed, {len(token_ids)} given, in {len(lease.page_ids)} pages"
            )
        if num_computed <= lease.num_cached and lease.page_copies:
            return []  # nothing has run yet, so the copied page holds nothing yet
        self._finish_copies(lease)
        if num_computed < lease.num_committed:
            raise InvariantError(
                f"{lease.num_committed} tokens were committed, now only {num_computed}"
            )
        replaced: list[PageReplacement] = []
        whole = num_computed - num_computed % self.page_size
        if whole > lease.num_shared:
            ids = _as_array(token_ids[lease.num_shared : whole])
            replaced = self._publisher.publish_whole_pages(lease, ids)
        if num_computed > whole:
            self._publisher.publish_tail(lease, _as_array(token_ids[whole:num_computed]))
        lease.num_committed = num_computed
        return replaced

    def release(
        self,
        lease: Lease,
        token_ids: TokenIds,
        num_computed: int,
        *,
        publish: bool = True,
        num_expected: int = 0,
        num_used: int | None = None,
    ) -> None:
        """End a lease in any state: publish what is computed (unless told not to), unlock, free the rest.

        What is known of the future decides what is evicted first, and nothing else: `num_expected` sequences will continue from the end
        of this one; nobody will use its tokens from `num_used` on.
        """
        self._require_open(lease)
        if publish and num_computed > lease.num_committed:
            self.commit(lease, token_ids, num_computed)
        self._finish_copies(lease)
        lease.is_open = False
        self._leases.remove(lease)
        num_published = lease.num_shared // self.page_size + (lease.tail is not None)
        self._pool.drop_all(lease.page_ids[num_published:])
        lease.page_ids = []
        end = lease.node if lease.tail is None else lease.tail
        if num_used is not None:
            self._mark_spent(lease, num_used)
        elif num_expected > 0 and end.parent is not None:
            end.outlook = num_expected
        self._queue.unlock(end)
        self._publisher.drop_if_superseded(end)
        self._tree.prune_root(lease.node)

    # -- taking pages back -----------------------------------------------------------------------------------------

    def evict(self, num_pages: int) -> int:
        """Free up to `num_pages` published pages that no lease needs, least recently used first, ends before beginnings.

        Returns how many were freed: exactly min(num_pages, num_evictable). O(log n) each.
        """
        num_freed = 0
        while num_freed < num_pages:
            node = self._queue.oldest()
            if node is None:
                break
            num_wanted = num_pages - num_freed
            if num_wanted >= len(node.pages):
                num_freed += len(node.pages)
                self._publisher.remove(node)
            else:
                self._pool.drop_all(node.drop_pages(num_wanted, self.page_size))
                self._queue.num_evictable -= num_wanted
                num_freed += num_wanted
        self.stats.num_evicted_pages += num_freed
        return num_freed

    def flush(self) -> bool:
        """Empty the cache. False, and nothing changed, while leases are open (`num_leases` says how many)."""
        if self._leases:
            return False
        self.evict(self.num_evictable)
        return True

    def reset(self) -> None:
        """Start from nothing after a broken invariant: all pages free, all open leases void. Totals are kept."""
        for lease in self._leases:
            lease.is_open = False
        self._leases.clear()
        self._pool = PagePool(self._pool.num_pages)
        self._tree = RadixTree(self.page_size)
        self._queue = EvictionQueue()
        self._publisher = Publisher(self._tree, self._queue, self._pool, self.stats)

    def check(self) -> None:
        """Raise InvariantError when pages, tree, locks and leases contradict one another. O(everything): for tests and idle loops."""
        audit(self._tree, self._queue, self._pool, self._leases)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _copy_on_write(self, lease: Lease, edge: Node, match: Match, num_prompt: int) -> None:
        """Let the lease have the partial page of a match as a page of its own, if there is room for both."""
        num_wanted = -(-num_prompt // self.page_size) - len(lease.page_ids)
        num_source = (
            1 if edge.num_locks == 0 else 0
        )  # locking the source takes it from the evictable
        if num_wanted > self.num_available - num_source:
            return
        source = edge if len(edge.pages) == 1 else self._publisher.split(edge, 1)
        self._queue.lock(source)
        source.outlook = max(source.outlook - 1, 0)
        self.evict(1 - self._pool.num_free)
        destination = self._pool.allocate(1)[0]
        self._pool.hold(source.pages[0])
        lease.page_ids.append(destination)
        lease.page_copies.append(PageCopy(source.pages[0], destination, match.num_partial_tokens))
        lease.copy_source = source
        lease.num_cached += match.num_partial_tokens
        self.stats.num_page_copies += 1

    def _mark_spent(self, lease: Lease, num_used: int) -> None:
        """Whole pages of the lease's end that hold only tokens from `num_used` on, and that nobody else has come to, go first."""
        num_kept = -(-num_used // self.page_size)
        node, tail = lease.node, lease.tail
        first = (
            lease.num_shared - node.num_tokens
        ) // self.page_size  # page of the node's beginning
        num_shared = lease.num_shared // self.page_size
        if tail is not None and tail.num_locks == 1 and num_shared >= num_kept:
            tail.outlook = SPENT
        is_alone = node.num_locks == 1 and len(node.children) == (tail is not None)
        if node.parent is None or not is_alone or num_shared <= num_kept:
            return
        if num_kept > first:
            self._publisher.split(node, num_kept - first)  # the node stays the end
        node.outlook = SPENT

    def _finish_copies(self, lease: Lease) -> None:
        """Let go of the source of the lease's page copy."""
        source = lease.copy_source
        if source is None:
            return
        for copy in lease.page_copies:
            self._pool.drop(copy.source)
        lease.page_copies = []
        lease.copy_source = None
        self._queue.unlock(source)
        self._publisher.drop_if_superseded(source)

    def _require_open(self, lease: Lease) -> None:
        if not lease.is_open:
            raise InvariantError("a lease was used after its release")


def _as_array(token_ids: TokenIds) -> I32:
    return np.asarray(token_ids, dtype=np.int32)


def _path_pages(node: Node) -> list[int]:
    """Pages from the root to the end of `node`."""
    parts: list[list[int]] = []
    step: Node | None = node
    while step is not None:
        parts.append(step.pages)
        step = step.parent
    return [page_id for pages in reversed(parts) for page_id in pages]
