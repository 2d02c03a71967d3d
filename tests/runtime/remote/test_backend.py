"""The life of requests on the loop: aborts before the first step, the end, defects in what the loop carries out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from radixlm.errors import Aborted, ServiceError
from radixlm.runtime import messages as m
from radixlm.runtime.remote.adapter import Ask, Choose, OnDelta, Told
from radixlm.runtime.remote.adapters.anthropic_api import AnthropicOptions, AnthropicServer
from radixlm.runtime.remote.adapters.openai_api import OpenAIOptions, OpenAIServer
from radixlm.runtime.remote.backend import RemoteBackend
from radixlm.runtime.remote.connection import Limits

WAIT_S = 10.0


class Echo:
    """An Adapter that answers with its own name, at once."""

    name = "echo"
    facts = m.Ready("echo", 1000, 0, ())

    async def generate(self, ask: Ask, on_delta: OnDelta | None) -> Told:
        outputs = (m.Output("hi", (), "stop", None),)
        return Told(m.Finished(ask.message.request, outputs, m.Usage()))

    async def score(self, choose: Choose) -> m.Scored:
        raise NotImplementedError

    def speculates(self, ask: Ask) -> bool:
        return False

    async def aclose(self) -> None:
        return


@pytest.fixture
def backend() -> Iterator[RemoteBackend]:
    with RemoteBackend(Echo(), Limits()) as backend:
        backend.send(m.OpenBranch("x"))
        backend.send(m.Append("x", (m.Text("a"),)))
        yield backend


def ask(backend: RemoteBackend, request: str, branch: str = "x") -> Future[m.Finished]:
    return backend.generate(m.Generate(request, branch, (), m.SamplingParams()))


def held(backend: RemoteBackend) -> threading.Event:
    """Until it is set, what is sent gathers before the loop."""
    go = threading.Event()
    backend._post(lambda: go.wait(WAIT_S) and None)  # pyright: ignore[reportPrivateUsage]
    return go


def test_an_abort_before_the_first_step_ends_what_stands_behind_it(backend: RemoteBackend) -> None:
    go = held(backend)
    first = ask(backend, "r1")
    backend.send(m.Abort("r1"))
    second = ask(backend, "r2")
    backend.send(m.Fork("x", ("y",)))
    third = ask(backend, "r3", "y")
    go.set()
    for future in (first, second, third):
        with pytest.raises(Aborted, match="the request was aborted"):
            future.result(WAIT_S)


def test_cancelling_ends_a_wait_whose_work_has_not_begun(backend: RemoteBackend) -> None:
    failures: list[BaseException] = []

    async def work() -> None:
        raise AssertionError("it is never entered")

    def wait() -> None:
        try:
            backend.wait_for(work)
        except Aborted as error:
            failures.append(error)

    posted = backend._inbox  # pyright: ignore[reportPrivateUsage]
    go = held(backend)
    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    while not posted:
        waiter.join(0.001)
    tasks: dict[str, Any] = backend._tasks  # pyright: ignore[reportPrivateUsage]
    backend._post(lambda: [task.cancel() for task in tasks.values()] and None)  # pyright: ignore[reportPrivateUsage]
    go.set()
    waiter.join(WAIT_S)
    assert [str(error) for error in failures] == ["the backend of echo was closed"]


def test_a_message_that_cannot_be_carried_out_fails_what_is_open_and_nothing_after(
    backend: RemoteBackend,
) -> None:
    go = held(backend)
    before = ask(backend, "r1")
    wrong: Any = None
    backend.send(m.Append("y", (m.Text("a"),)))
    backend.send(m.Fork("x", wrong))
    after = ask(backend, "r2")
    go.set()
    for future in (before, after):
        with pytest.raises(ServiceError, match="a message to echo was not understood"):
            future.result(WAIT_S)
    backend.send(m.OpenBranch("z"))
    assert ask(backend, "r3", "z").result(WAIT_S).outputs[0].text == "hi"


class OneFails:
    """A Connection: of the calls the last is refused, the others wait for ever."""

    server, base_url = "it", "http://it"

    def __init__(self, num: int) -> None:
        self.num_left = num
        self.num_ended = 0

    async def post(self, path: str, body: Any) -> Any:
        self.num_left -= 1
        if not self.num_left:
            raise ServiceError("no")
        try:
            await asyncio.Event().wait()
        finally:
            self.num_ended += 1


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_the_first_of_n_calls_that_fails_ends_the_others(kind: str) -> None:
    connection: Any = OneFails(3)
    adapter: Any = AnthropicServer(connection, AnthropicOptions("claude-x"))
    if kind == "openai":
        adapter = OpenAIServer(connection, OpenAIOptions("x", "llama.cpp"))
    pieces = (m.RoleBegin("user"), m.Text("Hm?"), m.RoleEnd("user"))
    message = m.Generate("r", "x", (), m.SamplingParams(n=3))

    async def ask_three() -> None:
        with pytest.raises(ServiceError, match="no"):
            await adapter.generate(Ask(pieces, message), None)
        assert connection.num_ended == 2

    asyncio.run(ask_three())
