"""Many program bodies on one thread, or on one asyncio loop.

Owns who is live, who is ready and whose deadline passed. Ready bodies continue first come, first served; a finished one makes room for the
next call. Must not know messages, nor what the futures stand for.

    advance     admit calls while there is room, else continue one ready body; the states that finished
    pause       what to wait for when nobody is ready: a bell that the next answer rings, at most until the first deadline

`states` and `arrivals` differ only in how they wait. Left early, or interrupted, they end every body and free what it held.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent

from ..errors import ProgramError
from .interpreter import Body, Call, Pause, arrival, end_body, execute, new_body, wait_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable

    from .state import State


class Crew:
    """See the module. Use one of `states` and `arrivals`, once."""

    def __init__(self, calls: Iterable[Call], max_live: int) -> None:
        self._calls = iter(calls)
        self._is_exhausted = False
        self._max_live = max_live
        self._lock = threading.Lock()  # answers arrive on other threads
        self._ready: deque[_Turn] = deque()
        self._bell: Future[None] | None = None
        self._deadlines: list[tuple[float, int, _Turn]] = []
        self._numbers = count()
        self._live: dict[Body, Call] = {}
        self._thread = threading.get_ident()
        self._loop: asyncio.AbstractEventLoop | None = None

    def states(self) -> Generator[State]:
        """Each state when its run has ended, until all have. A failed one has `.error()` set."""
        try:
            while (finished := self._advance()) is not None:
                yield from finished
                pause = self._pause()
                if pause is not None:
                    wait_for(pause.future, pause.deadline)
        except BaseException as error:
            self._end(error)
            raise

    async def arrivals(self) -> AsyncGenerator[State]:
        """As `states`, on the running loop; other tasks run between two bodies."""
        self._loop = asyncio.get_running_loop()
        try:
            while (finished := self._advance()) is not None:
                for state in finished:
                    yield state
                pause = self._pause()
                await (asyncio.sleep(0) if pause is None else arrival(pause))
        except BaseException as error:
            self._end(error)
            raise

    def _advance(self) -> list[State] | None:
        finished: list[State] = []
        while not finished and not self._is_exhausted and len(self._live) < self._max_live:
            call = next(self._calls, None)
            if call is None:
                self._is_exhausted = True
                break
            call.run.loop = self._loop
            body = new_body(partial(_execute_quietly, call))
            self._live[body] = call
            self._step(body, finished)
        if finished:
            return finished
        turn = self._take()
        if turn is not None:
            self._step(turn.body, finished)
        return finished if self._live or finished or not self._is_exhausted else None

    def _step(self, body: Body, finished: list[State]) -> None:
        if threading.get_ident() != self._thread:
            raise ProgramError(
                "a batch goes on in the thread that began it",
                hint="Read its results there, or use arun_batch",
            )
        body.parent = getcurrent()
        pause = body.switch()
        if body.dead:
            finished.append(self._live.pop(body).state)
            return
        turn = _Turn(body)
        if pause.deadline is not None:
            heapq.heappush(self._deadlines, (pause.deadline, next(self._numbers), turn))
        pause.future.add_done_callback(partial(self._make_ready, turn))

    def _make_ready(self, turn: _Turn, _: Future[Any]) -> None:
        with self._lock:
            self._ready.append(turn)
            bell, self._bell = self._bell, None
        if bell is not None:
            bell.set_result(None)

    def _take(self) -> _Turn | None:
        """The next body's turn, by its result or by its deadline; None if nobody can go on."""
        while self._ready:
            with self._lock:
                turn = self._ready.popleft()
            if not turn.is_taken:
                turn.is_taken = True
                return turn
        deadline = self._first_deadline()
        if deadline is None or deadline > time.monotonic():
            return None
        turn = heapq.heappop(self._deadlines)[2]
        turn.is_taken = True
        return turn

    def _first_deadline(self) -> float | None:
        while self._deadlines and self._deadlines[0][2].is_taken:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _pause(self) -> Pause | None:
        has_room = not self._is_exhausted and len(self._live) < self._max_live
        with self._lock:
            if has_room or self._ready or not self._live:
                return None
            self._bell = self._bell or Future()
            return Pause(self._bell, self._first_deadline())

    def _end(self, error: BaseException) -> None:
        while self._live:
            end_body(*self._live.popitem(), error)


@dataclass(slots=True)
class _Turn:
    """A paused body's right to continue, given once: by its result or by its deadline."""

    body: Body
    is_taken: bool = False


def _execute_quietly(call: Call) -> None:
    try:
        execute(call)
    except Exception:  # noqa: BLE001  kept in the state: one failure does not lose the others
        return
