"""An ASGI app on loopback, in a thread of its own, for clients that need a socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import uvicorn

WAIT_S = 30.0


@contextmanager
def asgi_served(app: Any) -> Iterator[str]:
    """The address of `app` while the block runs."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, log_level="error", lifespan="off", ws="none", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
        listener.close()


def connections_to(url: str) -> int:
    """Connections of this process to the server at `url` that are open."""
    port = int(url.rpartition(":")[2].partition("/")[0])
    found = psutil.Process().net_connections("tcp")
    return sum(bool(c.raddr) and c.raddr.port == port and c.status == "ESTABLISHED" for c in found)
