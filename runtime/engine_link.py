"""The gateway's view of its engine: is it ready, what waits for it, which grammars it was given, which questions are open.

What is sent while no engine is ready waits here and reaches the next one; what a dead engine had is for the gateway to fail. Owns no
socket and no request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import messages as m

MAX_LOADED_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class Query:
    """A client's question to the engine, to be answered to `client`."""

    client: bytes
    message: m.StatsRequest | m.FlushCache


class EngineLink:
    """One engine at a time. `send_now` puts a message on the wire; `program` gives a compiled grammar's bytes."""

    def __init__(
        self, send_now: Callable[[m.EngineInbound], None], program: Callable[[str], bytes | None]
    ) -> None:
        self.ready: m.EngineReady | None = None
        self.context_length: int | None = (
            None  # kept while the engine is replaced by another of its kind
        )
        self._send_now = send_now
        self._program = program
        self._backlog: list[m.EngineInbound] = []
        self._loaded: set[str] = set()  # it asks again for those it dropped
        self._queries: dict[str, Query] = {}
        self._num_queries = 0

    def send(self, message: m.EngineInbound) -> None:
        """Send now, or once an engine is ready. Cancelling what still waits here removes it."""
        if self.ready is not None:
            self._send_now(message)
        elif isinstance(message, m.Cancel):
            waiting = (
                item
                for item in self._backlog
                if not isinstance(item, m.Submit) or item.request != message.request
            )
            self._backlog = list(waiting)
        else:
            self._backlog.append(message)

    def submit(self, part: m.Submit) -> None:
        """Send a request, its grammar ahead of it when this engine was not given it yet."""
        if part.program and part.program not in self._loaded:
            self.load(part.program)
        self.send(part)

    def load(self, key: str) -> bool:
        """Give the engine a compiled grammar. False when the gateway holds it no longer (the engine will ask)."""
        data = self._program(key)
        if data is None:
            return False
        if len(self._loaded) >= MAX_LOADED_KEYS:
            self._loaded.clear()
        self._loaded.add(key)
        self.send(m.LoadProgram(key, data))
        return True

    def on_ready(self, ready: m.EngineReady) -> None:
        """An engine is there: it gets what waited."""
        self.ready = ready
        self.context_length = ready.context_length
        backlog, self._backlog = self._backlog, []
        for message in backlog:
            self._send_now(message)

    def on_died(self) -> list[Query]:
        """The engine ended: it holds nothing any more. Returns the questions it left open."""
        self.ready = None
        self._loaded.clear()
        left = list(self._queries.values())
        self._queries.clear()
        return left

    def ask(self, client: bytes, message: m.StatsRequest | m.FlushCache) -> None:
        """Pass a client's question on."""
        self._num_queries += 1
        name = f"?{self._num_queries}"
        self._queries[name] = Query(client, message)
        self.send(m.EngineQuery(name, "stats" if isinstance(message, m.StatsRequest) else "flush"))

    def take_query(self, name: str) -> Query | None:
        """The question that an answer belongs to, once."""
        return self._queries.pop(name, None)

    def forget_client(self, client: bytes) -> None:
        """Drop the questions of a client that is gone."""
        self._queries = {
            name: query for name, query in self._queries.items() if query.client != client
        }
