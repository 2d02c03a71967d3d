"""/v1/models and /v1/models/{id}: the one model that is served. Its name may hold slashes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..context import ServerContext, server_of
from ..json_answer import JsonAnswer


async def list_models(request: Request) -> Response:
    """A list of one."""
    return JsonAnswer({"object": "list", "data": [_description(server_of(request))]})


async def show_model(request: Request) -> Response:
    """The model, or 404."""
    server = server_of(request)
    server.check_model(request.path_params["model"])
    return JsonAnswer(_description(server))


def _description(server: ServerContext) -> dict[str, object]:
    return {
        "id": server.model,
        "object": "model",
        "created": server.started_s,
        "owned_by": "radixlm",
        "max_model_len": server.client.facts.context_length,
    }


ROUTES = (
    Route("/v1/models", list_models, methods=["GET"]),
    Route("/v1/models/{model:path}", show_model, methods=["GET"]),
)
