"""Sockets on a loop: nothing is lost, nothing blocks, a lost peer is an error."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from radixlm.runtime.loops import new_event_loop
from radixlm.runtime.transport import (
    FRAMES_PER_WAKE,
    Addresses,
    BlockingEnd,
    LoopSocket,
    PeerGone,
    Transport,
)

names = itertools.count()


@pytest.fixture(params=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest) -> Iterator[asyncio.AbstractEventLoop]:
    loop = new_event_loop() if request.param == "uvloop" else asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def transport() -> Iterator[Transport]:
    transport = Transport(1 << 20)
    yield transport
    transport.close()


def run_until(loop: asyncio.AbstractEventLoop, condition, timeout_s: float = 20.0) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.002)

    loop.run_until_complete(asyncio.wait_for(wait(), timeout_s))


def test_a_client_and_a_gateway_exchange_messages_in_order(
    loop: asyncio.AbstractEventLoop, transport: Transport
) -> None:
    address = Addresses.inproc(f"t{next(names)}").clients
    got: list[bytes] = []
    back: list[bytes] = []
    router = LoopSocket(
        loop,
        transport.router(address),
        lambda frames: (got.append(frames[1]), router.try_send(frames)),
    )
    dealer = LoopSocket(
        loop, transport.dealer(address, b"me"), lambda frames: back.append(frames[0])
    )
    count = 3 * FRAMES_PER_WAKE
    for number in range(count):
        dealer.send(b"%d" % number)
    run_until(loop, lambda: len(back) == count)
    assert got == back == [b"%d" % number for number in range(count)]
    router.close()
    dealer.close()


def test_what_is_sent_before_the_peer_is_there_arrives(
    loop: asyncio.AbstractEventLoop, transport: Transport, tmp_path: Path
) -> None:
    addresses = Addresses.within(tmp_path)
    push = LoopSocket(loop, transport.push(addresses.to_engine, bind=True))
    push.send(b"early")
    engine = BlockingEnd(transport.pull(addresses.to_engine, bind=False))
    run_until(loop, lambda: engine.wait(0))
    assert engine.take() == b"early"
    assert engine.take() is None
    push.close()


def test_a_peer_that_nobody_is_raises(
    loop: asyncio.AbstractEventLoop, transport: Transport
) -> None:
    router = LoopSocket(
        loop, transport.router(Addresses.inproc(f"t{next(names)}").clients), lambda frames: None
    )
    with pytest.raises(PeerGone):
        router.try_send([b"nobody", b"x"])
    router.close()


def test_a_peer_that_does_not_read_makes_the_router_say_full_instead_of_waiting(
    loop: asyncio.AbstractEventLoop, transport: Transport
) -> None:
    address = Addresses.inproc(f"t{next(names)}").clients
    seen: list[bytes] = []
    router = LoopSocket(loop, transport.router(address), lambda frames: seen.append(frames[0]))
    dealer = transport.dealer(address, b"slow")
    dealer.send(b"hello")
    run_until(loop, lambda: seen == [b"slow"])
    sent = 0
    while router.try_send([b"slow", b"x" * 100]):
        sent += 1
        assert sent < 100_000
    assert sent >= 1000
    router.close()


def test_a_closed_socket_leaves_its_transport(
    loop: asyncio.AbstractEventLoop, transport: Transport
) -> None:
    for _ in range(3):
        socket = transport.pair(Addresses.inproc(f"t{next(names)}").clients, bind=True)
        LoopSocket(loop, socket).close()
    assert len(transport._sockets) <= 1
