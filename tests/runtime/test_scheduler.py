"""What the scheduler does with many requests: chunks beside streams, followers and takeover, preemption, fairness, little work."""

from __future__ import annotations

import random

import numpy as np
import pytest
from engine_driver import Driver, alone

from radixlm.errors import ConfigError, InvariantError
from radixlm.runtime import messages as m
from radixlm.runtime.request import LEGAL_TRANSITIONS, RequestStatus
from radixlm.runtime.scheduler_limits import SchedulerLimits


def ids(seed: int, length: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(2, 200) for _ in range(length)]


def assert_as_alone(driver: Driver, name: str, prompt, **sampling) -> None:
    assert driver.tokens(name) == alone(prompt, **sampling).samples[0].token_ids


# ---------------------------------------------------------------------------------------------- budget and chunks


def test_a_long_prompt_never_stops_the_streams():
    driver = Driver(
        num_pages=600,
        limits=SchedulerLimits(max_tokens_per_step=256, max_prefill_tokens_beside_decode=64),
    )
    for name in "abc":
        driver.submit(name, ids(ord(name), 20), max_tokens=200, ignore_eos=True)
    for _ in range(5):
        driver.step()
    driver.submit("long", ids(9, 4000), max_tokens=2, ignore_eos=True)
    first = len(driver.runner.plans)
    while "long" not in driver.answers:
        driver.step()
    beside = driver.runner.plans[first:-1]
    assert len(beside) >= 4000 // 64
    for plan in beside:
        assert (
            np.diff(plan.query_starts)[:3] == 1
        ).all()  # every stream got its token in every step
        assert plan.token_ids.size <= 3 + 64
    driver.run()


def test_a_short_prompt_does_not_wait_behind_a_long_one():
    driver = Driver(num_pages=600, limits=SchedulerLimits(max_tokens_per_step=64))
    driver.submit("long", ids(1, 3000), max_tokens=2, ignore_eos=True)
    driver.step()
    driver.submit("short", ids(2, 20), max_tokens=1, ignore_eos=True)
    driver.run()
    assert driver.ended_at["short"] <= 4
    assert driver.ended_at["long"] > 40


def test_of_equal_prompts_each_ends_before_the_next_begins():
    driver = Driver(num_pages=600, limits=SchedulerLimits(max_tokens_per_step=100))
    for i in range(4):
        driver.submit(str(i), ids(20 + i, 1000), max_tokens=1)
    driver.run()
    ends = [driver.ended_at[str(i)] for i in range(4)]
    assert ends == sorted(ends)
    assert ends[0] <= 11
    assert ends[1] <= 21


def test_the_budget_of_a_step_is_never_exceeded():
    limits = SchedulerLimits(
        max_tokens_per_step=24, max_running=8, max_prefill_tokens_beside_decode=8
    )
    driver = Driver(limits=limits)
    driver.load("g", b'{"name":"ab"}', b'{"name":"abc"}')
    for i in range(20):
        driver.submit(
            str(i), ids(i, 30), program="g" if i % 3 == 0 else "", max_tokens=20, n=1 + i % 2
        )
    driver.run()
    assert max(plan.token_ids.size for plan in driver.runner.plans) <= 24
    assert max(plan.context_lens.size for plan in driver.runner.plans) <= 8


def test_limits_that_cannot_work_are_refused_by_name():
    with pytest.raises(ConfigError, match="max_running=9 exceeds"):
        SchedulerLimits(max_running=9, max_tokens_per_step=8)
    with pytest.raises(ConfigError, match="aging_tokens_per_step"):
        SchedulerLimits(aging_tokens_per_step=0)


# ---------------------------------------------------------------------------------------------- sharing


@pytest.mark.parametrize("page_size", [1, 16])
def test_r003_a_prompt_equal_to_a_cached_one_computes_one_token(page_size):
    driver = Driver(page_size=page_size)
    prompt = ids(3, 37)
    for name in ("first", "second"):
        driver.submit(name, prompt, max_tokens=5, ignore_eos=True)
        driver.run()
    assert driver.tokens("second") == driver.tokens("first")
    assert driver.done("second").usage.cached_tokens == 36
    longer = [*prompt, *driver.tokens("first")[:2]]
    driver.submit("third", longer, max_tokens=3, ignore_eos=True)
    driver.run()
    assert driver.tokens("third") == driver.tokens("first")[2:]
    assert driver.done("third").usage.cached_tokens == 38


