"""Who may ask: keys, foreign web pages, and how many at a time. One ASGI layer around every route.

    wrong or no key -> 401 - a web page of elsewhere, on a server without a key -> 403 - too many requests in work -> 429,
    too many connections -> 503

/health and /ready are open to all. Every key is compared in constant time, and none is logged or sent back. A caller's key decides its
part of the prefix cache (`scope["state"]["tenant"]`), so that the timing of hits tells nothing about other callers' prompts. A server
without a key trusts this machine's programs, but not the web pages in its browser: those send an Origin.
Knows no bodies. Source of the browser's rules: WHATWG Fetch, "HTTP CORS protocol" (a text/plain POST is sent without asking first).
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...errors import Overloaded
from .connection import cut_off
from .incoming_body import IncomingBody
from .metrics import Metrics
from .refusals import HttpRefusal, refuse
from .settings import ServerSettings, is_loopback

OPEN_PATHS = frozenset({"/health", "/ready"})


class AccessLayer:
    """The layer. It also sees every answer's status, for the metrics, lets no answer overtake its body, and no defect end as silence."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        self._app = app
        self._keys = Keys(settings.api_keys)
        self._max_requests = settings.max_requests
        self._max_connections = settings.max_connections
        self._max_discarded_bytes = 4 * settings.max_body_bytes
        self._origins = frozenset(settings.origins)
        self._metrics = metrics
        self._num_in_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 0
        body = IncomingBody(scope, receive)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status != 408:  # which says that it does not come
                    await body.discard(self._max_discarded_bytes)
            await send(message)

        self._metrics.request_begins()
        self._num_in_work += 1
        try:
            refusal = self._refusal(scope)
            app = self._app if refusal is None else refuse(refusal)
            await app(scope, body.receive, watched)
        except Exception as error:  # noqa: BLE001 - a defect: logged by `refuse`, answered if that is still possible
            if status:
                refuse(error)
                cut_off(scope)
            else:
                await refuse(error)(scope, body.receive, watched)
        finally:
            self._num_in_work -= 1
            self._metrics.request_ends(
                _route_of(scope), status or 499
            )  # 499: the client left first

    def _refusal(self, scope: Scope) -> Exception | None:
        if scope["path"] in OPEN_PATHS:
            return None
        headers = dict(scope["headers"])
        tenant = self._keys.tenant(headers)
        if tenant is None:
            return HttpRefusal(
                "a valid API key is needed: send it as Authorization: Bearer KEY or as x-api-key",
                status=401,
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )
        origin = headers.get(b"origin", b"").decode("latin-1")
        if not self._keys and origin and not self._is_welcome(origin):
            return HttpRefusal(
                f"pages of {origin[:100]} may not call this server",
                status=403,
                code="origin_not_allowed",
                hint="Start it with allow_origins, or with an api_key",
            )
        if self._num_in_work > self._max_requests:
            return Overloaded(f"{self._max_requests} requests are in work or waiting already")
        num_connections = scope.get("state", {}).get("num_connections", int)()
        if num_connections > self._max_connections:
            return HttpRefusal(
                f"{self._max_connections} connections are open already",
                status=503,
                code="too_many_connections",
                headers={"connection": "close", "retry-after": "1"},
            )
        scope.setdefault("state", {})["tenant"] = tenant
        return None

    def _is_welcome(self, origin: str) -> bool:
        if "*" in self._origins or origin in self._origins:
            return True
        try:
            return is_loopback(urlsplit(origin).hostname or "")
        except ValueError:
            return False


class Keys:
    """The accepted keys. False when there are none: then everybody is let in."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._digests = tuple(hashlib.sha256(key.encode()).digest() for key in keys)

    def __bool__(self) -> bool:
        return bool(self._digests)

    def tenant(self, headers: dict[bytes, bytes]) -> str | None:
        """The caller's part of the cache, "" without keys; None when it may not come in."""
        if not self._digests:
            return ""
        scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
        given = key.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
        # digests have one length, and all of them are compared: the time tells neither length nor place
        digest = hashlib.sha256(given).digest()
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        return digest.hex()[:16] if any(matches) else None


def _route_of(scope: Scope) -> str:
    """The pattern of the route that was taken, or "other": paths come from strangers and must not make series."""
    route = scope.get("route")
    return getattr(route, "path", None) or "other"
