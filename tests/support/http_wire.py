"""One HTTP request on a connection of its own, read to its end or left on purpose: a client cheap enough to run a hundred of.

`exchange` never raises for what a server does: its `Reply` says how the exchange ended. Knows no endpoint.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import h11


class Ending(Enum):
    """How an exchange ended."""

    WHOLE = "whole"  # the answer came to its end
    LEFT = "left"  # by us, on purpose
    TORN = "torn"  # the server closed in the middle
    LATE = "late"  # no end came in time
    UNREACHABLE = "unreachable"


class Leave(Enum):
    """When a client goes away."""

    NEVER = 0
    IN_BODY = 1  # half of the body was sent
    AT_ONCE = 2  # all was sent, nothing is read
    WAITING = 3  # after `Leaving.after_s`, whatever came
    READING = 4  # with the first byte of the answer's body


@dataclass(frozen=True)
class Leaving:
    """The way a client leaves: when, and whether it says goodbye (FIN) or not (RST)."""

    when: Leave = Leave.NEVER
    after_s: float = 0.0
    is_rude: bool = False


@dataclass
class Reply:
    """What came."""

    ending: Ending = Ending.TORN
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)


STAY = Leaving()


async def exchange(
    address: tuple[str, int],
    method: str,
    path: str,
    body: bytes,
    leaving: Leaving = STAY,
    timeout_s: float = 300.0,
) -> Reply:
    """Send a request and read its answer."""
    reply = Reply()
    try:
        reader, writer = await asyncio.open_connection(*address)
    except OSError:
        reply.ending = Ending.UNREACHABLE
        return reply
    try:
        limit_s = leaving.after_s if leaving.when is Leave.WAITING else timeout_s
        async with asyncio.timeout(limit_s):
            reply.ending = await _converse(reader, writer, method, path, body, leaving.when, reply)
    except TimeoutError:
        reply.ending = Ending.LEFT if leaving.when is Leave.WAITING else Ending.LATE
    except (OSError, h11.RemoteProtocolError):
        reply.ending = Ending.TORN
    finally:
        if leaving.is_rude:
            writer.transport.abort()
        writer.close()
    return reply


async def _converse(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    method: str,
    path: str,
    body: bytes,
    leave: Leave,
    reply: Reply,
) -> Ending:
    head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    if leave is Leave.IN_BODY:
        writer.write(head.encode() + body[: len(body) // 2])
        await writer.drain()
        return Ending.LEFT
    writer.write(head.encode() + body)
    if leave is Leave.AT_ONCE:
        await writer.drain()
        return Ending.LEFT
    await _read(reader, reply, is_first_enough=leave is Leave.READING)
    return Ending.LEFT if leave is Leave.READING else Ending.WHOLE


async def _read(reader: asyncio.StreamReader, reply: Reply, *, is_first_enough: bool) -> None:
    """The whole answer, or up to the first piece of its body."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    parser.send(h11.EndOfMessage())
    pieces: list[bytes] = []
    while True:
        event = parser.next_event()
        if event is h11.NEED_DATA:
            parser.receive_data(await reader.read(65536))
        elif isinstance(event, h11.Response):
            reply.status = event.status_code
            reply.headers = {name.decode(): value.decode() for name, value in event.headers}
        elif isinstance(event, h11.Data):
            pieces.append(bytes(event.data))
            if is_first_enough:
                return
        elif isinstance(event, h11.EndOfMessage):
            reply.body = b"".join(pieces)
            return
        elif not isinstance(event, h11.InformationalResponse):
            raise h11.RemoteProtocolError("the connection was closed")
