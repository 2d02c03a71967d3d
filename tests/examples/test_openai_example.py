"""The example of the `openai` package against a real server, behind which a script answers instead of a model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, cast

import pytest
from example_files import load
from http_server import served
from scripted_client import Script, ScriptedClient

from radixlm.runtime import messages as m
from radixlm.runtime.launch import Runtime


class LoopThread:
    """What `served` needs of a Runtime: a client, and a loop on a thread of its own."""

    def __init__(self, client: ScriptedClient) -> None:
        self.client = client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def on_loop(self, coroutine: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def call_soon(self, function: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def script(message: m.Generate) -> Script:
    if message.constraint is None:
        return Script("Rome.")
    if "Weather" in repr(message.constraint):
        call = '{"name": "Weather", "arguments": {"city":"Paris"}}'
        return Script(f"<tool_call>\n{call}\n</tool_call>")
    return Script('{"hotel":"Bellevue","city":"Lyon","wifi":"slow"}')


def test_the_openai_example_reads_a_stream_a_model_and_a_tool_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = ScriptedClient(script)
    runtime = LoopThread(client)
    try:
        with served(cast("Runtime", runtime), served_name="smollm2-135m") as server:
            load("openai_client").main(f"{server.url}/v1")
    finally:
        runtime.close()
    assert capsys.readouterr().out.splitlines() == [
        "Rome.",
        "hotel='Bellevue' city='Lyon' wifi='slow'",
        'Weather {"city":"Paris"}',
    ]
    assert [message.stream for message in client.asked] == [True, False, False]
