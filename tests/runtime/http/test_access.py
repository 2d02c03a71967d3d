"""Keys, tenants, and web pages of elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from http_probe import PROBES
from http_server import Served, served

from radixlm.runtime.launch import Runtime


@pytest.fixture(scope="module")
def locked(slow_runtime: Runtime) -> Iterator[Served]:
    """A server with two keys."""
    with served(slow_runtime, PROBES, api_key="alpha,beta") as server:
        yield server


@pytest.fixture(scope="module")
def unlocked(slow_runtime: Runtime) -> Iterator[Served]:
    with served(slow_runtime, PROBES) as server:
        yield server


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer gamma"},
        {"authorization": "Bearer alpha,beta"},
        {"authorization": "Basic alpha"},
        {"authorization": "alpha"},
        {"x-api-key": "alph"},
        {"x-api-key": ""},
    ],
)
@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/tokenize", "/nope"])
def test_without_a_right_key_nothing_is_told(
    locked: Served, path: str, headers: dict[str, str]
) -> None:
    answer = httpx.get(locked.url + path, headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_api_key"
    assert "alpha" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [{"authorization": "Bearer alpha"}, {"authorization": "bearer  beta"}, {"x-api-key": "beta"}],
)
def test_each_key_opens_in_both_headers(locked: Served, headers: dict[str, str]) -> None:
    assert httpx.get(locked.url + "/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_probes_need_no_key(locked: Served, path: str) -> None:
    assert httpx.get(locked.url + path).status_code == 200


def test_callers_hit_their_own_cache_only_and_a_salt_parts_it_further(locked: Served) -> None:
    def cached(key: str, salt: str | None = None) -> int:
        body = {"text": "a prompt that several callers share word by word", "cache_salt": salt}
        answer = httpx.post(locked.url + "/probe", json=body, headers={"x-api-key": key})
        return answer.json()["cached"]

    assert cached("alpha") == 0
    assert cached("beta") == 0
    assert cached("alpha", "s") == 0
    assert cached("alpha") > 0
    assert cached("alpha", "s") > 0


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "http://["]
)
def test_a_web_page_of_elsewhere_may_not_use_a_server_without_key(
    unlocked: Served, origin: str
) -> None:
    answer = httpx.post(unlocked.url + "/probe", json={}, headers={"origin": origin})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "origin_not_allowed"


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "http://[::1]:8"])
def test_a_web_page_of_this_machine_may(unlocked: Served, origin: str) -> None:
    answer = httpx.post(unlocked.url + "/probe", json={}, headers={"origin": origin})
    assert answer.status_code == 200


def test_allowed_origins_get_the_headers_that_browsers_ask_for(slow_runtime: Runtime) -> None:
    with served(slow_runtime, PROBES, allow_origins="https://app.example") as server:
        asking = {"origin": "https://app.example", "access-control-request-method": "POST"}
        assert httpx.options(server.url + "/probe", headers=asking).status_code == 200
        answer = httpx.post(
            server.url + "/probe", json={}, headers={"origin": "https://app.example"}
        )
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert (
            httpx.post(
                server.url + "/probe", json={}, headers={"origin": "https://b.example"}
            ).status_code
            == 403
        )
