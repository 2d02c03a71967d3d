"""The short way out of a stream: it opens behind the first frame, keeps the order, closes for a reader that is behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest
from http_server import Served, read_all, served
from http_wire import Reply, exchange
from process_checks import wait_until
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from radixlm.runtime.http.sse import DONE, Outlet, data, event_stream
from radixlm.runtime.launch import Runtime

BLOCK = data(b'"%b"' % (b"x" * 65536))
MAX_BLOCKS = 2000
outlets: list[Outlet] = []
behind: list[int] = []  # blocks that were written until the reader was


async def in_order(request: Request) -> Response:
    outlet = Outlet()

    async def frames() -> AsyncIterator[bytes]:
        was_open = [outlet.is_open]
        yield data(b'"first"')
        written = asyncio.Event()

        def write() -> None:
            was_open.append(outlet.is_open)
            if outlet.is_open:
                outlet.write(data(b'"second"'))
                outlet.write(data(b'"third"'))
            written.set()

        asyncio.get_running_loop().call_later(0.01, write)
        await written.wait()
        yield data(b'"fourth"')
        yield data(json.dumps(was_open).encode()) + DONE

    outlets.append(outlet)
    return event_stream(request, frames(), outlet=outlet)  # type: ignore[arg-type]


async def until_behind(request: Request) -> Response:
    outlet = Outlet()

    async def frames() -> AsyncIterator[bytes]:
        yield data(b'"first"')
        await asyncio.sleep(0.01)
        num_blocks = 0
        while outlet.is_open and num_blocks < MAX_BLOCKS:
            outlet.write(BLOCK)
            num_blocks += 1
            await asyncio.sleep(0)
        behind.append(num_blocks)
        yield data(b"%d" % num_blocks)

    return event_stream(request, frames(), outlet=outlet)  # type: ignore[arg-type]


ROUTES = (
    Route("/order", in_order, methods=["POST"]),
    Route("/behind", until_behind, methods=["POST"]),
)


@pytest.fixture(scope="module")
def server(slow_runtime: Runtime) -> Iterator[Served]:
    with served(slow_runtime, ROUTES) as running:
        yield running


def frames_of(reply: Reply) -> list[object]:
    lines = [line for line in reply.body.split(b"\n\n") if line.startswith(b"data: ")]
    return [line[6:].decode() if b"[DONE]" in line else json.loads(line[6:]) for line in lines]


def test_frames_that_go_the_short_way_stand_between_those_before_and_behind(server: Served) -> None:
    reply = asyncio.run(exchange(server.server.address, "POST", "/order", b""))
    assert frames_of(reply) == [
        *("first", "second", "third", "fourth"),
        [False, True],  # not before the first frame, which decides the status
        "[DONE]",
    ]
    assert not outlets[-1].is_open


def test_it_stays_shut_for_an_http_1_0_client(server: Served) -> None:
    connection = server.connect()
    connection.sendall(b"POST /order HTTP/1.0\r\ncontent-length: 0\r\n\r\n")
    _, _, body = read_all(connection).partition(b"\r\n\r\n")
    frames = frames_of(Reply(body=body))
    assert frames == ["first", "fourth", [False, False], "[DONE]"]


def test_it_shuts_when_the_reader_is_behind_and_nothing_is_lost(server: Served) -> None:
    connection = server.send("/behind", {}, head="connection: close\r\n")
    connection.recv(10)  # and no more until the server waits for us
    wait_until(lambda: bool(behind), what="a reader that is behind")
    body = read_all(connection)
    num_blocks = body.count(b"x" * 65536)
    assert 0 < num_blocks < MAX_BLOCKS
    assert b"data: %d\n\n" % num_blocks in body
