"""A stream that is refused late still gets its status; one that was accepted and has nothing to say yet gets comments."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from scripted_client import Script, ScriptedClient
from stream_reading import events_of

from radixlm.errors import EngineDied, GrammarError
from radixlm.runtime.http.app import create_app
from radixlm.runtime.http.settings import ServerSettings

KEEPALIVE_S = 0.05
BODIES: Any = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    ("/v1/completions", {"prompt": ["a", "b"]}),
]


def streamed(client: ScriptedClient, path: str, body: dict[str, Any]) -> httpx2.Response:
    async def main() -> httpx2.Response:
        app = create_app(client, ServerSettings.create(keepalive_s=KEEPALIVE_S))
        transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.post(path, json={**body, "stream": True})

    return asyncio.run(main())


@pytest.mark.parametrize(("path", "body"), BODIES)
def test_a_schema_that_is_refused_after_a_long_silence_is_a_400(
    client: ScriptedClient, path: str, body: dict[str, Any]
) -> None:
    client.answer = lambda _: Script(
        error=GrammarError("too large"), accepted_after_s=6 * KEEPALIVE_S
    )
    answer = streamed(client, path, {**body, "regex": "a"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "unsupported_schema"


@pytest.mark.parametrize(("path", "body"), BODIES)
def test_an_accepted_stream_gets_comments_before_its_first_text_and_an_error_is_a_frame(
    client: ScriptedClient, path: str, body: dict[str, Any]
) -> None:
    client.answer = lambda _: Script(
        error=EngineDied("it died"), fails_after=0, fails_after_s=6 * KEEPALIVE_S
    )
    answer = streamed(client, path, body)
    assert answer.status_code == 200
    assert answer.text.count(": keepalive\n\n") >= 2
    assert events_of(answer.text)[-1]["error"]["code"] == "engine_died"
