"""How a streamed body is framed: in chunks where HTTP/1.1 says so, and exactly as the application gave it everywhere else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from http_server import Served, read_all, served
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from radixlm.runtime.launch import Runtime

PIECES = (b"first ", b"", b"second\r\n0\r\n\r\n ", b"x" * 70_000)
WHOLE = b"".join(PIECES)


async def _pieces() -> AsyncIterator[bytes]:
    for piece in PIECES:
        yield piece


async def of_unknown_length(request: Request) -> Response:
    return StreamingResponse(_pieces())


async def of_known_length(request: Request) -> Response:
    return StreamingResponse(_pieces(), headers={"content-length": str(len(WHOLE))})


async def without_body(request: Request) -> Response:
    return Response(status_code=204)


next_begun, has_left = asyncio.Event(), asyncio.Event()


async def that_lingers(request: Request) -> Response:
    """Its application goes on behind the end of its answer, until the next one has begun."""

    async def linger() -> None:
        await next_begun.wait()
        asyncio.get_running_loop().call_later(0.01, has_left.set)

    return StreamingResponse(_pieces(), background=BackgroundTask(linger))


async def behind_it(request: Request) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"begun"
        next_begun.set()
        await has_left.wait()
        yield b"in chunks" if request.state.connection.takes_chunks else b"not in chunks"

    return StreamingResponse(pieces())


ROUTES = (
    Route("/lingers", that_lingers, methods=["GET"]),
    Route("/behind", behind_it, methods=["GET"]),
    Route("/unknown", of_unknown_length, methods=["GET"]),
    Route("/known", of_known_length, methods=["GET"]),
    Route("/nothing", without_body, methods=["GET"]),
)


@pytest.fixture(scope="module")
def server(slow_runtime: Runtime) -> Iterator[Served]:
    with served(slow_runtime, ROUTES) as running:
        yield running


def ask(server: Served, method: str, path: str, version: str) -> tuple[bytes, bytes]:
    """Head and body of an answer, the body as it came over the wire."""
    connection = server.connect()
    connection.sendall(
        f"{method} {path} HTTP/{version}\r\nhost: x\r\nconnection: close\r\n\r\n".encode()
    )
    head, _, body = read_all(connection).partition(b"\r\n\r\n")
    return head.lower(), body


def test_pieces_of_unknown_length_go_as_one_chunk_each_and_an_empty_one_is_no_end(
    server: Served,
) -> None:
    head, body = ask(server, "GET", "/unknown", "1.1")
    assert b"transfer-encoding: chunked" in head
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in PIECES if piece]
    assert body == b"".join(chunks) + b"0\r\n\r\n"


def test_an_http_1_0_client_gets_the_bytes_alone(server: Served) -> None:
    head, body = ask(server, "GET", "/unknown", "1.0")
    assert b"transfer-encoding" not in head
    assert body == WHOLE


def test_pieces_of_known_length_are_not_framed(server: Served) -> None:
    head, body = ask(server, "GET", "/known", "1.1")
    assert b"content-length: %d" % len(WHOLE) in head
    assert body == WHOLE


@pytest.mark.parametrize(("method", "path"), [("HEAD", "/unknown"), ("GET", "/nothing")])
def test_what_has_no_body_gets_none(server: Served, method: str, path: str) -> None:
    assert ask(server, method, path, "1.1")[1] == b""


def test_the_next_answer_on_a_kept_connection_is_framed_by_its_own_kind(server: Served) -> None:
    connection = server.connect()
    for path, end in (("/unknown", b"\r\n0\r\n\r\n"), ("/known", WHOLE[-70_000:])):
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(end) or len(answer) < 70_000:
            answer += connection.recv(65536)
        _, _, body = answer.partition(b"\r\n\r\n")
    assert body == WHOLE


def test_an_application_that_outlives_its_answer_leaves_the_next_one_alone(server: Served) -> None:
    connection = server.connect()
    both = (("/lingers", ""), ("/behind", "connection: close\r\n"))
    requests = [f"GET {path} HTTP/1.1\r\nhost: x\r\n{close}\r\n" for path, close in both]
    connection.sendall("".join(requests).encode())
    _, _, answer = read_all(connection).rpartition(b"\r\n\r\n5\r\n")
    assert answer == b"begun\r\n9\r\nin chunks\r\n0\r\n\r\n"
