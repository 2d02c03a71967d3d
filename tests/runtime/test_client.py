"""What a client refuses to send: the request fails with the reason, and so does all that would miss it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from radixlm.errors import PromptError
from radixlm.runtime import messages as m
from radixlm.runtime.client import Client
from radixlm.runtime.loops import new_event_loop
from radixlm.runtime.transport import Addresses, Transport


@pytest.fixture
def client() -> Iterator[Client]:
    loop, transport = new_event_loop(), Transport(1000)
    client = Client(loop, heartbeat_s=60.0)
    client.connect(transport, Addresses.inproc("client-test").clients)
    yield client
    client.disconnect()
    transport.close()
    loop.close()


def turn(client: Client) -> None:
    client._loop.run_until_complete(asyncio.sleep(0.01))


def test_a_request_that_no_message_holds_fails_with_both_sizes(client: Client) -> None:
    future = client.request(m.Generate("r", None, (m.Text("x" * 2000),)))
    turn(client)
    with pytest.raises(PromptError, match=r"has 2\d\d\d bytes, a message holds 1000"):
        future.result(0)


@pytest.mark.parametrize(
    "message",
    [
        m.Generate("r", segments=(m.Ids((2**70,)),)),
        m.Generate("r", sampling=m.SamplingParams(stop_token_ids=(2**70,))),
        m.Generate("r", segments=(m.Chat(({"role": "user", "n": 2**70},)),)),
    ],
)
def test_what_no_message_can_carry_is_the_user_s_mistake(
    client: Client, message: m.Generate
) -> None:
    # a server would answer 503 otherwise, and the caller would send it again and again
    future = client.request(message)
    turn(client)
    with pytest.raises(PromptError, match="cannot be written"):
        future.result(0)


def test_a_branch_that_misses_a_refused_append_fails_with_its_forks(client: Client) -> None:
    client.send(m.OpenBranch("b"))
    client.send(m.OpenBranch("c"))
    client.send(m.Append("b", (m.Text("\ud800"),)))
    client.send(m.Fork("b", ("b.0",)))
    futures = [
        client.request(m.Generate("r1", "b")),
        client.request(m.Score("r2", "b.0", ("x",))),
        client.request(m.Generate("r3", "c")),
    ]
    turn(client)
    for future in futures[:2]:
        with pytest.raises(PromptError, match="cannot be written"):
            future.result(0)
    assert not futures[2].done()
    client.send(m.CloseBranch("b"))
    turn(client)
    assert set(client._broken) == {"b.0"}
