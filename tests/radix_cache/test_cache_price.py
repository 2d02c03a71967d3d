"""The price of each call of PrefixCache, counted in executed lines, not in seconds."""

from __future__ import annotations

import numpy as np

from radixlm.radix_cache.cache import PrefixCache


def test_a_decode_step_costs_the_same_at_any_length(count_lines) -> None:
    cache = PrefixCache(4096, 16)
    tokens = np.zeros(60_000, dtype=np.int32)
    lease = cache.open(tokens[:1])
    costs: list[int] = []
    length = 0
    for target in (1_000, 10_000, 50_000):
        assert cache.extend(lease, target)
        cache.commit(lease, tokens, target)
        length = target

        def decode_64_steps(start: int = length) -> None:
            for step in range(1, 65):
                assert cache.extend(lease, start + step)
                cache.commit(lease, tokens, start + step)

        costs.append(count_lines(decode_64_steps))
    assert max(costs) <= 1.1 * min(costs)
    assert max(costs) <= 64 * 80
    assert sum(1 for _ in cache._tree.walk()) <= 2  # one long node, one tail


def test_eviction_costs_per_page_and_not_per_leaf(count_lines) -> None:
    costs: list[int] = []
    for num_leaves in (200, 2_000):
        cache = PrefixCache(num_leaves + 8, 1)
        for token_id in range(num_leaves):
            insert_quietly(cache, [token_id])
        costs.append(count_lines(lambda cache=cache: [cache.evict(1) for _ in range(100)]))
    assert costs[1] <= 1.2 * costs[0]


def test_opening_costs_by_depth_and_not_by_fan_out(count_lines) -> None:
    costs: list[int] = []
    for num_leaves in (50, 5_000):
        cache = PrefixCache(num_leaves + 8, 2)
        for token_id in range(num_leaves):
            insert_quietly(cache, [token_id, 1])
        costs.append(count_lines(lambda cache=cache: cache.open([7, 1])))
    assert costs[1] <= 1.2 * costs[0]


def test_the_heap_stays_small_when_one_leaf_is_used_again_and_again() -> None:
    cache = PrefixCache(8, 2)
    insert_quietly(cache, [1, 1])
    for _ in range(2_000):
        insert_quietly(cache, [1, 1])
    assert cache._queue.num_entries < 200
    cache.check()


def test_a_long_chain_of_splits_needs_no_recursion() -> None:
    cache = PrefixCache(6_000, 1)
    tokens = list(range(3_000))
    insert_quietly(cache, tokens)
    for length in range(2_999, 0, -1):
        cache.open(tokens[:length])
    assert sum(1 for _ in cache._tree.walk()) == 3_000
    cache.check()


def insert_quietly(cache: PrefixCache, token_ids: list[int]) -> None:
    lease = cache.open(token_ids)
    assert cache.extend(lease, len(token_ids))
    cache.release(lease, token_ids, len(token_ids))
