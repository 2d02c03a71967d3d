"""One connection: uvicorn's HTTP/1.1 protocol, with limits on how long a client may take, and refusals in JSON.

A client must send the head of its request within `read_timeout_s` of connecting, or of the first byte after an earlier answer. h11
bounds a head that comes in pieces, this protocol one that comes at once: reading a head of many fields holds up the loop. The transport is handed to the application in `scope["state"]`, which can cut off a client that takes nothing.
RFC 9112 (HTTP/1.1). Owns the framing of streamed bodies; owns no request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import MutableMapping
from typing import Any, cast

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from .json_answer import encode_json
from .refusals import HttpRefusal, refusal_of

_END_OF_HEAD = re.compile(rb"\n\r?\n")


class Connection(H11Protocol):
    """A uvicorn protocol. Subclasses set `read_timeout_s`."""

    read_timeout_s = 30.0
    in_chunks = False  # an answer has begun whose body goes in chunks, and has not ended

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        super().connection_made(transport)
        # what the application sees of the connection, in scope["state"]
        self.app_state = {
            **self.app_state,
            "transport": transport,
            "connection": self,
            "num_connections": self.connections.__len__,
        }
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._head_arrived()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if self.conn.their_state is h11.IDLE and self._is_too_large_a_head(data):
            self._head_arrived()
            self.send_400_response("the head of the request is too large")
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._await_head()  # a part of a head: the rest must follow
        else:
            self._head_arrived()

    @property
    def takes_chunks(self) -> bool:
        """Does the running answer's body go in chunks, and is its reader there and not behind?"""
        return self.in_chunks and not self.flow.write_paused and not self.cycle.disconnected

    def put_chunk(self, piece: bytes) -> None:
        """Write a part of the running answer's body, while `takes_chunks`."""
        if piece:  # an empty chunk would be the end
            self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    async def write_chunk(self, piece: bytes) -> None:
        """The same, but wait while the reader is behind, as uvicorn does; nothing is written to one that left."""
        if self.flow.write_paused and not self.cycle.disconnected:
            await self.flow.drain()
        if not self.cycle.disconnected:
            self.put_chunk(piece)

    def _is_too_large_a_head(self, data: bytes) -> bool:
        limit = self.config.h11_max_incomplete_event_size or len(data)
        return len(data) > limit and _END_OF_HEAD.search(data, 0, limit) is None

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.read_timeout_s, self._on_late_head)

    def _head_arrived(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_late_head(self) -> None:
        self._head_timer = None
        if self.conn.their_state is h11.IDLE:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or a head that is too large, in the shape of all other refusals."""
        if self.conn.our_state is not h11.IDLE:  # an answer has begun: nothing can be said any more
            self.transport.close()
            return
        body = encode_json(refusal_of(HttpRefusal(msg.rstrip("."), code="invalid_http")).body)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events = (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class ChunkedAnswers:
    """The layer below all others: parts of a body that is sent in chunks are framed here (RFC 9112, 7.1), not by h11.

    A stream's answer is one such part a token, and h11's events and states cost more than all else that a token needs. Beginning and end
    go through h11, which frames every other answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; see the class."""
        connection = scope.get("state", {}).get("connection")
        if not isinstance(connection, Connection):
            await self._app(scope, receive, send)
            return

        in_chunks = False  # this answer: with its end the connection goes on to the next, whatever the application still does

        async def framed(message: Message) -> None:
            nonlocal in_chunks
            if in_chunks:
                if message.get("more_body", False):
                    await connection.write_chunk(message.get("body", b""))
                    return
                in_chunks = connection.in_chunks = False
            await send(message)
            if message["type"] == "http.response.start":
                in_chunks = connection.in_chunks = _goes_in_chunks(scope, message)

        try:
            await self._app(scope, receive, framed)
        finally:
            if in_chunks:
                connection.in_chunks = False


def _goes_in_chunks(scope: Scope, start: Message) -> bool:
    """Does h11 send a body behind this beginning, and in chunks? It does where its length is unknown and HTTP/1.1 is spoken."""
    framing = (b"content-length", b"transfer-encoding")
    has_body = scope["method"] != "HEAD" and start["status"] not in (204, 304)
    is_free = not any(name.lower() in framing for name, _ in start.get("headers", ()))
    return has_body and is_free and scope["http_version"] == "1.1"


def cut_off(scope: MutableMapping[str, Any]) -> None:
    """Close a request's connection without waiting for what its reader has not taken."""
    transport = cast("asyncio.Transport | None", scope.get("state", {}).get("transport"))
    if transport is not None:
        transport.abort()
