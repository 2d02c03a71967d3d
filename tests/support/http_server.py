"""A real server on loopback around a runtime of toy processes or a scripted client, and raw sockets for what no HTTP library sends."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import BaseRoute

from radixlm.runtime.http.server import HttpServer
from radixlm.runtime.http.settings import ServerSettings
from radixlm.runtime.launch import Runtime

WAIT_S = 30.0


@dataclass
class Served:
    """A running server."""

    server: HttpServer
    running: Future[None]
    connections: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.server.url

    def connect(self) -> socket.socket:
        connection = socket.create_connection(self.server.address, timeout=WAIT_S)
        connection.settimeout(WAIT_S)
        self.connections.append(connection)
        return connection

    def send(self, path: str, body: Any, *, method: str = "POST", head: str = "") -> socket.socket:
        """A connection on which the whole request was written, and nothing read."""
        data = json.dumps(body).encode()
        connection = self.connect()
        connection.sendall(
            f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n{head}\r\n".encode()
            + data
        )
        return connection


@contextmanager
def served(
    runtime: Runtime, more_routes: Sequence[BaseRoute] = (), **options: Any
) -> Iterator[Served]:
    """A server of `runtime` on a free port; it is stopped at the end, the runtime is not."""
    settings = ServerSettings.create(**{"port": 0, **options})
    server = HttpServer(runtime.client, settings, more_routes)
    running = runtime.on_loop(server.run())
    started = Served(server, running)
    try:
        yield started
    finally:
        for connection in started.connections:
            connection.close()
        runtime.call_soon(server.stop)
        running.result(WAIT_S)


def read_all(connection: socket.socket) -> bytes:
    """Everything until the peer closes."""
    pieces: list[bytes] = []
    while piece := connection.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)
