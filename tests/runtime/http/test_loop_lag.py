"""The lag of the loop counts a stall by its length, and an idle loop not at all."""

from __future__ import annotations

import asyncio

from http_server import served

from radixlm.runtime.http.loop_lag import INTERVAL_S, LoopLag
from radixlm.runtime.launch import Runtime


def lags_after(*times_s: float) -> list[float]:
    """What is observed when the timer comes at these times after the start."""
    observed: list[float] = []
    now_s = 100.0

    async def run() -> None:
        nonlocal now_s
        lag = LoopLag(observed.append, lambda: now_s)
        lag.start()
        for time_s in times_s:
            now_s = 100.0 + time_s
            lag.tick()
        lag.stop()

    asyncio.run(run())
    return [round(lag_s / INTERVAL_S, 3) for lag_s in observed]


def test_a_callback_in_time_is_no_lag() -> None:
    assert lags_after(INTERVAL_S, 2 * INTERVAL_S) == [0, 0]


def test_a_stall_counts_once_for_every_callback_it_held_up() -> None:
    assert lags_after(4.5 * INTERVAL_S) == [3.5, 2.5, 1.5, 0.5]


def test_a_timer_that_comes_early_is_not_counted() -> None:
    assert lags_after(0.9 * INTERVAL_S, 1.1 * INTERVAL_S) == [0.1]


def test_a_running_server_measures_its_own_loop(slow_runtime: Runtime) -> None:
    with served(slow_runtime) as running:
        metrics = running.server._context.metrics  # pyright: ignore[reportPrivateUsage]
        before = metrics.registry.get_sample_value("radixlm_event_loop_lag_seconds_count") or 0
        slow_runtime.on_loop(asyncio.sleep(5 * INTERVAL_S)).result()
        after = metrics.registry.get_sample_value("radixlm_event_loop_lag_seconds_count")
        assert after is not None
        assert after > before
