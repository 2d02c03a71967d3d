"""Our own server: the wire's messages over HTTP (`runtime/http/routes/programs.py`), so nothing is lost or done another way.

A request carries the whole branch; the server's prefix cache finds what it has computed, forks share it. Errors arrive as they are
at a local client. Knows the three endpoints and their JSON, nothing of tokens.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....errors import RadixError, ServiceError
from ... import messages as m
from ..adapter import Ask, Choose, OnDelta, Told
from ..connection import Connection
from ..failures import error_in_stream
from ..prompts import segments_of


class _Answer(msgspec.Struct):
    finished: m.Finished
    continuation: tuple[m.Segment, ...]


class RadixlmServer:
    """An Adapter; `connect` before use."""

    def __init__(self, connection: Connection) -> None:
        self.name = connection.server
        self._connection = connection
        self._facts: m.Ready | None = None

    @property
    def facts(self) -> m.Ready:
        """Facts of the model."""
        if self._facts is None:
            raise ServiceError(f"{self.name} is not connected yet")
        return self._facts

    async def connect(self) -> m.Ready:
        """Ask for the facts."""
        told = await self._connection.get("/radixlm/model")
        facts: m.Ready = _read(self.name, told, m.Ready)
        self._facts = facts
        return facts

    async def generate(self, ask: Ask, on_delta: OnDelta | None) -> Told:
        """Continue by one request."""
        message = ask.message
        body = {
            "segments": segments_of(ask.pieces),
            "sampling": message.sampling,
            "constraint": message.constraint,
            "stream": on_delta is not None,
            "namespace": ask.namespace,
            "strict_text": ask.strict_text,
            "hints": message.hints,
        }
        plain = msgspec.to_builtins(body, str_keys=True)
        if on_delta is None:
            told = await self._connection.post("/radixlm/generate", plain)
        else:
            told = await self._stream(plain, message.request, on_delta)
        answer = _read(self.name, told, _Answer)
        finished = msgspec.structs.replace(answer.finished, request=message.request)
        return Told(finished, answer.continuation)

    async def _stream(
        self, body: dict[str, Any], request: str, on_delta: OnDelta
    ) -> dict[str, Any]:
        partial = ""
        async for event in self._connection.events("/radixlm/generate", body):
            data = event.json(self.name)
            if "finished" in data:
                return data
            if "failed" in data or "error" in data:
                raise _with_partial(self._error(data), partial)
            delta = _read(self.name, data, m.Delta)
            partial += delta.text if delta.index == 0 else ""
            on_delta(msgspec.structs.replace(delta, request=request))
        raise _with_partial(ServiceError(f"the stream of {self.name} ended too early"), partial)

    def _error(self, data: dict[str, Any]) -> RadixError:
        if "failed" in data:
            return _read(self.name, data["failed"], m.WireError).to_exception()
        return error_in_stream(self.name, data["error"])

    async def score(self, choose: Choose) -> m.Scored:
        """Judge by one request."""
        message = choose.message
        body = {
            "segments": segments_of(choose.pieces),
            "choices": message.choices,
            "namespace": choose.namespace,
            "hints": message.hints,
        }
        told = await self._connection.post("/radixlm/score", msgspec.to_builtins(body))
        scored = _read(self.name, told, m.Scored)
        return msgspec.structs.replace(scored, request=message.request)

    def speculates(self, ask: Ask) -> bool:
        """Nothing is won by it here: a request costs what it computes, and ids would be lost."""
        return False

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()


def _read(server: str, data: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(data, kind, str_keys=True)
    except msgspec.ValidationError as error:
        raise ServiceError(
            f"{server} answered in a form unknown here: {error}", hint="Is it of the same version?"
        ) from None


def _with_partial(error: RadixError, partial: str) -> RadixError:
    error.partial = partial  # type: ignore[attr-defined]
    return error
