"""Aborts in every state, faults of grammars, rows and runners, broken stores, queries: the engine lives on."""

from __future__ import annotations

import numpy as np
import pytest
from engine_driver import TOKEN_BYTES, VOCAB_SIZE, Driver, alone, ids_of

from radixlm.errors import InvariantError
from radixlm.runtime import messages as m

PROMPT = tuple(range(10, 47))  # 37 tokens


@pytest.mark.parametrize("num_steps", [0, 1, 2, 3, 8, 20])
def test_an_abort_in_any_state_frees_the_pages_at_once(num_steps):
    driver = Driver(num_pages=24)
    driver.submit("a", list(range(5, 205)), max_tokens=30, ignore_eos=True, n=2, temperature=1.0)
    driver.submit("follower", [*range(5, 205), 9], max_tokens=3)
    driver.submit("grammar", PROMPT, program="g", max_tokens=3)
    for _ in range(num_steps):
        driver.step()
    for name in ("a", "follower", "grammar"):
        driver.cancel(name)
    driver.cancel("never heard of")
    driver.assert_balanced()
    driver.run()
    for name in ("a", "follower", "grammar"):
        if name in driver.answers and isinstance(driver.answers[name], m.Done):
            continue
        assert driver.failed(name).error.name == "Aborted"
    assert not driver.engine.live_requests()


def test_r032_a_grammar_that_raises_ends_only_its_request():
    class Broken(Exception):
        pass

    def load(data):
        from engine_driver import ChoiceMatcher

        class Raising(ChoiceMatcher):
            def advance(self, token_id):
                if len(self.text) == 3:
                    raise Broken("inside the matcher")
                return super().advance(token_id)

        return lambda: Raising((b"abcdef", b"abqqqq", b"x"))

    driver = Driver(load_grammar=load)
    driver.load("g")
    driver.submit(
        "a",
        PROMPT,
        program="g",
        max_tokens=9,
        jump_forward=False,
        logit_bias={ids_of(b"a")[0]: 900.0},
    )
    for name in "bcd":
        driver.submit(name, [*PROMPT, ord(name)], max_tokens=9, ignore_eos=True)
    driver.run()
    assert "inside the matcher" in driver.failed("a").error.message
    for name in "bcd":
        assert (
            driver.tokens(name)
            == alone([*PROMPT, ord(name)], max_tokens=9, ignore_eos=True).samples[0].token_ids
        )


def test_a_mask_that_raises_or_is_empty_ends_only_its_request():
    def load(data):
        from engine_driver import ChoiceMatcher

        class Bad(ChoiceMatcher):
            def fill_mask(self, out, budget=None):
                if data == b"raise":
                    raise ValueError("no mask today")
                out[:] = 0

        return lambda: Bad((b"ab", b"xy"))

    driver = Driver(load_grammar=load)
    driver.load("r", b"raise")
    driver.load("e", b"empty")
    driver.submit("raises", PROMPT, program="r", max_tokens=4, n=2)
    driver.submit("empty", PROMPT, program="e", max_tokens=4)
    driver.submit("free", PROMPT, max_tokens=4)
    driver.run()
    assert "no mask today" in driver.failed("raises").error.message
    assert "no token" in driver.failed("empty").error.message
    assert driver.tokens("free") == alone(PROMPT, max_tokens=4).samples[0].token_ids


def test_a_row_without_a_finite_logit_ends_only_its_request():
    driver = Driver(
        steer=lambda ids: {t: float("-inf") for t in range(VOCAB_SIZE)} if ids[0] == 99 else {}
    )
    driver.submit("bad", [99, 98, 97], max_tokens=4)
    driver.submit("good", PROMPT, max_tokens=4)
    driver.run()
    assert "no finite logit" in driver.failed("bad").error.message
    driver.done("good")


@pytest.mark.parametrize("failing", ["launch", "finish"])
def test_an_exception_of_the_runner_ends_the_requests_of_that_step_only(failing):
    driver = Driver()
    driver.submit("a", PROMPT, max_tokens=30, ignore_eos=True)
    driver.submit("waits", PROMPT, program="g", max_tokens=4)
    for _ in range(5):
        driver.step()
    original = getattr(driver.runner, failing)

    def fail(*arguments):
        setattr(driver.runner, failing, original)
        raise RuntimeError("device lost")

    setattr(driver.runner, failing, fail)
    driver.run()
    assert "device lost" in driver.failed("a").error.message
    assert len(driver.failed("a").token_ids) > 0
    driver.load("g", b"true", b"false")
    driver.submit("b", PROMPT, max_tokens=30, ignore_eos=True)
    driver.run()
    assert driver.text("waits") in (b"true", b"false")
    assert driver.tokens("b") == alone(PROMPT, max_tokens=30, ignore_eos=True).samples[0].token_ids


