"""/metrics: Prometheus' text format. An engine that does not answer shows as radixlm_engine_up 0, not as a failed scrape."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....errors import RadixError
from ..context import server_of
from ..live_request import counters_of
from ..metrics import CONTENT_TYPE

SCRAPE_TIMEOUT_S = 2.0


async def metrics(request: Request) -> Response:
    """All metrics."""
    server = server_of(request)
    counters: Mapping[str, float] | None = None
    try:
        async with asyncio.timeout(SCRAPE_TIMEOUT_S):
            counters = await counters_of(server.client)
    except (RadixError, TimeoutError):
        pass
    return Response(server.metrics.render(counters), headers={"content-type": CONTENT_TYPE})


ROUTES = (Route("/metrics", metrics, methods=["GET"]),)