def test_r004_prompts_with_a_common_prefix_that_arrive_together_compute_it_once():
    limits = SchedulerLimits(max_tokens_per_step=64)
    driver = Driver(limits=limits)
    prefix = ids(4, 401)  # not a whole number of pages
    prompts = {str(i): [*prefix, 210 + i, *ids(100 + i, 7)] for i in range(8)}
    for name, prompt in prompts.items():
        driver.submit(name, prompt, max_tokens=6, ignore_eos=True)
    driver.run()
    assert driver.runner.num_computed == 401 + 8 * (8 + 5)
    assert sum(driver.done(name).usage.cached_tokens for name in prompts) == 7 * 401
    for name, prompt in prompts.items():
        assert_as_alone(driver, name, prompt, max_tokens=6, ignore_eos=True)


@pytest.mark.parametrize("end", ["abort", "fault"])
def test_the_first_follower_takes_over_where_a_dead_leader_stopped(end):
    driver = Driver(limits=SchedulerLimits(max_tokens_per_step=32, max_running=8))
    prefix = ids(5, 300)
    for i in range(4):
        driver.submit(str(i), [*prefix, 220 + i], max_tokens=3, ignore_eos=True)
    for _ in range(4):
        driver.step()
    assert driver.engine.stats()["parked"] == 3
    computed = driver.runner.num_computed
    if end == "abort":
        driver.cancel("0")
    else:
        original = driver.runner.launch

        def fail(plan):
            driver.runner.launch = original
            raise RuntimeError("lost")

        driver.runner.launch = fail
        driver.step()  # the leader fails, its followers are ready
    driver.step()  # the first of them leads the others
    assert driver.engine.stats()["parked"] == 2
    driver.run()
    for i in range(1, 4):
        assert_as_alone(driver, str(i), [*prefix, 220 + i], max_tokens=3, ignore_eos=True)
    # Nothing that the leader had committed is computed again, and the rest only once.
    assert driver.runner.num_computed <= 300 + 3 * 3 + 32
    assert computed >= 96


def test_a_preempted_leader_hands_over_to_its_followers():
    driver = Driver(
        num_pages=24,
        limits=SchedulerLimits(
            max_tokens_per_step=16, max_running=8, max_prefill_tokens_beside_decode=8
        ),
    )
    driver.submit("stream", ids(6, 200), max_tokens=150, ignore_eos=True)
    while driver.engine.stats()["running"] == 0 or driver.engine.stats()["sampled_tokens"] < 4:
        driver.step()
    prefix = ids(7, 120)
    for i in range(3):
        driver.submit(str(i), [*prefix, 220 + i], max_tokens=40, ignore_eos=True)
    driver.run()
    assert driver.engine.stats()["preemptions"] >= 1
    for i in range(3):
        assert_as_alone(driver, str(i), [*prefix, 220 + i], max_tokens=40, ignore_eos=True)
    assert_as_alone(driver, "stream", ids(6, 200), max_tokens=150, ignore_eos=True)


def test_namespaces_share_nothing():
    driver = Driver()
    for space in ("a", "b"):
        driver.submit(space, ids(8, 50), namespace=space, max_tokens=2)
    driver.run()
    assert driver.done("a").usage.cached_tokens == driver.done("b").usage.cached_tokens == 0
    assert driver.engine.stats()["follows"] == 0


def test_streams_on_one_prefix_are_one_group_of_the_plan():
    driver = Driver()
    prefix = ids(9, 160)
    for i in range(6):
        driver.submit(str(i), [*prefix, 210 + i], max_tokens=8, ignore_eos=True)
    driver.run()
    sizes = {
        g.sequences.size: g.num_shared_pages
        for plan in driver.runner.plans
        for g in plan.shared_groups
    }
    assert sizes[6] == 10


# ---------------------------------------------------------------------------------------------- pages


def test_r001_an_aborted_half_prefilled_prompt_is_not_computed_on():
    driver = Driver(num_pages=256, limits=SchedulerLimits(max_tokens_per_step=64))
    prompt = ids(10, 500)
    driver.submit("a", prompt, max_tokens=5)
    driver.step()
    driver.step()
    driver.cancel("a")
    driver.run()
    assert driver.runner.num_computed == 128
    assert driver.engine.cache.num_evictable == 8  # what the tree owns; the rest is free
    driver.submit("b", [*prompt[:100], 7], max_tokens=5)
    driver.run()
    assert driver.done("b").usage.cached_tokens == 100
    assert_as_alone(driver, "b", [*prompt[:100], 7], max_tokens=5)


