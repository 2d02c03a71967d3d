"""PrefixCache by example: the cases of real caches that went wrong, and the order of eviction."""

from __future__ import annotations

import random

import pytest
from cache_driver import CacheDriver, insert

from radixlm.errors import ConfigError, InvariantError
from radixlm.radix_cache.cache import PrefixCache


def num_tree_tokens(cache: PrefixCache) -> int:
    return sum(node.num_tokens for node in cache._tree.walk())


@pytest.mark.parametrize("page_size", [1, 4, 16, 64])
def test_a_prompt_equal_to_a_cached_sequence_leaves_one_token_to_compute(page_size: int) -> None:
    cache = PrefixCache(64, page_size)
    prompt = list(range(100, 137))
    insert(cache, [*prompt, 1, 2, 3, 4, 5])
    assert cache.open(prompt, max_match=len(prompt) - 1).num_cached == 36
    longer = [*prompt, 1, 2]
    assert cache.open(longer, max_match=len(longer) - 1).num_cached == 38
    cache.check()


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_a_sequence_that_inserts_what_another_inserted_meanwhile_moves_to_its_pages(
    page_size: int,
) -> None:
    driver = CacheDriver(128 // page_size * 2 + 40, page_size)
    prompt = [i % 7 for i in range(128)]
    first, second = driver.open(prompt, "", 127), driver.open(prompt, "", 127)
    for sequence in (first, second):
        assert driver.compute(sequence, 128)
    driver.commit(first)
    driver.commit(second)
    num_whole = 128 // page_size
    assert first.lease.page_ids[:num_whole] == second.lease.page_ids[:num_whole]
    assert driver.cache.stats.num_duplicate_pages == num_whole
    for _ in range(20):
        second.token_ids.append(3)
        assert driver.compute(second, 1)
        driver.commit(second)
        driver.check()
    driver.release(first)
    other = driver.open([9] * 24, "", 23)  # recycles the pages that were freed
    assert driver.compute(other, 24)
    driver.check()
    assert all(driver.cache._pool.num_holders(page) for page in second.lease.page_ids)
    driver.release(second)
    driver.release(other)
    driver.check()


@pytest.mark.parametrize("page_size", [1, 16])
def test_single_requests_leave_the_pool_balanced(page_size: int) -> None:
    driver = CacheDriver(256, page_size)
    rng = random.Random(6)
    lengths = [200] + [rng.randint(1, 64) for _ in range(50)]
    for length in lengths:
        sequence = driver.open([rng.randint(0, 9) for _ in range(5)], "", 4)
        assert driver.compute(sequence, 5)
        driver.commit(sequence)
        for _ in range(length):
            sequence.token_ids.append(rng.randint(0, 9))
            assert driver.compute(sequence, 1)
            driver.commit(sequence)
        driver.release(sequence)
        driver.check()
        assert driver.cache.num_locked == 0
    assert driver.cache.flush()
    assert driver.cache.num_free == driver.cache.num_pages


def test_flush_is_refused_while_a_lease_is_open() -> None:
    cache = PrefixCache(16, 4)
    lease = cache.open([1, 2, 3, 4, 5])
    assert cache.extend(lease, 5)
    cache.commit(lease, [1, 2, 3, 4, 5], 5)
    assert not cache.flush()
    assert cache.num_leases == 1
    assert cache.match_length([1, 2, 3, 4, 5]) == 5
    cache.release(lease, [1, 2, 3, 4, 5], 5)
    assert cache.flush()
    assert cache.num_free == cache.num_pages
    cache.check()


@pytest.mark.parametrize("page_size", [1, 2, 4, 8])
def test_a_lock_covers_the_matched_node_itself(page_size: int) -> None:
    cache = PrefixCache(16, page_size)
    tokens = list(range(1, 9))
    insert(cache, tokens)
    lease = cache.open(tokens)
    assert cache.evict(8) == 0
    assert cache.match_length(tokens) == 8
    cache.release(lease, tokens, 8)
    assert cache.evict(8) == 8 // page_size
    assert cache.num_free == 16


@pytest.mark.parametrize("page_size", [1, 4, 16])
def test_locked_and_evictable_pages_always_add_up_to_the_tree(page_size: int) -> None:
    rng = random.Random(11)
    driver = CacheDriver(24, page_size)
    for _ in range(2000):
        operation = rng.randrange(5)
        tokens = [rng.randrange(3) for _ in range(rng.randint(0, 3 * page_size))]
        if operation == 0 and len(driver.running) < 6:
            driver.open(tokens, "", rng.choice([None, len(tokens) - 1]))
        elif operation in (1, 2) and driver.running:
            sequence = rng.choice(driver.running)
            sequence.token_ids += tokens[:3]
            if driver.compute(sequence, rng.randint(0, 5)):
                driver.commit(sequence)
        elif operation == 3 and driver.running:
            driver.release(rng.choice(driver.running), publish=rng.random() < 0.8)
        else:
            driver.cache.evict(rng.randint(0, 3))
        driver.check()
        nodes = list(driver.cache._tree.walk())
        in_tree = sum(len(node.pages) for node in nodes)
        locked = sum(len(node.pages) for node in nodes if node.num_locks)
        assert driver.cache.num_evictable + locked == in_tree
        if page_size == 1:
            assert in_tree == num_tree_tokens(driver.cache)


def test_queries_shorter_than_a_page_and_diverging_inside_one_hit_to_the_token() -> None:
    cache = PrefixCache(16, 4)
    insert(cache, [1, 2, 3, 4, 5, 6, 7, 8])
    assert cache.match_length([1, 2, 3]) == 3
    assert cache.match_length([1, 2, 3, 4, 5, 9, 9, 9]) == 5
    assert cache.match_length([]) == 0
    used = cache.num_evictable
    assert insert(cache, [1, 2, 3]) == 3
    assert cache.num_evictable == used
    lease = cache.open([1, 2, 3, 4, 5, 9, 9, 9])
    assert lease.num_cached == 5
    assert [copy.num_tokens for copy in lease.page_copies] == [1]
    assert lease.page_copies[0].source != lease.page_copies[0].destination
    assert all(node.num_tokens for node in cache._tree.walk())
    cache.check()


def test_namespaces_share_nothing_and_vanish_when_empty() -> None:
    cache = PrefixCache(16, 4)
    insert(cache, [1, 2, 3, 4, 5], "a")
    assert cache.match_length([1, 2, 3, 4, 5], "b") == 0
    assert insert(cache, [1, 2, 3, 4, 5], "b") == 0
    assert insert(cache, [1, 2, 3, 4, 5], "a") == 5
    cache.flush()
    assert not cache._tree.roots
    lease = cache.open([7], "c")
    cache.release(lease, [7], 0)
    assert not cache._tree.roots
    cache.check()


def test_the_least_recently_used_end_goes_first_also_when_a_parent_becomes_a_leaf() -> None:
    cache = PrefixCache(16, 2)
    insert(cache, [1, 1, 2, 2])  # parent [1 1], child [2 2]
    insert(cache, [1, 1, 3, 3])  # parent used again, child [3 3]
    insert(cache, [8, 8])
    insert(cache, [1, 1, 2, 2])  # child [2 2] is now newer than [8 8]; the parent newest of all
    order = []
    for _ in range(4):
        known = {
            name: cache.match_length(ids) == len(ids)
            for name, ids in {
                "22": [1, 1, 2, 2],
                "33": [1, 1, 3, 3],
                "8": [8, 8],
                "1": [1, 1],
            }.items()
        }
        assert cache.evict(1) == 1
        order += [
            name
            for name, ids in {
                "22": [1, 1, 2, 2],
                "33": [1, 1, 3, 3],
                "8": [8, 8],
                "1": [1, 1],
            }.items()
            if known[name] and cache.match_length(ids) < len(ids)
        ]
    assert order == ["33", "8", "22", "1"]


def test_looking_is_not_using() -> None:
    cache = PrefixCache(8, 2)
    insert(cache, [1, 1])
    insert(cache, [2, 2])
    for _ in range(5):
        cache.match_length([1, 1])
    cache.evict(1)
    assert cache.match_length([1, 1]) == 0
    assert cache.match_length([2, 2]) == 2


def test_eviction_takes_only_as_many_pages_as_asked_from_the_end() -> None:
    cache = PrefixCache(16, 2)
    insert(cache, list(range(20)))
    assert cache.evict(3) == 3
    assert cache.match_length(list(range(20))) == 14
    cache.check()


def test_a_shorter_page_is_superseded_by_a_longer_one_when_it_is_unlocked() -> None:
    cache = PrefixCache(16, 4)
    first = cache.open([1, 2])
    assert cache.extend(first, 2)
    cache.commit(first, [1, 2], 2)
    insert(cache, [1, 2, 3])
    assert num_tree_tokens(cache) == 5  # the first lease still writes to its page
    cache.release(first, [1, 2], 2)
    assert num_tree_tokens(cache) == 3
    cache.check()
    insert(cache, [1, 2, 3, 4, 5])
    assert num_tree_tokens(cache) == 5
    assert cache.num_evictable == 2
    cache.check()


def test_misuse_is_an_invariant_error_and_bad_sizes_are_config_errors() -> None:
    cache = PrefixCache(4, 4)
    lease = cache.open([1, 2, 3])
    with pytest.raises(InvariantError, match="3 tokens committed"):
        cache.commit(lease, [1, 2, 3], 3)
    assert cache.extend(lease, 3)
    cache.commit(lease, [1, 2, 3], 3)
    with pytest.raises(InvariantError, match="now only 2"):
        cache.commit(lease, [1, 2, 3], 2)
    cache.release(lease, [1, 2, 3], 3)
    with pytest.raises(InvariantError, match="after its release"):
        cache.release(lease, [1, 2, 3], 3)
    with pytest.raises(ConfigError):
        PrefixCache(0, 4)
    with pytest.raises(ConfigError) as caught:
        PrefixCache(4, 0)
    assert caught.value.place == "page_size"


def test_extend_that_cannot_succeed_changes_nothing() -> None:
    cache = PrefixCache(4, 4)
    insert(cache, [1] * 8)
    lease = cache.open([2] * 20)
    assert not cache.extend(lease, 20)
    assert cache.match_length([1] * 8) == 8
    assert lease.page_ids == []
    assert cache.extend(lease, 16)
    cache.check()


def test_check_finds_damage() -> None:
    def damaged() -> PrefixCache:
        cache = PrefixCache(8, 4)
        insert(cache, [1, 2, 3, 4, 5])
        insert(cache, [1, 2, 3, 4, 9])
        cache.check()
        return cache

    cache = damaged()
    cache._pool._free.append(cache._pool._free[0])
    with pytest.raises(InvariantError):
        cache.check()
    cache = damaged()
    next(cache._tree.walk()).num_locks += 1
    with pytest.raises(InvariantError):
        cache.check()
    cache = damaged()
    cache._queue.num_evictable -= 1
    with pytest.raises(InvariantError):
        cache.check()
    cache = damaged()
    next(cache._tree.walk()).pages[0] = 7
    with pytest.raises(InvariantError):
        cache.check()
    cache.reset()
    cache.check()
    assert cache.num_free == 8


def test_statistics_count_tokens_hits_and_evictions() -> None:
    cache = PrefixCache(8, 4)
    insert(cache, [1, 2, 3, 4, 5])
    insert(cache, [1, 2, 3, 4, 6])
    cache.flush()
    stats = cache.stats.as_dict()
    assert (stats["num_lookups"], stats["num_hits"]) == (2, 1)
    assert (stats["num_lookup_tokens"], stats["num_hit_tokens"]) == (10, 4)
    assert stats["num_evicted_pages"] == 3
    assert cache.stats.hit_rate == pytest.approx(0.4)


def come_and_go(cache: PrefixCache, token_ids: list[int], **future: int) -> None:
    lease = cache.open(token_ids)
    assert cache.extend(lease, len(token_ids))
    cache.release(lease, token_ids, len(token_ids), **future)
    cache.check()


def test_what_others_will_continue_from_is_evicted_last_until_they_came() -> None:
    cache = PrefixCache(4, 2)
    awaited, other = [1, 1, 2, 2], [5, 5, 6, 6]
    come_and_go(cache, awaited, num_expected=2)
    come_and_go(cache, other)
    assert cache.evict(2) == 2
    assert cache.match_length(awaited) == 4
    assert cache.match_length(other) == 0
    come_and_go(cache, [*awaited, 3])
    come_and_go(cache, [*awaited, 4])  # the last one that was expected
    come_and_go(cache, other[:2])
    assert cache.evict(3) == 3
    assert cache.match_length(other) == 2


def test_what_is_waited_for_in_vain_grows_old() -> None:
    cache = PrefixCache(4, 2)
    awaited, other = [1, 1, 2, 2], [5, 5, 6, 6]
    come_and_go(cache, awaited, num_expected=1000)
    for _ in range(300):
        come_and_go(cache, other)
    cache.evict(2)
    assert cache.match_length(awaited) == 0
    assert cache.match_length(other) == 4


def test_an_output_that_nobody_will_use_goes_first_and_its_prompt_stays() -> None:
    cache = PrefixCache(8, 2)
    prompt, output, old = [1, 1, 2], [3, 3, 4, 4, 5, 5], [9, 9, 8, 8]
    come_and_go(cache, old)
    come_and_go(cache, prompt + output, num_used=len(prompt))
    assert cache.evict(3) == 3
    assert cache.match_length(old) == 4
    assert cache.match_length(prompt + output) == 4, "the page that the prompt ends in stays"
    come_and_go(cache, prompt + output, num_used=len(prompt))
    come_and_go(cache, prompt + output)  # somebody used it after all
    cache.evict(2)
    assert cache.match_length(old) == 0
    assert cache.match_length(prompt + output) == 9


def test_pages_that_others_have_come_to_are_not_given_up() -> None:
    cache = PrefixCache(8, 2)
    shared = [1, 1, 2, 2]
    first, second = cache.open(shared), cache.open(shared)
    for lease in (first, second):
        assert cache.extend(lease, 4)
        cache.commit(lease, shared, 4)
    cache.release(first, shared, 4, num_used=0)
    come_and_go(cache, [7, 7])
    cache.release(second, shared, 4)
    cache.check()
    cache.evict(1)
    assert cache.match_length([7, 7]) == 0
    assert cache.match_length(shared) == 4
