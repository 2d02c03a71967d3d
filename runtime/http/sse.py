"""Answers that wait for the model: server-sent events, and single answers whose client may leave meanwhile.

    return event_stream(request, frames())                    # frames: an async generator of bytes made by `data` below
    answer = await unless_gone(request, compute())            # raises ClientGone, after ending compute()

A stream's status is decided by its first frame: an error before it is an ordinary JSON answer with its status, so a generator should
await the request's first delta before it yields anything. While nothing comes, comments keep proxies and clients patient, but the first
of them settles the status too: the silence before it counts from `is_accepted()` on, so that a schema whose compiling takes long can
still be refused with a 400. An error after the first byte becomes a frame `data: {"error": ...}` that ends the stream. A client that
leaves cancels the generator, and with it the request. One that takes no byte for `stall_timeout_s` is cut off.

Frames: HTML Living Standard, section 9.2 (server-sent events). Owns the writing; knows no endpoint's shapes but the error's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .connection import Connection, cut_off
from .context import server_of
from .refusals import ClientGone, error_json, refuse

Answer = TypeVar("Answer")

DONE = b"data: [DONE]\n\n"
COMMENT = b": keepalive\n\n"
_ACCEPTANCE_CHECKS = 8  # in the time of one comment


def data(payload: bytes, event: str = "") -> bytes:
    """One frame around a JSON text without line breaks."""
    head = b"event: %b\n" % event.encode() if event else b""
    return b"%bdata: %b\n\n" % (head, payload)


def event_stream(
    request: Request,
    frames: AsyncGenerator[bytes, None],
    headers: Mapping[str, str] | None = None,
    *,
    is_accepted: Callable[[], bool] = lambda: True,
    outlet: Outlet | None = None,
) -> Response:
    """The answer that streams `frames`; each item may hold several. `is_accepted`: can it no longer be the caller's mistake?

    `outlet` is opened for whoever makes the frames.
    """
    settings = server_of(request).settings
    return EventStream(
        frames,
        headers or {},
        is_accepted=is_accepted,
        outlet=outlet or Outlet(),
        keepalive_s=settings.keepalive_s,
        stall_timeout_s=settings.stall_timeout_s,
    )


class EventStream(Response):
    """An ASGI answer; see the module's text."""

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        headers: Mapping[str, str],
        *,
        is_accepted: Callable[[], bool],
        outlet: Outlet,
        keepalive_s: float,
        stall_timeout_s: float,
    ) -> None:
        super().__init__(
            headers={"cache-control": "no-cache", "x-accel-buffering": "no", **headers}
        )
        self.headers["content-type"] = "text/event-stream; charset=utf-8"
        del self.headers["content-length"]
        self._frames = frames
        self._is_accepted = is_accepted
        self._outlet = outlet
        self._keepalive_s = keepalive_s
        self._stall_timeout_s = stall_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write the stream until it ends or its reader leaves."""
        writer = _Writer(scope, send, self.status_code, self.raw_headers)
        self._outlet.open(writer)
        loop = asyncio.get_running_loop()
        pump = loop.create_task(self._pump(writer, scope, receive, send))
        gone = loop.create_task(_until_gone(receive))
        clock = loop.create_task(self._keep_alive(writer, scope))
        try:
            await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._outlet.close()
            await _end(clock, gone, pump)
            await self._frames.aclose()
        if not pump.cancelled():
            pump.result()

    async def _pump(self, writer: _Writer, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async for frame in self._frames:
                await writer.write(frame)
            await writer.finish()
        except Exception as error:  # noqa: BLE001 - whatever it was, it is this stream's end
            async with writer.lock:
                if not writer.is_begun:
                    writer.is_over = True
                    await refuse(error)(scope, receive, send)
                    return
            await writer.write(data(error_json(error)))
            await writer.finish()

    async def _keep_alive(self, writer: _Writer, scope: Scope) -> None:
        """Comments while nothing comes; the end of a connection whose reader takes nothing."""
        while not writer.is_begun and not writer.is_over and not self._is_accepted():
            await asyncio.sleep(self._keepalive_s / _ACCEPTANCE_CHECKS)
            writer.restart_silence()
        while not writer.is_over or writer.is_writing:
            limit_s = self._stall_timeout_s if writer.is_writing else self._keepalive_s
            left_s = limit_s - writer.silence_s
            if left_s > 0:
                await asyncio.sleep(min(left_s, self._keepalive_s))
            elif writer.is_writing:
                cut_off(scope)
                return
            else:
                await writer.write_comment()


class Outlet:
    """A stream's shortest way out, for a frame that is made while its generator waits and all before it was written.

    It leads to the connection at once: past the generator, its task and every layer that sees the parts of a body, which for text that
    comes token by token cost more than the text. Where another server than ours carries the application it never opens.
    """

    def __init__(self) -> None:
        self._writer: _Writer | None = None

    @property
    def is_open(self) -> bool:
        """May a frame be written now? Not before the first one, which decides the status, and not while the reader is behind."""
        return self._writer is not None and self._writer.is_free

    def write(self, frame: bytes) -> None:
        """Write a frame, while `is_open`."""
        assert self._writer is not None
        self._writer.write_at_once(frame)

    def open(self, writer: _Writer) -> None:
        """The stream begins."""
        self._writer = writer

    def close(self) -> None:
        """The stream ends."""
        self._writer = None


class _Writer:
    """One stream's bytes: frames and comments never mix, and nothing follows the end."""

    def __init__(
        self, scope: Scope, send: Send, status: int, headers: list[tuple[bytes, bytes]]
    ) -> None:
        connection = scope.get("state", {}).get("connection")
        self._connection = connection if isinstance(connection, Connection) else None
        self._send = send
        self._start = {"type": "http.response.start", "status": status, "headers": headers}
        self._loop = asyncio.get_running_loop()
        self._last_s = self._loop.time()  # when the last write began or ended
        self.lock = asyncio.Lock()
        self.is_begun = False
        self.is_over = False
        self.is_writing = False

    @property
    def silence_s(self) -> float:
        """Time since the last write began or ended."""
        return self._loop.time() - self._last_s

    @property
    def is_free(self) -> bool:
        """Has the answer begun, is nothing on its way, and would the connection take more?"""
        is_between = self.is_begun and not self.is_over and not self.lock.locked()
        return is_between and self._connection is not None and self._connection.takes_chunks

    def write_at_once(self, frame: bytes) -> None:
        """Write while `is_free`."""
        assert self._connection is not None
        self._last_s = self._loop.time()
        self._connection.put_chunk(frame)

    def restart_silence(self) -> None:
        if not self.is_writing:
            self._last_s = self._loop.time()

    async def write(self, frame: bytes) -> None:
        await self.lock.acquire()  # cheaper than `async with`, and this happens for every token
        try:
            await self._write(frame, more=True)
        finally:
            self.lock.release()

    async def write_comment(self) -> None:
        async with self.lock:
            if not self.is_over:
                await self._write(COMMENT, more=True)

    async def finish(self) -> None:
        async with self.lock:
            self.is_over = True
            await self._write(b"", more=False)

    async def _write(self, frame: bytes, *, more: bool) -> None:
        self.is_writing, self._last_s = True, self._loop.time()
        if not self.is_begun:
            self.is_begun = True
            await self._send(self._start)
        await self._send({"type": "http.response.body", "body": frame, "more_body": more})
        self.is_writing, self._last_s = False, self._loop.time()


async def unless_gone(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """The result of `work`; ClientGone when the client closes its connection first, with `work` cancelled. Read the body before."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    gone = loop.create_task(_until_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        await _end(gone, task)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have left; their outcomes are looked at elsewhere."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # seen: asyncio need not report it
