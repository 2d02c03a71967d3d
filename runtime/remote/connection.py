"""HTTP to one server: JSON out, JSON or a stream of events back, time limits, repetitions.

    answer = await connection.post("/chat/completions", body)
    async for event in connection.events("/chat/completions", body): ...

A request is repeated when it could not be sent, when its answer did not come whole, or when the server says so (`failures`), at most
`max_retries` times; a stream is not repeated once it has begun. The limit on a whole request, repetitions included, is the caller's. Cancelling whoever waits here closes the request's connection, which tells the server to stop. Keys are in
headers only: no message of this module holds one. httpx2 is imported with the first request.

Events: HTML Living Standard, section 9.2 (server-sent events). Owns the connections of one server. Knows no body's meaning.
"""

from __future__ import annotations

import asyncio
import codecs
import itertools
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from ...errors import ConfigError, RadixError, ServiceError, TimedOut
from .failures import Refusal, delay_s, refusal_of

if TYPE_CHECKING:
    import httpx2

Answer = TypeVar("Answer")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds, and how much at once. `timeout_s` is for one request with all its repetitions."""

    timeout_s: float = 600.0
    connect_timeout_s: float = 10.0
    max_retries: int = 2
    max_concurrency: int = 64

    def check(self) -> None:
        """ConfigError for a value that is not possible."""
        for name, lowest in (("timeout_s", 1e-3), ("connect_timeout_s", 1e-3), ("max_retries", 0), ("max_concurrency", 1)):  # fmt: skip
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= lowest:
                raise ConfigError(f"{name}={value!r} is not a number from {lowest} on", place=name)


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: its name ("" for none) and its data."""

    name: str
    data: str

    def json(self, server: str) -> dict[str, Any]:
        """The data as a JSON object."""
        return _object(server, self.data)


class Connection:
    """See the module. All methods run on one loop."""

    def __init__(
        self,
        server: str,
        base_url: str,
        headers: Mapping[str, str],
        limits: Limits,
        *,
        verify: bool | str = True,
    ) -> None:
        """`verify`: check the server's certificate, by the system's authorities or by those of a file."""
        limits.check()
        self.server = server
        self.base_url = checked_url(base_url)
        self._headers = _checked_headers(headers)
        self._limits = limits
        self._verify = _checked_verify(verify)
        self._client: httpx2.AsyncClient | None = None

    async def get(self, path: str) -> dict[str, Any]:
        """The JSON object at `path`."""
        return _object(self.server, await self._repeated("GET", path, None, self._read))

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that answers `body`."""
        return _object(self.server, await self._repeated("POST", path, body, self._read))

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Event, None]:
        """The events that answer `body`, up to the end of the stream."""
        response: httpx2.Response = await self._repeated("POST", path, body, self._as_it_is)
        try:
            async with aclosing(
                events_of(cast("AsyncIterator[bytes]", response.aiter_bytes()))
            ) as events:
                async for event in events:
                    yield event
        except _library().TransportError as error:
            raise self._broken(error) from error
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    # ------------------------------------------------------------------------------------------ attempts

    async def _repeated(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        take: Callable[[httpx2.Response], Awaitable[Answer]],
    ) -> Answer:
        """What `take` makes of the first good response."""
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        for attempt in itertools.count(1):
            try:
                client = self._connected()
                request = client.build_request(method, self.base_url + path, content=content)
                response = await client.send(request, stream=True)
                if response.status_code < 300:
                    return await take(response)
                refusal = await self._refused(response)
                headers = dict(response.headers)
            except _library().TransportError as error:
                refusal = Refusal(self._broken(error), is_retryable=True)
                headers = dict[str, str]()
                refusal.error.__cause__ = error
            if attempt > self._limits.max_retries or not refusal.is_retryable:
                raise refusal.error
            await asyncio.sleep(delay_s(attempt, headers))
        raise AssertionError("the last attempt returns or raises")

    async def _read(self, response: httpx2.Response) -> str:
        try:
            return (await response.aread()).decode("utf-8", errors="replace")
        finally:
            await response.aclose()

    async def _as_it_is(self, response: httpx2.Response) -> httpx2.Response:
        return response

    async def _refused(self, response: httpx2.Response) -> Refusal:
        try:
            data = await response.aread()
        finally:
            await response.aclose()
        return refusal_of(self.server, response.status_code, response.headers, data)

    def _broken(self, error: Exception) -> RadixError:
        httpx = _library()
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return ServiceError(
                f"{self.server} cannot be reached at {self.base_url}: {_reason(error)}",
                hint="Does it run there?",
            )
        if isinstance(error, httpx.TimeoutException):
            return TimedOut(
                f"{self.server} sent nothing for {self._limits.timeout_s:g} s", place="timeout_s"
            )
        return ServiceError(f"the answer of {self.server} broke off: {_reason(error)}")

    def _connected(self) -> httpx2.AsyncClient:
        client = self._client
        if client is None:
            httpx = _library()
            limits = self._limits
            client = self._client = httpx.AsyncClient(
                headers={
                    "content-type": "application/json",
                    "user-agent": "radixlm",
                    **self._headers,
                },
                timeout=httpx.Timeout(
                    limits.timeout_s, connect=limits.connect_timeout_s, pool=None
                ),
                limits=httpx.Limits(
                    max_connections=limits.max_concurrency,
                    max_keepalive_connections=limits.max_concurrency,
                ),
                verify=self._verify,
            )
        return client


async def events_of(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Event, None]:
    """The events in a stream of bytes, cut anywhere. Only line breaks of the standard end a line: JSON may hold others."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest, name = "", ""
    data: list[str] = []
    async for piece in pieces:
        rest += decoder.decode(piece)
        *lines, rest = rest.replace("\r\n", "\n").split("\n")
        for line in lines:
            if not line:
                if data:
                    yield Event(name, "\n".join(data))
                data, name = [], ""
            elif line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif line.startswith("event:"):
                name = line[6:].strip()
    if data:
        yield Event(name, "\n".join(data))


