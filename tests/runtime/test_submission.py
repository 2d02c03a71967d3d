"""What a submission notes of its beginning."""

from __future__ import annotations

import itertools

import pytest

from radixlm.runtime import messages as m
from radixlm.runtime import submission
from radixlm.runtime.submission import Submission


def test_the_first_start_decides_the_wait_and_the_cached_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = itertools.count(100, 2)
    monkeypatch.setattr(submission.time, "monotonic", lambda: float(next(seconds)))
    waiting = Submission(m.Submit("a", (1, 2, 3), m.SamplingParams()), seed=0)
    waiting.start(2)
    waiting.start(0)  # a preempted request starts again
    assert (waiting.queue_s, waiting.num_cached) == (2.0, 2)
