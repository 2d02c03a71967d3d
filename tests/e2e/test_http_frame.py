"""The real model behind the real server: what is refused, clients that leave, and that the next request never notices.

Rows H012, H013, H028 and H029 of the shared cases, restated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from http_server import WAIT_S, Served, served
from process_checks import wait_until

import radixlm
from radixlm.runtime import messages as m

pytestmark = pytest.mark.model
CHAT = "/v1/chat/completions"
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture(scope="module")
def server(engine: radixlm.Engine) -> Iterator[Served]:
    with served(engine._runtime) as running:
        yield running


def post(server: Served, body: Any) -> httpx.Response:
    return httpx.post(server.url + CHAT, json=body, timeout=2 * WAIT_S)


def is_served(server: Served) -> bool:
    return post(server, {"messages": HI, "max_tokens": 1}).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "[unclosed"}}}, ("/a/", "pattern")),
        ([], ("schema",)),
        (None, ("schema",)),
    ],
)  # fmt: skip
def test_a_bad_schema_is_refused_by_name(
    server: Served, schema: Any, words: tuple[str, ...], stream: bool
) -> None:
    form = {"name": "x"} if schema is None else {"name": "x", "schema": schema}
    response_format = {"type": "json_schema", "json_schema": form}
    answer = post(server, {"messages": HI, "response_format": response_format, "stream": stream})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["code"] == "unsupported_schema"
    assert all(word in error["message"] for word in words)
    assert is_served(server)


def test_a_prompt_beyond_the_context_is_refused_with_both_numbers(server: Served) -> None:
    messages = [{"role": "user", "content": "word " * 9000}]
    answer = post(server, {"messages": messages, "max_tokens": 4})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert "8192" in answer.json()["error"]["message"]
    assert is_served(server)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_gives_its_pages_back(
    server: Served, engine: radixlm.Engine, stream: bool
) -> None:
    def stats() -> dict[str, float]:
        request = m.StatsRequest(engine._client.new_id("s"))
        return engine._client.request(request).result(WAIT_S).counters

    def usable(counters: dict[str, float]) -> float:
        return counters["free_pages"] + counters["evictable_pages"]

    before = usable(stats())
    body = {"messages": HI, "max_tokens": 2000, "ignore_eos": True, "stream": stream}
    connection = server.send(CHAT, body)
    wait_until(lambda: stats()["running"] == 1, what="a running request")
    connection.close()
    wait_until(lambda: stats()["running"] == 0, what="an engine without work")
    assert usable(stats()) == before


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b'{"model": ', 400),
        (b'{"model": "nope", "messages": [{"role": "user", "content": "Hi"}]}', 404),
        (b"{}", 400),
        (b'{"messages": []}', 400),
        (b'{"messages": [{"role": "banana", "content": "Hi"}]}', 400),
    ],
)
def test_a_wrong_body_gets_an_error_object(server: Served, content: bytes, status: int) -> None:
    answer = httpx.post(server.url + CHAT, content=content, timeout=WAIT_S)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert isinstance(error["message"], str)
    assert {"type", "code"} <= set(error)
