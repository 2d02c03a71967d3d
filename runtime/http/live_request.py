"""A running request as seen from the event loop: new text as an async iterator, the end as an awaitable, bounded when nobody reads.

    with LiveRequest(client, message) as live:          # leaving the block ends the request, if it still runs
        async for delta in live: ...                    # message.stream; deltas that piled up arrive joined, per output
        finished = await live.finished()                # m.Finished, or raises an error of `errors.py`

    with LiveGroup([live, live, ...]) as group: ...     # the same for several, by turns: (which, delta) pairs, all results in order

Cancelling whoever waits here ends the request at the engine within a step. What a reader has not taken is bounded: beyond
`max_pending_bytes` the request is ended with Overloaded. Everything happens on the loop's thread; a client that calls back from
another thread is brought over. Owns what waits for the reader. Knows no HTTP, and no meaning of a message.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from ...errors import Aborted, Overloaded, RadixError
from .. import messages as m

MAX_PENDING_BYTES = 1 << 20
_BYTES_OF_A_LOGPROB = 100  # roughly, of each alternative


class ClientLike(Protocol):
    """What the server needs of a client of the gateway (`runtime.client.Client`; scripted ones in tests)."""

    @property
    def facts(self) -> m.Ready:
        """Facts of the model."""
        ...

    @property
    def failure(self) -> RadixError | None:
        """Why nothing can be asked any more."""
        ...

    def new_id(self, prefix: str) -> str:
        """A name for a request."""
        ...

    def request(
        self,
        message: Any,
        on_delta: Callable[[m.Delta], None] | None = None,
        on_accepted: Callable[[m.Accepted], None] | None = None,
    ) -> Future[Any]:
        """Ask; cancelling the future aborts the request."""
        ...


class Watcher(Protocol):
    """Who is told of a live request's life (`metrics`, the registry in `context`)."""

    def on_delta(self, live: LiveRequest, delta: m.Delta) -> None:
        """New text came."""
        ...

    def on_end(self, live: LiveRequest, finished: m.Finished | None) -> None:
        """The request ended; None: with an error."""
        ...


