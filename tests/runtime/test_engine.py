"""The engine over the fake runner: one request's life, its ends, and the cases of real bug reports."""

from __future__ import annotations

import pytest
from engine_driver import EOS, VOCAB_SIZE, Driver, alone, ids_of, text_of

from radixlm.runtime import messages as m
from radixlm.runtime.scheduler_limits import SchedulerLimits

PROMPT = tuple(range(10, 47))  # 37 tokens


def script(text: bytes, *, prompt_length: int, end: bool = True):
    """Steers the model to say `text` after the prompt, then EOS."""
    wanted = [*ids_of(text), *([EOS] if end else [])]

    def steer(ids):
        at = len(ids) - prompt_length
        return {wanted[at]: 100.0} if 0 <= at < len(wanted) else {}

    return steer


def test_a_request_runs_to_its_token_limit():
    driver = Driver()
    driver.submit("a", PROMPT, max_tokens=5, ignore_eos=True)
    driver.run()
    done = driver.done("a")
    assert done.samples[0].finish_reason == "length"
    assert len(done.samples[0].token_ids) == 5
    assert done.usage == m.Usage(prompt_tokens=37, cached_tokens=0, completion_tokens=5, forced_tokens=0)
