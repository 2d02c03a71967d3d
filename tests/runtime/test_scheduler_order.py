"""Nobody starves, a step's work is bounded, and little more is computed than has to be."""

from __future__ import annotations

import random

import pytest
from engine_driver import Driver

from radixlm.runtime.scheduler_limits import SchedulerLimits


def ids(seed: int, length: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(2, 200) for _ in range(length)]


def test_nobody_starves_behind_a_thousand_cache_friendly_requests():
    limits = SchedulerLimits(max_running=4, max_tokens_per_step=256, aging_tokens_per_step=8.0)
    driver = Driver(num_pages=400, limits=limits, check=False)
    friendly = ids(50, 400)
    driver.submit("warm", friendly, max_tokens=1)
    driver.run()
    for i in range(1000):
        driver.submit(
            f"q{i}", [*friendly, 200 + i % 50, i % 200 + 2], max_tokens=2, ignore_eos=True
        )
    driver.submit("cold", ids(51, 60), max_tokens=2)
    submitted_at, number = driver.num_steps, 0
    while "cold" not in driver.answers:
        for _ in range(3):  # the queue never gets shorter: more arrive than are served
            driver.submit(
                f"flow{number}", [*friendly, 7 + number % 100], max_tokens=2, ignore_eos=True
            )
            number += 1
        driver.step()
        assert driver.engine.stats()["waiting"] > 900
        assert driver.num_steps - submitted_at < 1500, "starved"
    # It was overtaken by those that were there, and by those of the next 400 / 8 steps, but by nobody after.
    assert driver.num_steps - submitted_at > 50


def test_the_work_of_a_step_does_not_grow_with_the_queue():
    calls: list[int] = []
    for length in (50, 1000):
        driver = Driver(num_pages=100, limits=SchedulerLimits(max_running=2), check=False)
        for i in range(length):
            driver.submit(str(i), ids(i, 40), max_tokens=3, ignore_eos=True)
        cache, looked_up = driver.engine.cache, [0]
        original = cache.match_length

        def counting(*arguments, original=original, looked_up=looked_up):
            looked_up[0] += 1
            return original(*arguments)

        cache.match_length = counting  # type: ignore[method-assign]
        for _ in range(30):
            driver.step()
        calls.append(looked_up[0])
    assert calls[1] <= calls[0] * 1.1
    assert calls[1] <= 30 * (16 + 4)


# ---------------------------------------------------------------------------------------------- offline optimum


def union_trie_size(sequences) -> int:
    seen = set()
    for sequence in sequences:
        prefix = 0
        for token in sequence:
            prefix = hash((prefix, token))
            seen.add(prefix)
    return len(seen)


def shots_then_questions(driver):
    """Many questions behind one long prefix, all at once."""
    prefix = ids(60, 700)
    for i in range(64):
        driver.submit(str(i), [*prefix, *ids(61 + i, 45)], max_tokens=8, ignore_eos=True)
    driver.run()


def conversations(driver):
    """Several turns each, every turn continues the whole history."""
    histories = {c: ids(200 + c, 30) for c in range(8)}
    for turn in range(5):
        for c, history in histories.items():
            history += ids(1000 + 10 * c + turn, 50)
            driver.submit(f"{c}.{turn}", history, max_tokens=40, ignore_eos=True)
        driver.run()
        for c, history in histories.items():
            history += driver.tokens(f"{c}.{turn}")


def tree_of_thoughts(driver):
    """Branches that fork from branches."""
    level = [ids(300, 450)]
    for depth in range(3):
        names = []
        for b, branch in enumerate(level):
            for child in range(3):
                names.append((f"{depth}.{b}.{child}", [*branch, *ids(400 + child, 6)]))
                driver.submit(*names[-1], max_tokens=24, ignore_eos=True)
        driver.run()
        level = [[*prompt, *driver.tokens(name)] for name, prompt in names]


@pytest.mark.parametrize("load", [shots_then_questions, conversations, tree_of_thoughts])
def test_little_more_is_computed_than_the_union_of_all_texts(load):
    driver = Driver(num_pages=4000, check=False)
    texts, original = {}, driver.submit

    def submit(name, prompt, **sampling):
        texts[name] = list(prompt)
        original(name, prompt, **sampling)

    driver.submit = submit  # type: ignore[method-assign]
    load(driver)
    optimum = union_trie_size([*text, *driver.tokens(name)] for name, text in texts.items())
    assert driver.runner.num_computed <= 1.05 * optimum
    assert driver.engine.cache.stats.num_evicted_pages == 0
