"""Hints: what a program knows of its future changes order and eviction, never an answer."""

from __future__ import annotations

import pytest
from engine_driver import Driver, alone, without_seed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from radixlm.runtime import messages as m
from radixlm.runtime.scheduler_limits import SchedulerLimits

HINTS = st.builds(
    m.Hints, num_forks=st.integers(0, 5), last_use=st.booleans(), priority=st.integers(-3, 300)
)
REQUESTS = st.lists(
    st.tuples(
        st.lists(st.sampled_from([40, 41]), min_size=1, max_size=60),
        st.integers(0, 20),
        st.integers(1, 2),
        HINTS,
    ),
    min_size=1,
    max_size=8,
)


def ids(seed: int, count: int) -> list[int]:
    return [2 + (seed * 31 + i * 7) % 250 for i in range(count)]


@given(REQUESTS, st.integers(0, 6))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_answers_do_not_depend_on_hints(requests: list, num_steps: int) -> None:
    driver = Driver(
        num_pages=24, page_size=4, limits=SchedulerLimits(max_tokens_per_step=32, max_running=4)
    )
    for number, (prompt, num_tokens, num_samples, hints) in enumerate(requests):
        driver.submit(
            str(number),
            prompt,
            max_tokens=num_tokens,
            n=num_samples,
            seed=5,
            temperature=0.7,
            hints=hints,
        )
        for _ in range(num_steps):
            driver.step()
    driver.run()
    for number, (prompt, num_tokens, num_samples, _) in enumerate(requests):
        expected = alone(prompt, max_tokens=num_tokens, n=num_samples, seed=5, temperature=0.7)
        answer = driver.answers[str(number)]
        if isinstance(answer, m.Done) and num_tokens + len(prompt) <= 80:
            assert without_seed(answer).samples == expected.samples


def cached_tokens(hints: m.Hints, num_others: int) -> int:
    """Of a branch that goes on after others have filled the cache."""
    driver = Driver(num_pages=16, page_size=4)
    prompt = ids(1, 20)
    driver.submit("first", prompt, max_tokens=9, ignore_eos=True, hints=hints)
    driver.run()
    text = [*prompt, *driver.tokens("first")]
    for number in range(num_others):
        driver.submit(f"other{number}", ids(50 + number, 16), max_tokens=2, ignore_eos=True)
        driver.run()
    driver.submit("second", [*text, 3, 4, 5], max_tokens=1)
    driver.run()
    return driver.done("second").usage.cached_tokens


def test_a_branch_that_goes_on_finds_its_text_after_others_filled_the_cache() -> None:
    assert cached_tokens(m.Hints(), 3) < 28
    assert cached_tokens(m.Hints(num_forks=1), 3) == 28


@pytest.mark.parametrize(("hints", "num_cached"), [(m.Hints(), 8), (m.Hints(last_use=True), 16)])
def test_the_output_of_a_branch_that_ends_makes_room_before_what_is_older(
    hints: m.Hints, num_cached: int
) -> None:
    driver = Driver(num_pages=16, page_size=4)
    for name, number, num_tokens in (("old", 1, 16), ("first", 2, 20), ("third", 3, 20)):
        driver.submit(
            name, ids(number, num_tokens), max_tokens=9, ignore_eos=True,
            hints=hints if name == "first" else m.Hints(),
        )  # fmt: skip
        driver.run()
    driver.submit("again", [*ids(1, 16), 3], max_tokens=1)
    driver.run()
    assert driver.done("again").usage.cached_tokens == num_cached


@pytest.mark.parametrize("late", [m.Hints(priority=1000), m.Hints()])
def test_priority_never_lets_a_later_request_preempt_an_earlier_one(late: m.Hints) -> None:
    driver = Driver(num_pages=12, page_size=4)
    driver.submit("early", ids(1, 8), max_tokens=30, ignore_eos=True)
    driver.step()
    driver.submit("late", ids(2, 8), max_tokens=30, ignore_eos=True, hints=late)
    driver.run()
    assert driver.ended_at["early"] < driver.ended_at["late"]
