"""Gateway and engine in a thread: what a failure of the thread does to those who wait."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from toy_engine import InProcess, toy_core
from toy_tokenizer import ToyTokenizer

from radixlm.errors import ServiceError
from radixlm.runtime import messages as m


def ask(request: str) -> m.Generate:
    return m.Generate(request, None, (m.Text("ab"),), m.SamplingParams(max_tokens=2))


def test_a_failure_of_the_engine_ends_what_waits_and_what_is_asked_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = toy_core()

    def broken() -> Any:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(core, "step", broken)
    with InProcess(core, ToyTokenizer()) as backend:
        for request in ("r1", "r2"):
            with pytest.raises(ServiceError, match="gateway and engine ended: ZeroDivisionError"):
                backend.generate(ask(request)).result(10)


def test_the_answer_to_a_future_that_was_cancelled_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    core, go = toy_core(), threading.Event()
    step = core.step

    def held() -> Any:
        go.wait(10)
        return step()

    monkeypatch.setattr(core, "step", held)
    with InProcess(core, ToyTokenizer()) as backend:
        assert backend.generate(ask("r1")).cancel()
        go.set()
        assert backend.generate(ask("r2")).result(10).outputs
    assert not caplog.records
