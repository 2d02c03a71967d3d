"""Copy-on-write of a match's last page: who may evict, grow or publish a page that is still to be copied from."""

from __future__ import annotations

from cache_driver import CacheDriver, insert

from radixlm.radix_cache.cache import PrefixCache


def test_a_copy_that_the_pool_has_no_room_for_falls_back_to_whole_pages() -> None:
    cache = PrefixCache(3, 4)
    insert(cache, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    lease = cache.open([1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0], max_match=11)
    assert lease.num_cached == 4  # a copy would need its source and two more pages: four in all
    assert not lease.page_copies
    assert cache.extend(lease, 12)
    cache.check()
    short = PrefixCache(4, 4)
    insert(short, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    lease = short.open([1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0], max_match=11)
    assert lease.num_cached == 6
    assert short.extend(lease, 12)
    short.check()


def test_a_lease_released_before_its_copy_ran_publishes_nothing_of_the_copied_page() -> None:
    driver = CacheDriver(16, 4)
    first = driver.open([1, 2, 3, 4, 5, 6])
    assert driver.compute(first, 6)
    driver.release(first)
    second = driver.open([1, 2, 3, 4, 5, 9, 9], "", 6)
    assert second.lease.page_copies
    driver.release(second)
    driver.check()
    assert driver.cache.match_length([1, 2, 3, 4, 5, 9]) == 5


def test_the_source_of_a_copy_survives_its_writer_until_the_copy_ran() -> None:
    driver = CacheDriver(4, 4)
    writer = driver.open([1, 2])
    assert driver.compute(writer, 2)
    driver.commit(writer)
    reader = driver.open([1, 2, 7, 7], "", 3)
    source = reader.lease.page_copies[0].source
    # The writer's page becomes a page the tree has already, so its own would be free, but for the reader.
    other = driver.open([1, 2, 3, 4], "", 0)
    assert driver.compute(other, 4)
    driver.commit(other)
    writer.token_ids += [3, 4]
    assert driver.compute(writer, 2)
    driver.commit(writer)
    driver.check()
    driver.release(writer)
    driver.check()
    assert driver.cache._pool.num_holders(source) == 1
    driver.copies_done(reader)
    driver.check()
    assert driver.cache._pool.num_holders(source) == 0


def test_a_page_that_fills_up_while_a_reader_has_yet_to_copy_from_it_stays_locked() -> None:
    driver = CacheDriver(8, 4)
    writer = driver.open([1, 2])
    assert driver.compute(writer, 2)
    driver.commit(writer)
    reader = driver.open([1, 2, 7, 7], "", 3)
    source = reader.lease.page_copies[0].source
    writer.token_ids += [3, 4, 5, 6, 7, 8, 9]
    assert driver.compute(writer, 7)
    driver.commit(writer)
    driver.check()
    driver.release(writer)
    driver.check()
    assert driver.cache.evict(8) == 2  # all of the writer's pages but the one to copy from
    driver.check()
    assert driver.cache._pool.num_holders(source) == 2
    driver.copies_done(reader)
    driver.check()
    driver.release(reader)
    assert driver.cache.flush()
    assert driver.cache.num_free == 8


def test_a_page_whose_tokens_another_page_extends_stays_where_readers_locked_it() -> None:
    """Otherwise the writer publishes it again later, evictable while a reader still has to copy from it."""
    driver = CacheDriver(8, 8)
    writer = driver.open([1, 2, 3])
    assert driver.compute(writer, 3)
    driver.commit(writer)
    reader = driver.open([1, 2, 9], "", 2)
    assert reader.lease.page_copies
    other = driver.open([1, 2, 3, 4, 5])
    assert driver.compute(other, 5)
    driver.commit(other)
    writer.token_ids.append(4)  # [1, 2, 3, 4], which starts the page of `other`
    assert driver.compute(writer, 1)
    driver.commit(writer)
    driver.check()
    writer.token_ids.append(7)  # and now goes its own way
    assert driver.compute(writer, 1)
    driver.commit(writer)
    driver.check()
    driver.release(writer)
    driver.check()
    driver.cache.evict(8)
    driver.check()
    driver.copies_done(reader)
    driver.check()
