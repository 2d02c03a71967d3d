"""Many requests at once from one calling thread or asyncio task: hand over, wait, report, and never leave one running behind.

Owns the window of requests under way and the rule of errors: all are carried out, then the first error is raised or all are returned in
place. When the caller is interrupted or its time is over, what still runs is aborted. Knows no text.
"""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ..errors import RadixError, TimedOut
from . import messages as m
from .client import Client

if TYPE_CHECKING:
    from .progress import ItemProgress

MAX_UNDER_WAY = 8192  # requests handed over before the first ones are answered


def carry_out(
    client: Client,
    requests: Sequence[m.Generate],
    *,
    timeout_s: float | None = None,
    bar: ItemProgress | None = None,
) -> list[m.Finished | RadixError]:
    """The answer or error of each request, in order. Raises TimedOut when the time is over before all are there."""
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    answers: list[m.Finished | RadixError | None] = [None] * len(requests)
    under_way: dict[int, Future[m.Finished]] = {}
    done: queue.SimpleQueue[int] = queue.SimpleQueue()
    next_index = 0
    try:
        for _ in requests:
            while next_index < len(requests) and len(under_way) < MAX_UNDER_WAY:
                under_way[next_index] = _submit(client, requests[next_index], next_index, done)
                next_index += 1
            try:
                index = done.get(
                    timeout=None if deadline_s is None else max(deadline_s - time.monotonic(), 0)
                )
            except queue.Empty:
                raise TimedOut(f"no answer within {timeout_s:g} s", place="timeout_s") from None
            answers[index] = _outcome(under_way.pop(index))
            _report(bar, answers[index])
    finally:
        for future in under_way.values():  # only when this call is left early
            future.cancel()
    return [answer for answer in answers if answer is not None]


async def carry_out_async(
    client: Client, requests: Sequence[m.Generate], *, timeout_s: float | None = None
) -> list[m.Finished | RadixError]:
    """As `carry_out`, on the running loop. Cancelling the awaiting task aborts what still runs."""
    gate = asyncio.Semaphore(MAX_UNDER_WAY)

    async def one(request: m.Generate) -> m.Finished | RadixError:
        async with gate:
            try:
                return await asyncio.wrap_future(client.request(request))
            except RadixError as error:
                return error

    try:
        async with asyncio.timeout(timeout_s):
            return await asyncio.gather(*map(one, requests))
    except TimeoutError:
        raise TimedOut(f"no answer within {timeout_s:g} s", place="timeout_s") from None


def _submit(
    client: Client, request: m.Generate, index: int, done: queue.SimpleQueue[int]
) -> Future[m.Finished]:
    future: Future[m.Finished] = client.request(request)
    future.add_done_callback(lambda _: done.put(index))
    return future


def _outcome(future: Future[m.Finished]) -> m.Finished | RadixError:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, RadixError):
        return error
    raise error


def _report(bar: ItemProgress | None, answer: m.Finished | RadixError | None) -> None:
    if bar is None:
        return
    if isinstance(answer, m.Finished):
        usage = answer.usage
        bar.advance(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
    else:
        bar.advance()
