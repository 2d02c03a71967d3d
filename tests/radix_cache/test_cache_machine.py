"""A hypothesis state machine: any order of operations against a naive model and a pretend K/V store."""

from __future__ import annotations

import pytest
from cache_driver import CacheDriver, Sequence_
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

TOKENS = st.integers(0, 1)
NAMESPACES = st.sampled_from(["", "", "", "tenant"])


class CacheMachine(RuleBasedStateMachine):
    """Sequences open, compute, commit and end in any order while pages run short."""

    @initialize(
        page_size=st.sampled_from([1, 2, 3, 4, 16]),
        num_pages=st.integers(3, 40),
        is_told=st.booleans(),
    )
    def start(self, page_size: int, num_pages: int, is_told: bool) -> None:
        self.driver = CacheDriver(num_pages, page_size)
        self.is_told = (
            is_told  # of the future, which changes the order of eviction and nothing else
        )
        self.history: list[list[int]] = []

    def pick(self, data: st.DataObject) -> Sequence_:
        return data.draw(st.sampled_from(self.driver.running))

    @rule(data=st.data(), namespace=NAMESPACES, all_but_one=st.booleans())
    def open(self, data: st.DataObject, namespace: str, all_but_one: bool) -> None:
        page_size = self.driver.cache.page_size
        known = self.history + [sequence.token_ids for sequence in self.driver.running]
        prompt: list[int] = []
        if known and data.draw(st.integers(0, 4)):
            prompt = data.draw(st.sampled_from(known))
            prompt = prompt[: data.draw(st.integers(0, len(prompt)))]
        prompt = prompt + data.draw(st.lists(TOKENS, max_size=2 * page_size))
        self.driver.open(prompt, namespace, len(prompt) - 1 if all_but_one else None)

    @precondition(lambda self: self.driver.running)
    @rule(data=st.data(), new=st.lists(TOKENS, max_size=6), num_tokens=st.integers(0, 40))
    def compute_and_commit(self, data: st.DataObject, new: list[int], num_tokens: int) -> None:
        sequence = self.pick(data)
        sequence.token_ids += new
        if self.driver.compute(sequence, num_tokens):
            self.driver.commit(sequence)

    @rule(
        data=st.data(),
        prompt=st.lists(TOKENS, min_size=1, max_size=20),
        outputs=st.lists(st.lists(TOKENS, max_size=6), min_size=2, max_size=3),
    )
    def race(self, data: st.DataObject, prompt: list[int], outputs: list[list[int]]) -> None:
        """Sequences with one prompt start at once, so that each computes what the others publish."""
        driver = self.driver
        known = [sequence.token_ids for sequence in driver.running]
        base = data.draw(st.sampled_from(known)) if known else []
        started = [driver.open(base + prompt, "", len(base + prompt) - 1) for _ in outputs]
        for sequence, output in zip(started, outputs, strict=True):
            sequence.token_ids += output
            driver.compute(sequence, len(sequence.token_ids))
        for sequence in started:
            driver.commit(sequence)

    @precondition(lambda self: self.driver.running)
    @rule(data=st.data(), num_tokens=st.integers(1, 9))
    def compute_only(self, data: st.DataObject, num_tokens: int) -> None:
        self.driver.compute(self.pick(data), num_tokens)

    @precondition(lambda self: self.driver.running)
    @rule(data=st.data(), token_ids=st.lists(TOKENS, min_size=1, max_size=12))
    def decode(self, data: st.DataObject, token_ids: list[int]) -> None:
        sequence = self.pick(data)
        for token_id in token_ids:
            sequence.token_ids.append(token_id)
            if self.driver.compute(sequence, 1):
                self.driver.commit(sequence)

    @precondition(lambda self: self.driver.running)
    @rule(data=st.data())
    def copies_done(self, data: st.DataObject) -> None:
        self.driver.copies_done(self.pick(data))

    @precondition(lambda self: self.driver.running)
    @rule(data=st.data(), publish=st.booleans())
    def release(self, data: st.DataObject, publish: bool) -> None:
        sequence = self.pick(data)
        self.history.append(sequence.token_ids)
        future: dict[str, int] = {}
        if self.is_told:
            name = data.draw(st.sampled_from(["num_expected", "num_used"]))
            future[name] = data.draw(st.integers(0, 3 if name == "num_expected" else 40))
        self.driver.release(sequence, publish=publish, **future)

    @rule(num_pages=st.integers(0, 6))
    def evict(self, num_pages: int) -> None:
        cache = self.driver.cache
        for _ in range(num_pages):
            before, leaves = cache.num_evictable, self.driver.evictable_leaf_pages()
            assert cache.evict(1) == min(1, before)
            if before:
                gone = [page for page in leaves if not cache._pool.num_holders(page)]
                used = self.driver.page_used
                assert len(gone) == 1
                assert self.is_told or used[gone[0]] == min(used[page] for page in leaves)

    @rule(num_pages=st.integers(0, 40))
    def evict_many(self, num_pages: int) -> None:
        cache = self.driver.cache
        wanted = min(num_pages, cache.num_evictable)
        free = cache.num_free
        assert cache.evict(num_pages) == wanted
        assert cache.num_free == free + wanted

    @rule()
    def flush(self) -> None:
        cache = self.driver.cache
        assert cache.flush() == (not self.driver.running)
        if not self.driver.running:
            assert cache.num_free == cache.num_pages

    @invariant()
    def everything_reads_back(self) -> None:
        if hasattr(self, "driver"):
            self.driver.check()

    @invariant()
    def what_was_committed_is_found_until_something_was_evicted(self) -> None:
        if hasattr(self, "driver") and not self.driver.cache.stats.num_evicted_pages:
            for namespace, prefix in self.driver.committed:
                assert self.driver.cache.match_length(prefix, namespace) == len(prefix)

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        for sequence in list(self.driver.running):
            self.driver.release(sequence)
            self.driver.check()
        assert self.driver.cache.num_locked == 0
        assert self.driver.cache.flush()
        assert self.driver.cache.num_free == self.driver.cache.num_pages
        assert not self.driver.cache._tree.roots


# longer than the five minutes that hypothesis may shrink for: a failure must be reported, not cut off
TestCacheMachine = pytest.mark.timeout(900)(CacheMachine.TestCase)
TestCacheMachine.settings = settings(
    max_examples=70,
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
