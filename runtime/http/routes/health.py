"""/health: does the process live? /ready: should traffic come here now? Open to all, and they say nothing else."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....errors import RadixError
from ..context import ServerContext, server_of
from ..json_answer import JsonAnswer
from ..live_request import counters_of

READY_TIMEOUT_S = 2.0


async def health(request: Request) -> Response:
    """200 while the service can still recover by itself; 503 when only a restart helps."""
    failure = server_of(request).client.failure
    if failure is not None:
        return JsonAnswer({"status": "failed"}, status_code=503)
    return JsonAnswer({"status": "ok"})


async def ready(request: Request) -> Response:
    """200 when a request would be answered now; 503 while starting, draining, or without an engine."""
    status = await _readiness(server_of(request))
    return JsonAnswer({"status": status}, status_code=200 if status == "ready" else 503)


async def _readiness(server: ServerContext) -> str:
    if server.is_draining:
        return "draining"
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            await counters_of(server.client)
    except (RadixError, TimeoutError):
        return "no engine"
    return "ready"


ROUTES = (
    Route("/health", health, methods=["GET"]),
    Route("/ready", ready, methods=["GET"]),
)
