"""A served toy as a program: it drains at the first signal, leaves at the second, and outlives its engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from manual_client import ManualClient
from process_checks import is_running, wait_until

from radixlm.errors import ConfigError
from radixlm.runtime.http.server import HttpServer, serve
from radixlm.runtime.http.settings import ServerSettings
from radixlm.runtime.launch import Runtime

PROGRAM = Path(__file__).resolve().parents[2] / "support" / "serve_toy.py"
WAIT_S = 30.0
LONG = {"max_tokens": 3000, "stream": True}


@dataclass
class Program:
    process: subprocess.Popen[str]
    url: str
    pids: dict[str, int]
    num_frozen: int

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def leaves_nothing(self) -> None:
        assert self.process.wait(WAIT_S) == 0
        wait_until(lambda: not any(map(is_running, self.pids.values())), what="no child left")


@contextmanager
def program(settings: dict[str, Any] | None = None, **config: Any) -> Iterator[Program]:
    command = [
        sys.executable,
        str(PROGRAM),
        json.dumps({"port": 0, **(settings or {})}),
        json.dumps(config),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        yield Program(process, **started)
    finally:
        process.kill()
        process.communicate()


def lines_of(answer: httpx.Response) -> Iterator[Any]:
    for line in answer.iter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def test_the_first_signal_lets_running_streams_end_and_takes_no_new_ones() -> None:
    with program() as served, httpx.Client(timeout=WAIT_S) as client:
        body = {"max_tokens": 50, "stream": True}
        with client.stream("POST", f"{served.url}/probe", json=body) as answer:
            lines = lines_of(answer)
            next(lines)
            served.signal(signal.SIGTERM)
            wait_until(lambda: not accepts(served.url), what="a closed door")
            assert "cached" in list(lines)[-1]  # the whole answer came
        served.leaves_nothing()


def accepts(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


def test_what_does_not_end_in_time_gets_an_error_frame() -> None:
    with program({"drain_timeout_s": 0.2}) as served, httpx.Client(timeout=WAIT_S) as client:
        with client.stream("POST", f"{served.url}/probe", json=LONG) as answer:
            lines = lines_of(answer)
            next(lines)
            served.signal(signal.SIGINT)
            assert "shutting down" in list(lines)[-1]["error"]["message"]
        served.leaves_nothing()


def test_the_second_signal_ends_at_once() -> None:
    with (
        program({"drain_timeout_s": 600}) as served,
        httpx.stream("POST", f"{served.url}/probe", json=LONG, timeout=WAIT_S) as answer,
    ):
        lines = lines_of(answer)  # kept: an iterator that is dropped closes the connection
        next(lines)
        served.signal(signal.SIGTERM)
        wait_until(lambda: not accepts(served.url), what="a closed door")
        assert served.process.poll() is None  # it waits for the stream
        served.signal(signal.SIGTERM)
        served.leaves_nothing()


def test_signals_are_held_until_the_children_are_gone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    handlers: list[object] = []

    class Recorder:
        client = ManualClient()

        def on_loop(self, work: Coroutine[Any, Any, None]) -> Future[None]:
            work.close()
            done: Future[None] = Future()
            done.set_result(None)
            return done

        def call_soon(self, function: object) -> None:
            """Nothing runs here."""

        def close(self) -> None:
            handlers.append(signal.getsignal(signal.SIGTERM))

    servers: list[HttpServer] = []
    settings = ServerSettings.create(port=0)
    assert serve(cast("Runtime", Recorder()), settings, on_listening=servers.append) == 0
    servers[0].close()
    assert handlers[0] is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_server_that_is_stopped_before_it_runs_does_not_run(slow_runtime: Runtime) -> None:
    server = HttpServer(slow_runtime.client, ServerSettings.create(port=0))
    server.stop()
    slow_runtime.on_loop(server.run()).result(WAIT_S)
    assert not accepts(server.url)


def test_an_engine_that_dies_ends_its_streams_with_an_error_and_the_next_one_serves_again() -> None:
    with program() as served, httpx.Client(timeout=WAIT_S) as client:
        with client.stream("POST", f"{served.url}/probe", json=LONG) as answer:
            lines = lines_of(answer)
            next(lines)
            os.kill(served.pids["engine"], signal.SIGKILL)
            killed_s = time.monotonic()
            assert list(lines)[-1]["error"]["code"] == "engine_died"
            assert time.monotonic() - killed_s < WAIT_S / 2
        wait_until(lambda: client.get(f"{served.url}/ready").status_code == 200, what="readiness")
        assert client.get(f"{served.url}/health").status_code == 200
        assert client.post(f"{served.url}/probe", json={}).status_code == 200
        served.signal(signal.SIGTERM)
        served.leaves_nothing()


def test_a_service_that_gave_up_says_so_to_probes_metrics_and_requests() -> None:
    with program(on_engine_death="fail") as served, httpx.Client(timeout=WAIT_S) as client:
        os.kill(served.pids["engine"], signal.SIGKILL)
        wait_until(lambda: client.get(f"{served.url}/health").status_code == 503, what="bad health")
        assert client.get(f"{served.url}/ready").status_code == 503
        assert "radixlm_engine_up 0.0" in client.get(f"{served.url}/metrics").text
        for stream in (False, True):
            answer = client.post(f"{served.url}/probe", json={"stream": stream})
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "engine_died"
        served.signal(signal.SIGTERM)
        served.leaves_nothing()


def test_a_port_in_use_is_an_error_with_a_hint(slow_runtime: Runtime) -> None:
    first = HttpServer(slow_runtime.client, ServerSettings.create(port=0))
    with pytest.raises(ConfigError) as caught:
        HttpServer(slow_runtime.client, ServerSettings.create(port=first.address[1]))
    assert caught.value.place == "port"
    first.close()


def test_what_stands_at_the_start_is_no_work_for_a_collection_while_streams_run() -> None:
    with program() as served:
        assert served.num_frozen > 10_000  # the modules alone are more
        served.signal(signal.SIGTERM)
        served.leaves_nothing()
