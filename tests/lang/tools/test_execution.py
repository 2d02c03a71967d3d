from __future__ import annotations

import contextvars
import threading
from concurrent.futures import wait

import pytest

from radixlm.lang.tools.execution import ToolPool


def test_work_runs_beside_and_threads_are_bounded_and_used_again() -> None:
    pool = ToolPool(max_threads=2)
    gate, both = threading.Event(), threading.Barrier(3)

    def work() -> str:
        both.wait(10)
        gate.wait(10)
        return threading.current_thread().name

    first = [pool.submit(work), pool.submit(work)]
    later = [pool.submit(lambda: 1) for _ in range(5)]
    both.wait(10)
    assert not any(each.done() for each in later)
    gate.set()
    assert [each.result(10) for each in later] == [1] * 5
    assert {each.result(10) for each in first} == {"radixlm-tool"}
    assert pool.num_threads == 2
    assert pool.submit(lambda: 2).result(10) == 2
    assert pool.num_threads == 2


def test_idle_threads_end_and_new_ones_come() -> None:
    pool = ToolPool(max_threads=4, idle_s=0.01)
    assert pool.submit(lambda: 1).result(10) == 1
    gone = threading.Event()
    for _ in range(1000):
        if pool.num_threads == 0:
            gone.set()
            break
        threading.Event().wait(0.01)
    assert gone.is_set()
    assert pool.submit(lambda: 2).result(10) == 2


def test_work_that_submits_work_is_not_stuck_in_a_full_pool() -> None:
    pool = ToolPool(max_threads=1)
    assert pool.submit(lambda: pool.submit(lambda: 3).result(10)).result(10) == 3


def test_errors_context_and_cancelling_are_as_with_any_promise() -> None:
    pool = ToolPool(max_threads=1)
    number: contextvars.ContextVar[int] = contextvars.ContextVar("number")
    number.set(7)
    assert pool.submit(number.get).result(10) == 7
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(10)
    gate = threading.Event()
    running = pool.submit(gate.wait)
    waiting = pool.submit(lambda: 1)
    assert waiting.cancel()
    gate.set()
    wait([running], 10)
    assert waiting.cancelled()
