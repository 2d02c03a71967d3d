"""Runs program bodies: in the caller's thread, many on one thread, or inside an asyncio loop.

Owns the one way a body is executed (`execute`), the one way to wait (`wait_for`), and the two drivers of bodies that suspend. A body is
plain synchronous code in all cases. Under a driver it is a greenlet: when it reads a result that is not there, control goes back to the
driver with a `Pause`, and the driver continues other bodies until the result came or the deadline passed. So 2,000 live programs need one
thread, and a body that computes for long holds up the others. Must not know messages, nodes or what the futures stand for.

    run        body --> wait_for --> blocks the thread
    run_batch  body (greenlet) --> wait_for --> Pause --> Crew: next ready body; blocks (or pauses, if nested) when there is none
    arun       body (greenlet) --> wait_for --> Pause --> await
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import threading
import time
from collections import deque
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .run import Run
    from .state import State


@dataclass(frozen=True, slots=True)
class Call:
    """One program to run: its state, and its body with the arguments bound."""

    run: Run
    state: State
    body: Callable[[State], Any]


@dataclass(frozen=True, slots=True)
class Pause:
    """A body waits for `future`, at most until the monotonic `deadline`."""

    future: Future[Any]
    deadline: float | None


class Body(greenlet):
    """A program body that can pause."""


def wait_for(future: Future[Any], deadline: float | None) -> None:
    """Return when the future is done or the deadline has passed, whichever is first; never raises what the future holds."""
    if future.done():
        return
    current = getcurrent()
    if isinstance(current, Body) and current.parent is not None:
        current.parent.switch(Pause(future, deadline))
        return
    timeout = None if deadline is None else max(deadline - time.monotonic(), 0.0)
    try:
        future.exception(timeout)
    except FutureTimeoutError:
        return


def execute(call: Call) -> State:
    """Run the body, wait for everything it started, and leave nothing open, however it ends."""
    run, state = call.run, call.state
    try:
        state.ret_value = call.body(state)
        run.settle()
    except BaseException as error:
        run.abort(error)
        raise
    finally:
        run.close()
    return state


def run_many(calls: Iterable[Call], max_live: int) -> list[State]:
    """Run all calls on the calling thread, `max_live` at a time; states in order. A failed one has `.error()` set."""
    return Crew(max_live).run(calls)


async def run_async(call: Call) -> State:
    """Run one call on the current asyncio loop. Cancelling the task raises in the body and aborts its requests."""
    body = _new_body(partial(execute, call))
    resume: Callable[[], Any] = body.switch
    while True:
        body.parent = getcurrent()
        outcome = resume()
        if body.dead:
            return outcome
        try:
            await _arrival(outcome)
            resume = body.switch
        except BaseException as error:  # noqa: BLE001  raised again by the body, unless it handles it
            resume = partial(body.throw, error)


class Crew:
    """Bodies on one thread. Ready ones continue first come, first served."""

    def __init__(self, max_live: int) -> None:
        self._max_live = max_live
        self._lock = threading.Lock()  # answers arrive on other threads
        self._ready: deque[_Turn] = deque()
        self._bell: Future[None] | None = None
        self._deadlines: list[tuple[float, int, _Turn]] = []
        self._numbers = count()
        self._live: dict[Body, Call] = {}

    def run(self, calls: Iterable[Call]) -> list[State]:
        """Until every call has ended. An interrupt of this thread ends all of them."""
        states: list[State] = []
        waiting = iter(calls)
        try:
            while True:
                self._admit(waiting, states)
                if not self._live:
                    return states
                self._step(self._next().body)
        except BaseException as error:
            self._throw_into_all(error)
            raise

    def _admit(self, waiting: Iterator[Call], states: list[State]) -> None:
        while len(self._live) < self._max_live:
            call = next(waiting, None)
            if call is None:
                return
            states.append(call.state)
            body = _new_body(partial(_execute_quietly, call))
            self._live[body] = call
            self._step(body)

    def _step(self, body: Body) -> None:
        pause = body.switch()
        if body.dead:
            del self._live[body]
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

    def _next(self) -> _Turn:
        while True:
            while self._deadlines and self._deadlines[0][2].is_taken:
                heapq.heappop(self._deadlines)
            deadline = self._deadlines[0][0] if self._deadlines else None
            with self._lock:
                turn = self._ready.popleft() if self._ready else None
                if turn is None:
                    self._bell = Future()
                bell = self._bell
            if turn is None and bell is not None:
                wait_for(bell, deadline)
                if not bell.done() and deadline is not None and deadline <= time.monotonic():
                    turn = heapq.heappop(self._deadlines)[2]
            if turn is not None and not turn.is_taken:
                turn.is_taken = True
                return turn

    def _throw_into_all(self, error: BaseException) -> None:
        for body, call in self._live.items():
            try:
                body.throw(error)
            except BaseException:  # noqa: BLE001  it is the one we threw; the caller raises it
                continue
            call.run.abort(error)  # a body that caught it and waits again: nobody will continue it
            call.run.close()
        self._live.clear()


@dataclass(slots=True)
class _Turn:
    """A paused body's right to continue, given once: by its result or by its deadline."""

    body: Body
    is_taken: bool = False


def _new_body(work: Callable[[], Any]) -> Body:
    body = Body(work)
    body.gr_context = contextvars.copy_context()
    return body


def _execute_quietly(call: Call) -> None:
    try:
        execute(call)
    except Exception:  # noqa: BLE001  kept in the state: one failure does not lose the others
        return


async def _arrival(pause: Pause) -> None:
    """Until the pause's future is done or its deadline has passed."""
    loop = asyncio.get_running_loop()
    arrived = loop.create_future()

    def ring(_: object = None) -> None:
        if not arrived.done():
            arrived.set_result(None)

    def ring_from_afar(_: Future[Any]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(ring)

    pause.future.add_done_callback(ring_from_afar)
    if pause.deadline is None:
        await arrived
        return
    timer = loop.call_later(max(pause.deadline - time.monotonic(), 0.0), ring)
    try:
        await arrived
    finally:
        timer.cancel()
