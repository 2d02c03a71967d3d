"""The ASGI application: routes found by themselves, errors in OpenAI's shape, the access layer around everything.

An endpoint is one module in `routes/` that exposes `ROUTES`. It finds what it needs in `context.server_of(request)`, raises errors of
`errors.py` (or `refusals.HttpRefusal`) and needs no other registration. Owns the order of the layers; knows no endpoint.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ...errors import RadixError
from . import routes
from .access import AccessLayer
from .context import BodyBudget, ServerContext
from .live_request import ClientLike
from .metrics import Metrics
from .refusals import ClientGone, HttpRefusal, refuse
from .settings import ServerSettings
from .vocabulary import VocabularyTable

MAX_BODIES = 16  # of the largest size, read at the same time


def create_app(
    client: ClientLike,
    settings: ServerSettings,
    vocabulary: VocabularyTable | None = None,
    metrics: Metrics | None = None,
    *,
    more_routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """The application over `client`. Run it on the client's loop. `more_routes` are those of whoever embeds it."""
    server = ServerContext(
        client,
        settings,
        vocabulary or VocabularyTable(client),
        metrics or Metrics(),
        BodyBudget(MAX_BODIES * settings.max_body_bytes),
    )
    layers = [Middleware(AccessLayer, settings=settings, metrics=server.metrics)]
    if settings.origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["*"],
        )
        layers.insert(0, cors)
    app = Starlette(
        routes=[*find_routes(), *more_routes],
        middleware=layers,
        exception_handlers={
            HTTPException: _on_http_exception,
            RadixError: _on_error,
            ClientGone: _on_client_gone,
        },
    )
    app.router.redirect_slashes = False
    app.state.server = server
    return app


def find_routes() -> tuple[BaseRoute, ...]:
    """The routes of every module in `routes/`, in the order of the modules' names."""
    found: list[BaseRoute] = []
    for module in sorted(pkgutil.iter_modules(routes.__path__), key=lambda module: module.name):
        found += importlib.import_module(f"{routes.__name__}.{module.name}").ROUTES
    return tuple(found)


async def _on_error(request: Request, error: Exception) -> Response:
    return refuse(error)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    """Starlette's own: no such path, or another method."""
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path}"
    texts: dict[int, Any] = {
        404: (f"there is no {what[:200]}", "not_found"),
        405: (f"{what[:200]} is not possible", "method_not_allowed"),
    }
    text, code = texts.get(error.status_code, (error.detail, None))
    return refuse(HttpRefusal(text, status=error.status_code, code=code, headers=error.headers))


async def _on_client_gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it