def test_r005_page_tables_move_to_the_pages_published_first():
    # Too short a wait to be worth following, so both compute the same prompt side by side.
    driver = Driver(
        num_pages=40, limits=SchedulerLimits(max_tokens_per_step=512, min_follow_tokens=500)
    )
    prompt = ids(11, 128)
    for name in "ab":
        driver.submit(name, prompt, max_tokens=20, ignore_eos=True)
    driver.step()
    assert driver.engine.cache.stats.num_duplicate_pages >= 7
    driver.submit("c", ids(12, 300), max_tokens=5, ignore_eos=True)  # recycles the freed pages
    driver.run()
    for name in "ab":
        assert_as_alone(driver, name, prompt, max_tokens=20, ignore_eos=True)


@pytest.mark.parametrize("page_size", [1, 16])
def test_r006_plain_requests_leave_the_pool_balanced(page_size):
    driver = Driver(num_pages=256 if page_size == 1 else 20, page_size=page_size)
    driver.submit("long", ids(13, 5), max_tokens=200, ignore_eos=True)
    driver.run()
    rng = random.Random(1)
    for i in range(50):
        driver.submit(
            str(i), ids(i, rng.randint(1, 20)), max_tokens=rng.randint(1, 64), ignore_eos=True
        )
        driver.run()  # asserts that free + evictable == capacity


def test_preempted_requests_continue_exactly_and_the_senior_one_is_never_stopped():
    driver = Driver(num_pages=12, limits=SchedulerLimits(max_tokens_per_step=64))
    prompts = {str(i): ids(20 + i, 30) for i in range(4)}
    for name, prompt in prompts.items():
        driver.submit(
            name, prompt, max_tokens=60, ignore_eos=True, temperature=1.0, seed=3, stream=True
        )
    driver.run()
    assert driver.engine.stats()["preemptions"] >= 2
    assert min(driver.ended_at, key=lambda name: driver.ended_at[name]) == "0"
    for name, prompt in prompts.items():
        assert_as_alone(
            driver, name, prompt, max_tokens=60, ignore_eos=True, temperature=1.0, seed=3
        )
        assert tuple(driver.streams[name, 0]) == driver.tokens(name)[:-1]


def test_priority_decides_among_equals():
    driver = Driver(limits=SchedulerLimits(max_running=1))
    for i in range(4):
        driver.submit(
            str(i), ids(30 + i, 10), max_tokens=3, hints=m.Hints(priority=i), ignore_eos=True
        )
    driver.run()
    assert sorted(driver.ended_at, key=lambda name: driver.ended_at[name]) == ["3", "2", "1", "0"]


def test_r024_answers_are_the_same_cold_warm_and_in_a_batch():
    prompts = {str(i): ids(40 + i, 200) for i in range(16)}
    mixed, warm = Driver(num_pages=600), Driver(num_pages=600)
    for name, prompt in prompts.items():
        mixed.submit(name, prompt, max_tokens=8, ignore_eos=True)
        for run in ("cold", "warm"):
            warm.submit(run + name, prompt, max_tokens=8, ignore_eos=True)
            warm.run()
    mixed.run()
    for name, prompt in prompts.items():
        expected = alone(prompt, max_tokens=8, ignore_eos=True).samples
        assert mixed.done(name).samples == warm.done("cold" + name).samples == expected
        assert warm.done("warm" + name).samples == expected
        assert warm.done("warm" + name).usage.cached_tokens == 199


# ---------------------------------------------------------------------------------------------- states


def test_only_the_legal_transitions_are_possible():
    driver = Driver()
    driver.submit("a", ids(1, 5), max_tokens=9, ignore_eos=True)
    driver.step()
    request = driver.engine._scheduler.running[0]
    for status in RequestStatus:
        if status not in LEGAL_TRANSITIONS[request.status]:
            with pytest.raises(InvariantError, match="cannot go from running"):
                request.move_to(status)
    assert not LEGAL_TRANSITIONS[RequestStatus.FINISHED]