def test_a_broken_invariant_ends_what_ran_and_the_engine_lives_on():
    driver = Driver()
    driver.submit("a", PROMPT, max_tokens=30, ignore_eos=True)
    driver.submit("waits", PROMPT, program="g", max_tokens=4)
    for _ in range(3):
        driver.step()
    cache = driver.engine.cache
    original = cache.commit
    cache.commit = lambda *a, **k: (_ for _ in ()).throw(InvariantError("pages do not add up"))  # type: ignore[method-assign]
    for _ in range(20):
        driver.step()
    cache.commit = original  # type: ignore[method-assign]
    assert "pages do not add up" in driver.failed("a").error.message
    driver.load("g", b"true", b"false")
    driver.submit("b", PROMPT, max_tokens=3, ignore_eos=True)
    driver.run()
    assert driver.tokens("b") == alone(PROMPT, max_tokens=3, ignore_eos=True).samples[0].token_ids
    assert driver.engine.stats()["repairs"] >= 1
    driver.done("waits")


def test_r007_a_flush_is_refused_while_requests_run_and_works_when_idle():
    driver = Driver()
    driver.submit("a", PROMPT, max_tokens=20, ignore_eos=True)
    driver.step()
    reply = driver.query("flush")
    assert reply.error is not None
    assert "1 running" in reply.error.message
    driver.run()
    assert driver.tokens("a") == alone(PROMPT, max_tokens=20, ignore_eos=True).samples[0].token_ids
    assert driver.query("flush").error is None
    assert driver.engine.cache.num_free == driver.engine.cache.num_pages


def test_queries_answer_with_counters_or_an_error():
    driver = Driver()
    driver.submit("a", PROMPT, max_tokens=2)
    driver.run()
    counters = driver.query("stats").counters
    assert counters["done"] == 1
    assert counters["computed_tokens"] == 38
    assert counters["free_pages"] + counters["evictable_pages"] == counters["pages"]
    error = driver.query("dance").error
    assert error is not None
    assert "dance" in error.message


def test_plans_are_what_their_docstring_says():
    driver = Driver()
    driver.submit("a", PROMPT, max_tokens=3, prompt_logprobs=1, ignore_eos=True)
    driver.submit("b", PROMPT, max_tokens=3, n=3, temperature=1.0, ignore_eos=True)
    driver.run()
    for plan in driver.runner.plans:
        assert plan.token_ids.dtype == plan.positions.dtype == plan.page_tables.dtype == np.int32
        assert plan.slot_ids.dtype == np.int64
        assert (
            plan.query_starts[-1]
            == plan.token_ids.size
            == plan.positions.size
            == plan.slot_ids.size
        )
        assert (np.diff(plan.logit_rows) > 0).all()
        assert plan.sampling.rows.max(initial=0) < max(plan.logit_rows.size, 1)
        assert plan.sampling.seeds.dtype == np.uint64
        assert len(plan.request_keys) == plan.context_lens.size


def test_token_bytes_of_the_test_vocabulary_spell_every_byte():
    assert {data for data in TOKEN_BYTES if data and len(data) == 1} == {
        bytes((b,)) for b in range(256)
    }


@pytest.mark.parametrize("debug", [False, True])
def test_an_idle_engine_finds_and_repairs_what_leaked(debug):
    driver = Driver(debug=debug)
    driver.submit("a", PROMPT, max_tokens=2)
    driver.run()
    driver.engine.idle()
    assert driver.engine.stats()["repairs"] == 0
    cache = driver.engine.cache
    assert cache.extend(cache.open([5, 6, 7]), 60)  # nobody will ever release this
    driver.engine.idle()
    assert driver.engine.stats()["repairs"] == 1
    driver.assert_balanced()
    driver.submit("b", PROMPT, max_tokens=2)
    driver.run()
    assert driver.tokens("b") == driver.tokens("a")


def test_a_cancel_of_what_the_engine_does_not_hold_is_answered():
    driver = Driver()
    driver.cancel("never heard of")
    driver.step()
    assert driver.failed("never heard of").error.name == "Aborted"


def test_a_defect_met_by_a_message_ends_what_it_hit_and_raises_nothing():
    driver = Driver()
    driver.submit("a", PROMPT, max_tokens=30, ignore_eos=True)
    driver.step()
    scheduler = driver.engine._scheduler
    original = scheduler.remove

    def remove(*arguments, **options):
        raise InvariantError("in two lists")

    scheduler.remove = remove
    driver.cancel("a")
    scheduler.remove = original
    driver.submit("b", PROMPT, max_tokens=3, ignore_eos=True)
    driver.run()
    assert "in two lists" in driver.failed("a").error.message
    assert driver.tokens("b") == alone(PROMPT, max_tokens=3, ignore_eos=True).samples[0].token_ids
