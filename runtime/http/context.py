"""What every endpoint shares: the client, the settings, the vocabulary, the metrics, and the requests that run.

    server = server_of(request)
    with server.start(m.Generate(server.client.new_id("chat"), ...)) as live: ...

Owns the set of live requests, so that a shutdown can end what does not end by itself. Decides nothing about bodies or answers.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field

from starlette.requests import Request

from ...errors import Overloaded, RadixError
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


class BodyBudget:
    """Bytes of bodies that are being read, all requests together: many large ones at once must not take the machine's memory."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0

    def take(self, num_bytes: int) -> None:
        """Count bytes that came. Raises Overloaded when there are too many."""
        self._num_bytes += num_bytes
        if self._num_bytes > self._max_bytes:
            raise Overloaded(
                f"bodies of more than {self._max_bytes} bytes are on their way already"
            )

    def give_back(self, num_bytes: int) -> None:
        """They were read."""
        self._num_bytes -= num_bytes


@dataclass(frozen=True, slots=True)
class ServerContext:
    """One server. `request.app.state.server` is it."""

    client: ClientLike
    settings: ServerSettings
    vocabulary: VocabularyTable
    metrics: Metrics
    bodies: BodyBudget
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
        if not cache_salt:
            return tenant
        # a digest: salts are as long as a body may be, and the cache keeps every namespace's name
        return f"{tenant}/{hashlib.sha256(cache_salt.encode()).hexdigest()[:32]}"

    def start(self, message: m.Generate) -> LiveRequest:
        """Begin a request. 503 while draining."""
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
