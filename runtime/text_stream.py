"""The text of one request while it is generated, as an iterator for a plain thread or for an asyncio task.

Owns the hand-over from the client's loop thread. Knows nothing of prompts or of how a text becomes a value.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from types import TracebackType

from . import messages as m
from .client import Client
from .completions import Completion, Decode


class TextStream(Iterator[str]):
    """Pieces of text as they become certain; joined, they are the text. Leaving it early (`close`, `with`) aborts the request."""

    def __init__(self, client: Client, request: m.Generate, decode: Decode) -> None:
        self._decode = decode
        self._pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._future: Future[m.Finished] = client.request(request, self._on_delta)
        self._future.add_done_callback(lambda _: self._pieces.put(None))
        self._is_over = False

    def _on_delta(self, delta: m.Delta) -> None:
        if delta.index == 0 and delta.text:
            self._pieces.put(delta.text)

    def __next__(self) -> str:
        if self._is_over:
            raise StopIteration
        piece = self._pieces.get()
        if piece is not None:
            return piece
        self._is_over = True
        if not self._future.cancelled():
            self._future.result()  # raises what ended the request
        raise StopIteration

    def __enter__(self) -> TextStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Abort the request if it is still running."""
        self._future.cancel()

    def result(self, timeout_s: float | None = None) -> Completion:
        """The finished request; waits for it."""
        return Completion(self._future.result(timeout_s), self._decode)


class AsyncTextStream(AsyncIterator[str]):
    """As `TextStream`, for `async for` on the loop it was made on. A reader that is slow gets what came meanwhile as one piece."""

    def __init__(self, client: Client, request: m.Generate, decode: Decode) -> None:
        self._decode = decode
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[str] = deque()  # filled by the client's thread, emptied here
        self._news = asyncio.Event()
        self._future: Future[m.Finished] = client.request(request, self._on_delta)
        self._future.add_done_callback(lambda _: self._wake())

    def _on_delta(self, delta: m.Delta) -> None:
        if delta.index == 0 and delta.text:
            self._pieces.append(delta.text)
            self._wake()

    def _wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    async def __anext__(self) -> str:
        while True:
            self._news.clear()
            is_over = self._future.done()  # looked at first: all text comes before the end
            if self._pieces:
                return "".join(self._pieces.popleft() for _ in range(len(self._pieces)))
            if is_over:
                break
            await self._news.wait()
        if not self._future.cancelled():
            self._future.result()  # raises what ended the request
        raise StopAsyncIteration

    async def __aenter__(self) -> AsyncTextStream:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Abort the request if it is still running."""
        self._future.cancel()

    async def result(self) -> Completion:
        """The finished request; waits for it. Cancelling the waiting task does not abort the request."""
        return Completion(await asyncio.shield(asyncio.wrap_future(self._future)), self._decode)
