"""Drives a PrefixCache the way a scheduler does, over a pretend K/V store, and knows what every slot must hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from kv_memory import KvMemory, slot_values

from radixlm.radix_cache.cache import Lease, PrefixCache


@dataclass(eq=False)
class Sequence_:
    """One running sequence: its lease, its tokens, and how many of them have K/V."""

    lease: Lease
    namespace: str
    token_ids: list[int]
    num_computed: int
    num_committed: int = 0
    copied: bool = False
    values: list[int] = field(default_factory=list)

    def array(self) -> np.ndarray:
        return np.array(self.token_ids, dtype=np.int32)


class CacheDriver:
    """PrefixCache, memory and the naive model of both: a list of running sequences and a set of committed prefixes."""

    def __init__(self, num_pages: int, page_size: int) -> None:
        self.cache = PrefixCache(num_pages, page_size)
        self.memory = KvMemory(num_pages, page_size)
        self.running: list[Sequence_] = []
        self.committed: set[tuple[str, tuple[int, ...]]] = set()
        self.page_used: dict[int, int] = {}  # page -> when it was last on a path (the model of LRU)
        self.now = 0

    # -- operations ----------------------------------------------------------------------------------------------

    def open(
        self, token_ids: Sequence[int], namespace: str = "", max_match: int | None = None
    ) -> Sequence_:
        limit = len(token_ids) if max_match is None else max_match
        peeked = self.cache.match_length(token_ids, namespace, max_match)
        longest = self.longest_in_tree(token_ids, namespace, limit)
        assert peeked == longest
        lease = self.cache.open(token_ids, namespace, max_match)
        page_size = self.cache.page_size
        assert lease.num_cached in (longest, longest - longest % page_size)
        sequence = Sequence_(lease, namespace, list(token_ids), lease.num_cached)
        sequence.num_committed = lease.num_cached
        sequence.copied = not lease.page_copies
        self.running.append(sequence)
        self.touch(lease.page_ids[: lease.num_shared // page_size])
        self.touch([copy.source for copy in lease.page_copies])
        return sequence

    def run_copies(self, sequence: Sequence_) -> None:
        for copy in sequence.lease.page_copies:
            self.memory.copy(*copy)
        sequence.copied = True

    def copies_done(self, sequence: Sequence_) -> None:
        self.run_copies(sequence)
        self._touch_copy(sequence)
        self.cache.copies_done(sequence.lease)

    def compute(self, sequence: Sequence_, num_tokens: int) -> bool:
        """Let K/V of the next `num_tokens` tokens be written; False when no pages could be had."""
        end = min(sequence.num_computed + num_tokens, len(sequence.token_ids))
        if not self.cache.extend(sequence.lease, end):
            return False
        if not sequence.copied and end > sequence.num_computed:
            self.run_copies(sequence)
        values = slot_values(sequence.namespace, sequence.token_ids)
        for position in range(sequence.num_computed, end):
            self.memory.write(sequence.lease.page_ids, position, values[position])
        sequence.num_computed = end
        return True

    def commit(self, sequence: Sequence_) -> None:
        before = list(sequence.lease.page_ids)
        if sequence.num_computed > sequence.lease.num_cached or not sequence.lease.page_copies:
            self._touch_copy(sequence)
        replaced = self.cache.commit(sequence.lease, sequence.array(), sequence.num_computed)
        for move in replaced:
            assert before[move.page_index] == move.old
            before[move.page_index] = move.new
        assert before == sequence.lease.page_ids
        self._note_committed(sequence)

    def release(self, sequence: Sequence_, *, publish: bool = True, **future: int) -> None:
        lease = sequence.lease
        is_published = publish and (sequence.num_computed > lease.num_cached or sequence.copied)
        if is_published and lease.page_copies and sequence.num_computed <= lease.num_cached:
            is_published = False
        self._touch_copy(sequence)
        if is_published:
            self.commit(sequence)
        num_published = lease.num_shared // self.cache.page_size + (lease.tail is not None)
        self.touch(lease.page_ids[:num_published])
        self.running.remove(sequence)
        self.cache.release(
            lease, sequence.array(), sequence.num_computed, publish=publish, **future
        )

    def touch(self, page_ids: Sequence[int]) -> None:
        self.now += 1
        for page_id in page_ids:
            self.page_used[page_id] = self.now

    def _touch_copy(self, sequence: Sequence_) -> None:
        lease = sequence.lease
        if lease.page_copies:
            self.touch(lease.page_ids[: lease.num_shared // self.cache.page_size])
            self.touch([copy.source for copy in lease.page_copies])

    def _note_committed(self, sequence: Sequence_) -> None:
        if sequence.num_computed > sequence.num_committed:
            sequence.num_committed = sequence.num_computed
            prefix = tuple(sequence.token_ids[: sequence.num_computed])
            self.committed.add((sequence.namespace, prefix))

    # -- the naive model -----------------------------------------------------------------------------------------

    def tree_paths(self) -> list[tuple[str, list[int], list[int]]]:
        """(namespace, tokens, pages) from the root to each node, without the tree's own search."""
        paths: list[tuple[str, list[int], list[int]]] = []
        for namespace, root in self.cache._tree.roots.items():
            waiting = [(root, [], [])]
            while waiting:
                node, token_ids, pages = waiting.pop()
                for child in node.children:
                    below = (token_ids + child.token_ids.tolist(), pages + child.pages)
                    paths.append((namespace, *below))
                    waiting.append((child, *below))
        return paths

    def longest_in_tree(self, token_ids: Sequence[int], namespace: str, limit: int) -> int:
        best = 0
        for path_namespace, path, _ in self.tree_paths():
            if path_namespace == namespace:
                best = max(best, common_length(path, token_ids[:limit]))
        return best

    def longest_committed(self, token_ids: Sequence[int], namespace: str) -> int:
        """Longest common prefix with anything ever committed."""
        return max(
            (common_length(prefix, token_ids) for ns, prefix in self.committed if ns == namespace),
            default=0,
        )

    def evictable_leaf_pages(self) -> list[int]:
        """The last page of every leaf that no lease needs."""
        return [
            node.pages[-1]
            for node in self.cache._tree.walk()
            if not node.children and not node.num_locks
        ]

    def check(self) -> None:
        cache = self.cache
        cache.check()
        assert cache.num_free + cache.num_evictable + cache.num_locked == cache.num_pages
        assert min(cache.num_free, cache.num_evictable, cache.num_locked) >= 0
        for page_id in range(cache.num_pages):
            if not cache._pool.num_holders(page_id):
                self.memory.scribble(page_id)
        for namespace, path, pages in self.tree_paths():
            assert self.memory.read(pages, len(path)) == slot_values(namespace, path)
        for sequence in self.running:
            self._check_sequence(sequence)

    def _check_sequence(self, sequence: Sequence_) -> None:
        lease = sequence.lease
        values = slot_values(sequence.namespace, sequence.token_ids)
        readable = sequence.num_computed if sequence.copied else lease.num_shared
        assert self.memory.read(lease.page_ids, readable) == values[:readable]
        for copy in lease.page_copies:
            start = lease.num_shared
            expected = values[start : start + copy.num_tokens]
            assert self.memory.slots[copy.source][: copy.num_tokens] == expected


def common_length(left: Sequence[int], right: Sequence[int]) -> int:
    length = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        length += 1
    return length


def insert(cache: PrefixCache, token_ids: list[int], namespace: str = "") -> int:
    """Let one sequence come, compute everything and go. Returns the tokens that were cached already."""
    lease = cache.open(token_ids, namespace)
    assert cache.extend(lease, len(token_ids))
    cache.release(lease, token_ids, len(token_ids))
    cache.check()
    return lease.num_cached
