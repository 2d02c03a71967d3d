"""The real server on loopback: streams, clients that leave, limits, and what is refused before it costs anything."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from http_probe import PROBES
from http_server import WAIT_S, Served, read_all, served
from process_checks import wait_until

from radixlm.runtime import messages as m
from radixlm.runtime.launch import Runtime


@pytest.fixture(scope="module")
def server(slow_runtime: Runtime) -> Iterator[Served]:
    with served(slow_runtime, PROBES, keepalive_s=0.1, max_body_bytes=4096) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=WAIT_S) as client:
        yield client


def stats(runtime: Runtime) -> dict[str, float]:
    request = m.StatsRequest(runtime.client.new_id("s"))
    return runtime.client.request(request).result(WAIT_S).counters


def frames_of(text: str) -> list[Any]:
    """The JSON of every data frame; "[DONE]" as it is."""
    payloads = [
        line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")
    ]
    return [payload if payload == "[DONE]" else json.loads(payload) for payload in payloads]


# ------------------------------------------------------------------------------------------ answers


def test_a_stream_joined_is_the_whole_answer(client: httpx.Client) -> None:
    whole = client.post("/probe", json={"max_tokens": 12}).json()
    streamed = client.post("/probe", json={"max_tokens": 12, "stream": True})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    *deltas, last, done = frames_of(streamed.text)
    assert done == "[DONE]"
    assert "".join(delta["text"] for delta in deltas) == last["text"] == whole["text"]
    assert len(deltas) > 3


@pytest.mark.parametrize("stream", [False, True])
def test_a_bad_constraint_is_a_400_also_for_a_stream_and_leaves_the_next_request_alone(
    client: httpx.Client, stream: bool
) -> None:
    refused = client.post("/probe", json={"regex": "a(?=b", "stream": stream})
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["code"] == "unsupported_schema"
    assert "pattern" in error["message"]
    assert client.post("/probe", json={}).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_longer_than_the_context_is_a_400_with_both_numbers(
    slow_runtime: Runtime, stream: bool
) -> None:
    with served(slow_runtime, PROBES) as server:
        refused = httpx.post(f"{server.url}/probe", json={"text": "word " * 4000, "stream": stream})
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "context_length_exceeded"
        assert "4096" in refused.json()["error"]["message"]
        assert httpx.post(f"{server.url}/probe", json={}).status_code == 200


def test_silence_gets_comments_and_an_error_after_the_first_byte_is_a_frame(
    client: httpx.Client,
) -> None:
    answer = client.post("/silence")
    assert answer.status_code == 200
    assert answer.text.count(": keepalive\n\n") >= 2
    (frame,) = frames_of(answer.text)
    assert frame["error"]["code"] == "internal"
    assert "a defect" not in answer.text


def test_a_defect_of_an_endpoint_is_a_500_that_tells_nothing(client: httpx.Client) -> None:
    answer = client.post("/defect")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert "secret" not in answer.text
    assert client.post("/probe", json={}).status_code == 200


def test_ignored_fields_are_reported(client: httpx.Client) -> None:
    answer = client.post("/probe", json={"zap": 1, "user": "me"})
    assert answer.headers["x-radixlm-ignored-fields"] == "zap, user"


# ------------------------------------------------------------------------------------------ clients that leave or do not read


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_request(
    server: Served, slow_runtime: Runtime, stream: bool
) -> None:
    connection = server.send("/probe", {"text": "leaver", "max_tokens": 3000, "stream": stream})
    if stream:
        connection.recv(1000)
    wait_until(lambda: stats(slow_runtime)["running"] == 1, what="a running request")
    connection.close()
    wait_until(lambda: stats(slow_runtime)["running"] == 0, what="an engine without work")
    counters = stats(slow_runtime)
    assert counters["gateway_requests"] == 0
    assert counters["locked_pages"] == 0


def test_a_client_that_reads_nothing_is_cut_off(slow_runtime: Runtime) -> None:
    with served(slow_runtime, PROBES, keepalive_s=0.1, stall_timeout_s=0.3) as server:
        connection = server.send("/flood", {})
        wait_until(lambda: in_work(server) == 2, what="the flood")  # it, and the scrape itself
        wait_until(lambda: in_work(server) == 1, what="the end of the flood")
        assert not read_all(connection).endswith(b"0\r\n\r\n")  # cut, not ended


def in_work(server: Served) -> float:
    page = httpx.get(f"{server.url}/metrics").text
    (value,) = [
        line.split()[1]
        for line in page.splitlines()
        if line.startswith("radixlm_http_requests_in_work ")
    ]
    return float(value)


# ------------------------------------------------------------------------------------------ limits


def test_a_flood_is_answered_429_and_those_in_work_are_not_disturbed(slow_runtime: Runtime) -> None:
    with served(slow_runtime, PROBES, max_requests=2) as server:
        busy = [server.send("/probe", {"max_tokens": 40}) for _ in range(2)]
        wait_until(lambda: stats(slow_runtime)["running"] == 2, what="two running requests")
        refused = httpx.post(f"{server.url}/probe", json={})
        assert refused.status_code == 429
        assert refused.headers["retry-after"]
        assert refused.json()["error"]["code"] == "overloaded"
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert [connection.recv(100).split(b"\r\n")[0] for connection in busy] == [
            b"HTTP/1.1 200 OK"
        ] * 2
        assert httpx.post(f"{server.url}/probe", json={}).status_code == 200


def test_more_connections_than_allowed_are_answered_503(slow_runtime: Runtime) -> None:
    with served(slow_runtime, PROBES, max_connections=2) as server:
        idle = [server.connect() for _ in range(2)]
        refused = httpx.post(f"{server.url}/probe", json={})
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "too_many_connections"
        for connection in idle:
            connection.close()
        wait_until(
            lambda: httpx.post(f"{server.url}/probe", json={}).status_code == 200, what="room again"
        )


def test_a_body_over_the_limit_is_a_413_announced_or_not(client: httpx.Client) -> None:
    big = b'{"text": "' + b"x" * 5000 + b'"}'
    announced = client.post("/probe", content=big)
    chunked = client.post("/probe", content=iter([big[:3000], big[3000:]]))
    for answer in (announced, chunked):
        assert answer.status_code == 413
        assert "4096" in answer.json()["error"]["message"]


def test_what_is_no_http_or_has_too_large_a_head_is_a_400_in_json(server: Served) -> None:
    for data in (b"\x16\x03\x01 hello\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"y" * 40_000):
        connection = server.connect()
        connection.sendall(data)
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400")
        assert json.loads(body)["error"]["code"] == "invalid_http"


def test_a_head_or_body_that_does_not_come_ends_the_wait(slow_runtime: Runtime) -> None:
    with served(slow_runtime, PROBES, read_timeout_s=0.3) as server:
        silent, partial, unfinished = (server.connect() for _ in range(3))
        partial.sendall(b"POST /probe HTTP/1.1\r\nhost: x\r\n")
        unfinished.sendall(b'POST /probe HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{"a"')
        assert read_all(silent) == b""
        assert read_all(partial) == b""
        assert read_all(unfinished).startswith(b"HTTP/1.1 408")


def test_a_kept_connection_serves_again_after_a_pause_in_the_head(slow_runtime: Runtime) -> None:
    with served(slow_runtime, PROBES, read_timeout_s=0.5) as server:
        connection = server.connect()
        for _ in range(2):
            connection.sendall(b"GET /health HTTP/1.1\r\n")
            time.sleep(0.1)
            connection.sendall(b"host: x\r\n\r\n")
            assert b"200 OK" in connection.recv(4096)
        time.sleep(0.6)  # idle, with nothing begun: the limit on heads does not count
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b"200 OK" in connection.recv(4096)


def test_a_large_head_is_refused_also_when_it_comes_at_once(server: Served) -> None:
    fields = b"".join(b"x%d: y\r\n" % number for number in range(6000))
    connection = server.connect()
    connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n" + fields + b"\r\n")
    assert read_all(connection).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("path", ["/nope", "/health", "/probe"])
def test_an_answer_that_needs_no_body_reaches_a_client_that_is_still_writing_it(
    server: Served, path: str
) -> None:
    connection = server.connect()
    size = 12_000  # beyond what this server takes, and what it reads ahead
    connection.sendall(
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n".encode()
    )
    for _ in range(12):
        connection.sendall(b"x" * (size // 12))
        time.sleep(0.01)
    assert connection.recv(100).split()[1] in (b"404", b"405", b"413")


def test_a_client_that_asks_before_it_sends_its_body_is_refused_without_it(server: Served) -> None:
    connection = server.connect()
    head = "POST /nope HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9999\r\n\r\n"
    connection.sendall(head.encode())
    assert connection.recv(100).split()[1] == b"404"


def test_many_bodies_at_once_take_a_bounded_memory(slow_runtime: Runtime) -> None:
    with served(slow_runtime, PROBES, max_body_bytes=1024) as server:
        begun = []
        for _ in range(20):
            connection = server.connect()
            connection.sendall(b"POST /probe HTTP/1.1\r\nhost: x\r\ncontent-length: 1024\r\n\r\n")
            connection.sendall(b" " * 1000)
            begun.append(connection)
        wait_until(
            lambda: httpx.post(f"{server.url}/probe", content=b" " * 900).status_code == 429,
            what="a refusal",
        )
        for connection in begun:
            connection.close()
        wait_until(
            lambda: httpx.post(f"{server.url}/probe", json={}).status_code == 200, what="room again"
        )


def test_malformed_json_is_a_400_whatever_the_content_type(client: httpx.Client) -> None:
    answer = client.post("/probe", content=b'{"text": ', headers={"content-type": "text/plain"})
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"]["message"], str)
    assert client.post("/probe", content=b"{}", headers={"content-type": "x/y"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nope", 404), ("GET", "/probe", 405), ("POST", "/v1/models", 405)],
)
def test_wrong_paths_and_methods_have_the_shape_of_errors(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
