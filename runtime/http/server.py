"""`serve`: the HTTP server on the runtime's own loop thread, from a bound socket to the last drained request.

    main thread      waits for SIGTERM, SIGINT or a dead service ----.
    loop thread      uvicorn + the application + the client's socket  <'   deltas arrive on the loop that writes to the clients

The first signal drains: no new connection, /ready says 503, running requests get `drain_timeout_s` to end, then their clients get an
error. A second signal ends at once. Owns the listening socket and that order. Knows no route.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from uvicorn.server import ServerState

from ...errors import ConfigError, ServiceError
from ..launch import Runtime
from .app import create_app
from .connection import ChunkedAnswers, Connection
from .context import ServerContext
from .live_request import ClientLike
from .loop_lag import LoopLag
from .settings import ServerSettings

log = logging.getLogger(__name__)

LAST_WORDS_S = 2.0  # for the error frames of requests that were ended by the drain
_BACKLOG = 2048


class HttpServer:
    """A server on a running loop. Make it anywhere; everything but `address` is used on the loop's thread."""

    def __init__(
        self, client: ClientLike, settings: ServerSettings, more_routes: Sequence[BaseRoute] = ()
    ) -> None:
        self.settings = settings
        app = create_app(client, settings, more_routes=more_routes)
        self._context: ServerContext = app.state.server
        self._uvicorn = uvicorn.Server(_uvicorn_config(app, settings))
        self._socket = _listening_socket(settings)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._draining: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Give the address back, when `run` was never called."""
        self._socket.close()

    @property
    def url(self) -> str:
        """Where clients reach it."""
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def run(self) -> None:
        """Serve until `drain` or `stop` has done its work, which may be before this begins."""
        server = self._uvicorn
        lag = LoopLag(self._context.metrics.observe_loop_lag)
        lag.start()
        try:
            if not server.should_exit:
                await server.serve(sockets=[self._socket])
        finally:
            lag.stop()
            for listener in getattr(server, "servers", ()):
                listener.close()  # uvicorn does not, when it is stopped while it starts
            self._socket.close()
            await self._leave_nothing(server.server_state)

    async def _leave_nothing(self, state: ServerState) -> None:
        """Whatever did not end by itself ends here: the loop goes on, and other servers may run on it."""
        tasks: list[asyncio.Task[None]] = [*state.tasks]
        if self._draining is not None:
            tasks.append(self._draining)
        for connection in list(state.connections):
            connection.transport.abort()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_WORDS_S)

    def drain(self) -> None:
        """End when the running requests have ended, at the latest after `drain_timeout_s`."""
        if self._draining is None:
            self._draining = asyncio.get_running_loop().create_task(self._drain())

    def stop(self) -> None:
        """End now."""
        self._context.lives.is_draining = True
        self._context.lives.fail_all(ServiceError("the server was stopped"))
        self._uvicorn.should_exit = self._uvicorn.force_exit = True

    async def _drain(self) -> None:
        lives = self._context.lives
        lives.is_draining = True
        self._uvicorn.should_exit = True
        log.info("draining: %d requests are running", len(lives))
        await asyncio.sleep(self.settings.drain_timeout_s)
        lives.fail_all(ServiceError("the server is shutting down"))
        await asyncio.sleep(LAST_WORDS_S)
        self._uvicorn.force_exit = True


def serve(
    runtime: Runtime,
    settings: ServerSettings,
    *,
    on_listening: Callable[[HttpServer], None] = lambda server: None,
    more_routes: Sequence[BaseRoute] = (),
) -> int:
    """Serve until SIGTERM or SIGINT, then close the runtime. Call it in the main thread. Returns the exit status.

    `on_listening` is told when clients can connect. Raises ConfigError when the address cannot be listened on.
    """
    with contextlib.closing(runtime):
        server = HttpServer(runtime.client, settings, more_routes)
        _raise_file_limit()
        with _signals(runtime, server):
            gc.collect()
            gc.freeze()  # modules and routes stay: a collection that looked at them (33 ms) would hold up every stream
            try:
                running = runtime.on_loop(server.run())
                on_listening(server)
                running.result()
                runtime.close()  # a signal that comes meanwhile must not cut this short
            finally:
                gc.unfreeze()
    return 0


def _uvicorn_config(app: Starlette, settings: ServerSettings) -> uvicorn.Config:
    limits = {"read_timeout_s": settings.read_timeout_s}
    return uvicorn.Config(
        ChunkedAnswers(app),
        http=type("LimitedConnection", (Connection,), limits),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        h11_max_incomplete_event_size=settings.max_header_bytes,
    )


def _listening_socket(settings: ServerSettings) -> socket.socket:
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}",
            place="port",
            hint="Give another port, or 0 for any free one",
        ) from None
    listener.setblocking(False)
    return listener


def _raise_file_limit() -> None:
    """One file a connection: the usual soft limit of 1024 is less than `max_connections`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 1 << 16) if hard != resource.RLIM_INFINITY else 1 << 16
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@contextlib.contextmanager
def _signals(runtime: Runtime, server: HttpServer) -> Generator[None]:
    """SIGTERM and SIGINT drain; the second one stops."""
    num_signals = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal num_signals
        num_signals += 1
        runtime.call_soon(server.drain if num_signals == 1 else server.stop)

    before: dict[int, Any] = {
        number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
