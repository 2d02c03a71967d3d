"""A request's body as it comes in: has all of it come, and what to do with the rest when the answer is ready before it.

A client that is still writing when its connection is closed sees a broken connection, and never the refusal: TCP drops what the peer has
not read yet together with the answer (RFC 9112, section 9.6). So the rest is taken and thrown away, within limits, before an early answer.
Knows no answers.
"""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive, Scope

_DISCARD_TIMEOUT_S = 2.0


class IncomingBody:
    """The body of one request. Hand `receive` to the application."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers = dict(scope["headers"])
        self._receive = receive
        self._waits_for_us = headers.get(b"expect", b"").lower() == b"100-continue"
        self.is_whole = (
            headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in headers
        )

    async def receive(self) -> Message:
        """The next piece."""
        self._waits_for_us = False
        message = await self._receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            self.is_whole = True
        return message

    async def discard(self, max_bytes: int) -> None:
        """Take the rest, unless it is too much or too slow, or its sender asked first whether to send it."""
        if self._waits_for_us:
            return
        num_bytes = 0
        try:
            async with asyncio.timeout(_DISCARD_TIMEOUT_S):
                while not self.is_whole and num_bytes <= max_bytes:
                    num_bytes += len((await self.receive()).get("body", b""))
        except TimeoutError:
            return
