"""What every endpoint shares: the client, the settings, the vocabulary, the metrics, and the requests that run.

    server = server_of(request)
    with server.start(m.Generate(server.client.new_id("chat"), ...)) as live: ...

Owns the set of live requests, so that a shutdown can end what does not end by itself. Decides nothing about bodies or answers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from starlette.requests import Request

from ...errors import RadixError
from .. import messages as m
from .live_request import ClientLike, LiveRequest
from .metrics import Metrics
from .refusals import HttpRefusal, unknown_model
from .settings import ServerSettings
from .vocabulary import VocabularyTable


class Lives:
    """The live requests of a server, and whether it takes new ones. A watcher of each."""

    def __init__(self) -> None:
        self.is_draining = False
        self._lives: set[LiveRequest] = set()

    def __len__(self) -> int:
        return len(self._lives)

    def add(self, live: LiveRequest) -> None:
        """Keep a request until it ends."""
        if not live.is_over:
            self._lives.add(live)

    def fail_all(self, error: RadixError) -> None:
        """End all of them; their readers get `error` after what waits for them already."""
        for live in list(self._lives):
            live.fail(error)

    def on_delta(self, live: LiveRequest, delta: m.Delta) -> None:
        """Nothing to do."""

    def on_end(self, live: LiveRequest, finished: m.Finished | None) -> None:
        """The request is over."""
        self._lives.discard(live)


@dataclass(frozen=True, slots=True)
class ServerContext:
    """One server. `request.app.state.server` is it."""

    client: ClientLike
    settings: ServerSettings
    vocabulary: VocabularyTable
    metrics: Metrics
    lives: Lives = field(default_factory=Lives)
    started_s: int = field(
        default_factory=lambda: int(time.time())
    )  # Unix time, `created` of the model

    @property
    def is_draining(self) -> bool:
        """Is the server on its way down?"""
        return self.lives.is_draining

    @property
    def model(self) -> str:
        """The model's name in the API."""
        return self.settings.served_name or self.client.facts.model

    def check_model(self, asked: str | None) -> None:
        """Raise a 404 when `asked` is another model than the served one. None and "" are taken as the served one."""
        if asked and asked not in (self.model, self.client.facts.model):
            raise unknown_model(asked, self.model)

    def namespace(self, request: Request, cache_salt: str | None = None) -> str:
        """The part of the prefix cache that this caller may hit: by API key, and by the salt it chose."""
        tenant = getattr(request.state, "tenant", "")
        return f"{tenant}/{cache_salt}" if cache_salt else tenant

    def start(self, message: m.Generate, *, constraint_field: str = "") -> LiveRequest:
        """Begin a request; `constraint_field` is the body's field whose schema or pattern it carries. 503 while draining."""
        if self.is_draining:
            raise HttpRefusal(
                "the server is shutting down",
                status=503,
                code="shutting_down",
                headers={"retry-after": "5"},
            )
        live = LiveRequest(
            self.client,
            message,
            constraint_field=constraint_field,
            max_pending_bytes=self.settings.max_pending_bytes,
            watchers=(self.lives, self.metrics),
        )
        self.lives.add(live)
        return live


def server_of(request: Request) -> ServerContext:
    """The server that `request` came to."""
    server = request.app.state.server
    assert isinstance(server, ServerContext)
    return server
