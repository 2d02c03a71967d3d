"""How late the event loop runs what is due: what every stream of the server waits in addition. Owns the clock of that measurement.

    lag = LoopLag(metrics.observe_loop_lag)
    lag.start()      # on the loop
    lag.stop()

A callback is due every `INTERVAL_S`. One stall makes several of them late, and each counts with its own lateness: so the histogram says
what an event at a random time has to wait, and a long stall weighs by its length. Knows nothing of what the loop does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

INTERVAL_S = 0.1  # seldom: each tick wakes a process that may have nothing to do


class LoopLag:
    """A repeated callback on the running loop, and how late it came."""

    def __init__(
        self, observe: Callable[[float], object], clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._observe = observe
        self._clock_s = clock_s  # not the loop's own: that one stands still while callbacks run
        self._due_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin, on the loop to be measured."""
        self._due_s = self._clock_s() + INTERVAL_S
        self._wait()

    def stop(self) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def tick(self) -> None:
        """The timer came: count every callback that was due until now."""
        now_s = self._clock_s()
        while self._due_s <= now_s:
            self._observe(now_s - self._due_s)
            self._due_s += INTERVAL_S
        self._wait()

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(self._due_s - self._clock_s(), 0.0), self.tick)