class LiveRequest:
    """One Generate on its way. `on_change` is told of new text and of the end."""

    def __init__(
        self,
        client: ClientLike,
        message: m.Generate,
        *,
        max_pending_bytes: int = MAX_PENDING_BYTES,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.message = message
        self.started_s = time.monotonic()
        self.on_change: Callable[[], None] = _nobody
        self.is_accepted = False  # the gateway took it: prompt and constraint are what they should
        self._max_pending_bytes = max_pending_bytes
        self._watchers = watchers
        self._pending: dict[int, list[m.Delta]] = {}  # by output, the longest waiting first
        self._num_pending_bytes = 0
        self.news = asyncio.Event()  # set at each change
        self.is_waited_for = False  # a reader waits for news, and has seen to all before
        self.take_at_once: Callable[[m.Delta], bool] | None = None  # see hand_over
        self._finished: m.Finished | None = None
        self._error: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._future = client.request(
            message, self._bring(self._on_delta), self._bring(self._on_accepted)
        )
        self._future.add_done_callback(self._bring(self._on_done))

    # ------------------------------------------------------------------------------------------ reading

    @property
    def is_over(self) -> bool:
        """Has the request ended? Text may still wait to be taken."""
        return self._finished is not None or self._error is not None

    @property
    def has_news(self) -> bool:
        """Would reading give something now, if only the end?"""
        return bool(self._pending) or self.is_over

    @property
    def outcome(self) -> str:
        """How it ended: finished, aborted (nobody wanted it any more) or failed."""
        if self._finished is not None:
            return "finished"
        return "aborted" if isinstance(self._error, Aborted) else "failed"

    def __aiter__(self) -> AsyncIterator[m.Delta]:
        return self

    async def __anext__(self) -> m.Delta:
        while True:
            delta = self.take()
            if delta is not None:
                return delta
            if self.is_over:
                self.check()
                raise StopAsyncIteration
            await _news_of(self)

    def hand_over(self, take_at_once: Callable[[m.Delta], bool]) -> None:
        """From now on offer text that comes while a reader waits to `take_at_once`; if that says False, the reader gets it as always."""
        self.take_at_once = lambda delta: self.is_waited_for and take_at_once(delta)

    async def finished(self) -> m.Finished:
        """The end. Raises what ended the request otherwise."""
        while not self.is_over:
            await _news_of(self)
        self.check()
        assert self._finished is not None
        return self._finished

    def take(self) -> m.Delta | None:
        """What waits of one output, joined; None when nothing does."""
        if not self._pending:
            return None
        index = next(iter(self._pending))
        delta = _joined(self._pending.pop(index))
        self._num_pending_bytes -= _size(delta)
        return delta

    def check(self) -> None:
        """Raise what ended the request, if that was an error."""
        if self._error is not None:
            raise self._error

    # ------------------------------------------------------------------------------------------ ending

    def abort(self) -> None:
        """End the request now; nothing happens when it has ended."""
        self.fail(Aborted("the request was aborted"))

    def fail(self, error: RadixError) -> None:
        """End the request with `error`, which its reader gets after what waits already."""
        if self.is_over:
            return
        self._end(None, error)
        self._future.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abort()

    # ------------------------------------------------------------------------------------------ from the client

    def _bring(self, function: Callable[[Any], None]) -> Callable[[Any], None]:
        """`function` on the loop's thread, at once if that is where the client calls."""

        def call(argument: Any) -> None:
            if threading.get_ident() == self._thread:
                function(argument)
            else:
                self._loop.call_soon_threadsafe(function, argument)

        return call

    def _on_accepted(self, accepted: m.Accepted) -> None:
        self.is_accepted = True

    def _on_delta(self, delta: m.Delta) -> None:
        if self.is_over:
            return
        for watcher in self._watchers:
            watcher.on_delta(self, delta)
        if self.take_at_once is not None and not self._pending:
            try:
                if self.take_at_once(delta):
                    return
            except Exception as error:  # noqa: BLE001 - as if the reader had raised it
                self._end(None, error)
                self._future.cancel()
                return
        self._pending.setdefault(delta.index, []).append(delta)
        self._num_pending_bytes += _size(delta)
        if self._num_pending_bytes > self._max_pending_bytes:
            self.fail(
                Overloaded(
                    f"the reader is too slow: {self._num_pending_bytes} bytes of output waited for it,"
                    f" {self._max_pending_bytes} are kept"
                )
            )
        self._wake()

    def _on_done(self, future: Future[Any]) -> None:
        if self.is_over:
            return
        if future.cancelled():
            self._end(None, Aborted("the request was aborted"))
            return
        error = future.exception()
        self._end(None if error is not None else future.result(), error)

    def _end(self, finished: m.Finished | None, error: BaseException | None) -> None:
        self._finished, self._error = finished, error
        for watcher in self._watchers:
            watcher.on_end(self, finished)
        self._wake()

    def _wake(self) -> None:
        self.news.set()
        self.on_change()


class LiveGroup:
    """Several live requests read as one, each in its turn. If one fails, reading raises its error; leaving the block ends the others."""

    def __init__(self, lives: Sequence[LiveRequest]) -> None:
        self.lives = tuple(lives)
        self._running = set(range(len(self.lives)))  # as far as the reader knows
        self._changed: deque[int] = deque()  # who has news, in the order of their turns
        self._is_listed = [False] * len(self.lives)
        self.news = asyncio.Event()  # set at each change of one of them
        self.is_waited_for = False
        self.failed = 0  # whose error was raised
        for which, live in enumerate(self.lives):
            live.on_change = partial(self._on_change, which)
            self._on_change(which)  # something may have come before

    def __aiter__(self) -> AsyncIterator[tuple[int, m.Delta]]:
        return self

    async def __anext__(self) -> tuple[int, m.Delta]:
        while True:
            while self._changed:
                which = self._next_changed()
                live = self.lives[which]
                delta = live.take()
                if delta is not None:
                    if live.has_news:
                        self._on_change(which)  # back in line
                    return which, delta
                self._drop_ended(which)
            if not self._running:
                raise StopAsyncIteration
            await _news_of(self)

    def hand_over(self, take_at_once: Callable[[int, m.Delta], bool]) -> None:
        """As `LiveRequest.hand_over`, for all of them."""

        def offer(which: int, delta: m.Delta) -> bool:
            return self.is_waited_for and take_at_once(which, delta)

        for which, live in enumerate(self.lives):
            live.take_at_once = partial(offer, which)

    async def finished(self) -> list[m.Finished]:
        """All results, in order; the first error ends the wait."""
        while self._running:
            while self._changed:
                self._drop_ended(self._next_changed())
            if self._running:
                await _news_of(self)
        return [await live.finished() for live in self.lives]

    def abort(self) -> None:
        """End all of them."""
        for live in self.lives:
            live.abort()

    def _on_change(self, which: int) -> None:
        if not self._is_listed[which]:
            self._is_listed[which] = True
            self._changed.append(which)
        self.news.set()

    def _next_changed(self) -> int:
        which = self._changed.popleft()
        self._is_listed[which] = False
        return which

    def _drop_ended(self, which: int) -> None:
        if self.lives[which].is_over:
            self.failed = which
            self.lives[which].check()
            self._running.discard(which)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abort()


async def _news_of(read: LiveRequest | LiveGroup) -> None:
    """Until something changes. Whoever is cancelled here wants nothing any more: the requests end."""
    read.news.clear()
    read.is_waited_for = True
    try:
        await read.news.wait()
    except asyncio.CancelledError:
        read.abort()
        raise
    finally:
        read.is_waited_for = False


def _nobody() -> None:
    """Who listens before anybody does."""


def _joined(deltas: list[m.Delta]) -> m.Delta:
    if len(deltas) == 1:
        return deltas[0]
    return m.Delta(
        deltas[0].request,
        deltas[0].index,
        "".join(delta.text for delta in deltas),
        tuple(token_id for delta in deltas for token_id in delta.token_ids),
        tuple(logprob for delta in deltas for logprob in delta.logprobs),
    )


def _size(delta: m.Delta) -> int:
    """About the memory that a delta holds, additive over joined deltas."""
    num_bytes = len(delta.text) + 8 * len(delta.token_ids)
    if delta.logprobs:
        num_logprobs = sum(1 + len(logprob.top) for logprob in delta.logprobs)
        num_bytes += _BYTES_OF_A_LOGPROB * num_logprobs
    return num_bytes


async def answer_of(future: Future[Any]) -> Any:
    """The answer to a request without deltas (StatsRequest, Tokenize, ...). Cancelling the wait withdraws the request."""
    return await asyncio.wrap_future(future)


async def counters_of(client: ClientLike) -> dict[str, float]:
    """The counters of engine and gateway."""
    reply: m.StatsReply = await answer_of(client.request(m.StatsRequest(client.new_id("stats"))))
    return reply.counters
