"""The application over a scripted client, called by the real `openai` package, or by a plain HTTP client, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import httpx2
import pytest
from openai import AsyncOpenAI
from scripted_client import ScriptedClient

from radixlm.runtime.http.app import create_app
from radixlm.runtime.http.settings import ServerSettings

T = TypeVar("T")
Use = Callable[[httpx2.AsyncClient], Coroutine[Any, Any, T]]


@pytest.fixture
def client() -> ScriptedClient:
    return ScriptedClient()


@pytest.fixture
def over_http(client: ScriptedClient) -> Callable[[Use[T]], T]:
    """Run a coroutine function with a plain HTTP client of the application."""

    def run(use: Use[T]) -> T:
        async def main() -> T:
            app = create_app(client, ServerSettings.create(served_name="m"))
            transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
                return await use(http)

        return asyncio.run(main())

    return run


@pytest.fixture
def post(over_http: Callable[[Any], Any]) -> Callable[..., httpx2.Response]:
    """Send one body; keywords are its fields beside a chat's least."""

    def send(path: str = "/v1/chat/completions", **fields: Any) -> httpx2.Response:
        least: dict[str, Any] = (
            {"messages": [{"role": "user", "content": "Hi"}]}
            if "chat" in path
            else {"prompt": "Hi"}
        )
        return over_http(lambda http: http.post(path, json={"model": "m", **least, **fields}))

    return send


@pytest.fixture
def with_openai(over_http: Callable[[Any], Any]) -> Callable[..., Any]:
    """Run a coroutine function with the real client."""

    def run(use: Callable[[AsyncOpenAI], Coroutine[Any, Any, T]]) -> T:
        def wrapped(http: httpx2.AsyncClient) -> Coroutine[Any, Any, T]:
            return use(
                AsyncOpenAI(
                    api_key="none",
                    base_url="http://127.0.0.1/v1",
                    http_client=http,
                    max_retries=0,
                )
            )

        return over_http(wrapped)

    return run
