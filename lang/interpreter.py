"""Runs program bodies: in the caller's thread, or as greenlets that a driver continues.

Owns the one way a body is executed (`execute`), the one way to wait (`wait_for`), and the driver of one body on an asyncio loop. A body is
plain synchronous code in all cases. Under a driver it is a greenlet: when it reads a result that is not there, control goes back to the
driver with a `Pause`, and the driver does something else until the result came or the deadline passed. So 2,000 live programs need one
thread, and a body that computes for long holds up the others. Must not know messages, nodes or what the futures stand for.

    run                body --> wait_for --> blocks the thread
    arun               body (greenlet) --> wait_for --> Pause --> await
    run_batch          body (greenlet) --> wait_for --> Pause --> crew.Crew: next ready body; waits when there is none
    run(stream=True)   body (greenlet) --> wait_for --> Pause --> live_run.LiveRun: back to who reads the stream
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from greenlet import GreenletExit, getcurrent, greenlet

from ..errors import Aborted

if TYPE_CHECKING:
    from collections.abc import Callable

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
    driver = _driver()
    if driver is not None:
        driver.switch(Pause(future, deadline))
        return
    timeout = None if deadline is None else max(deadline - time.monotonic(), 0.0)
    try:
        future.exception(timeout)
    except FutureTimeoutError:
        return


def _driver() -> greenlet | None:
    """Who continues the current body. No frame of a paused body may hold the body itself: a dropped one would never be freed."""
    current = getcurrent()
    return current.parent if isinstance(current, Body) else None


def execute(call: Call) -> State:
    """Run the body, wait for everything it started, and leave nothing open, however it ends."""
    run, state = call.run, call.state
    try:
        run.ret_value = call.body(state)
        run.settle()
    except BaseException as error:
        run.abort(left_early() if _is_left(error) else error)
        raise
    finally:
        run.close()
    return state


async def run_async(call: Call) -> State:
    """Run one call on the current asyncio loop. Cancelling the task raises in the body and aborts its requests."""
    call.run.loop = asyncio.get_running_loop()
    body = new_body(partial(execute, call))
    resume: Callable[[], Any] = body.switch
    while True:
        body.parent = getcurrent()
        outcome = resume()
        if body.dead:
            return outcome
        try:
            await arrival(outcome)
            resume = body.switch
        except BaseException as error:  # noqa: BLE001  raised again by the body, unless it handles it
            resume = partial(body.throw, error)


def new_body(work: Callable[[], Any]) -> Body:
    """A body that has not begun, with the context variables of the caller."""
    body = Body(work)
    body.gr_context = contextvars.copy_context()
    return body


def end_body(body: Body, call: Call, error: BaseException) -> None:
    """Throw `error` into a body that is not needed any more, and leave nothing of its run open, whatever it does with it."""
    if not body.dead:
        body.parent = getcurrent()
        with suppress(BaseException):  # it is the one we threw
            body.throw(GreenletExit if isinstance(error, GeneratorExit) else error)
    if (
        not call.run.is_over
    ):  # it never began, or caught the error and waits again: nobody will continue it
        call.run.abort(left_early() if _is_left(error) else error)
    call.run.close()


def left_early() -> Aborted:
    """The error of a run that nobody wanted to the end."""
    return Aborted("the run was left before its end")


def _is_left(error: BaseException) -> bool:
    return isinstance(error, GreenletExit | GeneratorExit)


async def arrival(pause: Pause) -> None:
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