def _object(server: str, text: str) -> dict[str, Any]:
    try:
        data: Any = json.loads(text)
    except ValueError:
        raise ServiceError(f"{server} answered with what is no JSON: {text[:200]!r}") from None
    if not isinstance(data, dict):
        raise ServiceError(f"{server} answered with what is no JSON object: {text[:200]!r}")
    return data  # pyright: ignore[reportUnknownVariableType]


def checked_url(url: Any) -> str:
    """The address without a slash at its end. What may hold a password is not shown."""
    hint = "Write http://host:port"
    if not isinstance(url, str):
        raise ConfigError(f"{url!r} is no address of a server", place="base_url", hint=hint)
    behind = url.split("://", 1)[-1]
    if "@" in re.split(r"[/?#]", behind, maxsplit=1)[0]:
        raise ConfigError(
            "an address with a name or password in it is not taken: it is shown in errors",
            place="base_url",
            hint="Pass api_key=..., or headers={'authorization': ...}",
        )
    scheme, is_sound = "", False
    with suppress(ValueError):
        parts = urlsplit(url)
        scheme = parts.scheme
        is_sound = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    if not is_sound or not url.isprintable() or " " in url:
        shown = "base_url" if "@" in url else repr(url)
        raise ConfigError(f"{shown} is no address of a server", place="base_url", hint=hint)
    if scheme not in ("http", "https"):
        raise ConfigError(f"{url!r} is no address of a server", place="base_url", hint=hint)
    return url.rstrip("/")


def _checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """A copy. ConfigError for what HTTP cannot carry; values are not shown, and no name that may be one."""
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError("a name in headers is none of HTTP's", place="headers")
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"the value of the header {name!r} is no text of plain ASCII characters in one line",
                place="headers",
            )
    return dict(headers)


def _checked_verify(verify: Any) -> bool | ssl.SSLContext:
    if isinstance(verify, bool):
        return verify
    if not isinstance(verify, str):
        raise ConfigError(f"verify={verify!r} is neither a bool nor a file", place="verify")
    try:
        return ssl.create_default_context(cafile=verify)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"{verify!r} holds no certificates of authorities: {error}", place="verify"
        ) from error


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _library() -> Any:
    try:
        import httpx2
    except ImportError:
        raise ConfigError(
            "remote backends need httpx2", hint="pip install 'radixlm[remote]'"
        ) from None
    return httpx2
