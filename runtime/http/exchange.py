"""A request that is answered whole or as a stream: what its endpoint provides, and the answer made of it. Knows no API's shapes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response

from .json_answer import JsonAnswer
from .request_body import ignored_headers
from .sse import Outlet, event_stream, unless_gone


class Exchange(Protocol):
    """One request on its way."""

    def is_accepted(self) -> bool:
        """Can a failure no longer be the caller's mistake?"""
        ...

    async def whole(self) -> Any:
        """The answer, when it is complete."""
        ...

    def frames(self, outlet: Outlet) -> AsyncGenerator[bytes, None]:
        """The answer as it comes; text that need not wait for the generator may take `outlet`."""
        ...


async def answer_exchange(
    request: Request, exchange: Exchange, ignored: tuple[str, ...], *, is_streamed: bool
) -> Response:
    """The endpoint's answer; the fields that were ignored are named in its headers."""
    headers = ignored_headers(ignored)
    if not is_streamed:
        return JsonAnswer(await unless_gone(request, exchange.whole()), headers=headers)
    outlet = Outlet()
    return event_stream(
        request, exchange.frames(outlet), headers, is_accepted=exchange.is_accepted, outlet=outlet
    )
