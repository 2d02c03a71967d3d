"""The gateway's sockets: a reader that stops is bounded and loses nothing, a vanished one is let go."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from toy_tokenizer import ToyTokenizer

from radixlm.runtime import messages as m
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.gateway_process import GatewayServer
from radixlm.runtime.loops import new_event_loop
from radixlm.runtime.transport import Addresses, BlockingEnd, Transport

numbers = itertools.count()


class Station:
    """A gateway server in this thread; the test is its clients and its engine."""

    def __init__(self, folder: Path) -> None:
        self.loop = new_event_loop()
        self.transport = Transport(1 << 24)
        self.addresses = Addresses.inproc(f"station{next(numbers)}")
        config = EngineConfig(lease_s=60.0)
        self.server = GatewayServer(
            self.loop, config, ToyTokenizer(), self.transport, self.addresses, folder
        )
        self.engine_in = BlockingEnd(self.transport.pull(self.addresses.to_engine, bind=False))
        self.engine_out = BlockingEnd(self.transport.push(self.addresses.from_engine, bind=False))
        self.engine_out.send(m.encode(m.EngineReady(0, 64, 16, 4096)))

    def run_until(self, condition, timeout_s: float = 30.0) -> None:
        async def wait() -> None:
            while not condition():
                await asyncio.sleep(0.002)

        self.loop.run_until_complete(asyncio.wait_for(wait(), timeout_s))

    def take_submit(self) -> m.Submit:
        self.run_until(lambda: self.engine_in.wait(0))
        message = m.engine_inbound_decoder.decode(self.engine_in.take() or b"")
        assert isinstance(message, m.Submit)
        return message

    def close(self) -> None:
        self.server.close()
        self.transport.close()
        self.loop.close()


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    station = Station(tmp_path)
    yield station
    station.close()


def test_a_reader_that_stops_is_bounded_and_gets_everything_when_it_reads_again(
    station: Station,
) -> None:
    reader = station.transport.dealer(station.addresses.clients, b"slow")
    reader.send(m.encode(m.Generate("r", segments=(m.Text("go"),), stream=True)))
    submit = station.take_submit()
    ids = tuple(ToyTokenizer().encode("abn x" * 2000).ids)
    for token_id in ids:
        station.engine_out.send(m.encode(m.Progress(submit.request, 0, (token_id,))))
    station.engine_out.send(
        m.encode(m.Done(submit.request, (m.Sample(ids, "length"),), m.Usage(), 0))
    )
    station.run_until(lambda: station.server.core.counters()["gateway_requests"] == 0)
    outbox = station.server._outboxes[b"slow"]
    assert 1 <= len(outbox) <= 3  # one joined delta and the answer, not thousands of messages
    got: list[m.GatewayMessage] = []

    def read() -> bool:
        while reader.poll(0):
            got.append(m.gateway_frame_decoder.decode(reader.recv()))
        return bool(got) and isinstance(got[-1], m.Finished)

    station.run_until(read)
    deltas = [message for message in got if isinstance(message, m.Delta)]
    assert "".join(delta.text for delta in deltas) == "abn x" * 2000
    assert tuple(itertools.chain.from_iterable(delta.token_ids for delta in deltas)) == ids
    assert not station.server._outboxes


def test_a_client_whose_connection_is_gone_is_let_go_at_the_next_message(station: Station) -> None:
    visitor = station.transport.dealer(station.addresses.clients, b"brief")
    visitor.send(m.encode(m.OpenBranch("b")))
    visitor.send(m.encode(m.Generate("r", "b", (m.Text("go"),), stream=True)))
    submit = station.take_submit()
    visitor.close(linger=0)

    def is_let_go() -> bool:
        # again and again: the socket's own thread notices the broken connection some time after it was closed
        station.engine_out.send(m.encode(m.Progress(submit.request, 0, (70,))))
        return not station.server.core.sessions

    station.run_until(is_let_go)
    station.run_until(lambda: station.engine_in.wait(0))
    assert m.engine_inbound_decoder.decode(station.engine_in.take() or b"") == m.Cancel(
        submit.request
    )


def test_garbage_from_the_engines_side_is_dropped(station: Station) -> None:
    station.engine_out.send(b"\xc1")
    station.engine_out.send(m.encode(m.EngineFailed("nobody", m.WireError("X", "y"))))
    client = station.transport.dealer(station.addresses.clients, b"me")
    client.send(m.encode(m.Hello("me")))
    station.run_until(lambda: bool(client.poll(0)))
    assert isinstance(m.gateway_frame_decoder.decode(client.recv()), m.Ready)


def test_what_no_message_holds_is_an_error_in_both_directions(station: Station) -> None:
    station.server._max_bytes = 2000
    client = station.transport.dealer(station.addresses.clients, b"me")
    client.send(m.encode(m.Generate("long", segments=(m.Text("abn x" * 1000),))))
    station.run_until(lambda: bool(client.poll(0)))
    failed = m.gateway_frame_decoder.decode(client.recv())
    assert isinstance(failed, m.Failed)
    assert (failed.request, failed.error.name) == ("long", "PromptError")
    client.send(m.encode(m.Generate("wide", segments=(m.Text("go"),))))
    submit = station.take_submit()
    sample = m.Sample(tuple(ToyTokenizer().encode("abn x" * 1000).ids), "length")
    station.engine_out.send(m.encode(m.Done(submit.request, (sample,), m.Usage(), 0)))
    station.run_until(lambda: bool(client.poll(0)))
    failed = m.gateway_frame_decoder.decode(client.recv())
    assert isinstance(failed, m.Failed)
    assert "a message holds 2000" in failed.error.message


def progress_of_two_clients(station: Station) -> tuple[list, list[m.EngineOutbound]]:
    """Two streams of one client and one of another, all submitted; and what a step of the engine says of them, by turns."""
    readers = [station.transport.dealer(station.addresses.clients, name) for name in (b"a", b"b")]
    step: list[m.EngineOutbound] = []
    for reader, name in ((readers[0], "1"), (readers[1], "2"), (readers[0], "3")):
        reader.send(m.encode(m.Generate(name, segments=(m.Text("go"),), stream=True)))
        submit = station.take_submit()
        step.append(m.Progress(submit.request, 0, (ToyTokenizer().encode("x").ids[0],)))
    for reader, num_accepted in zip(readers, (2, 1), strict=True):
        for _ in range(num_accepted):
            station.run_until(lambda reader=reader: bool(reader.poll(0)))
            assert isinstance(m.gateway_frame_decoder.decode(reader.recv()), m.Accepted)
    return readers, step


def test_each_client_gets_its_part_of_a_step_in_one_frame(station: Station) -> None:
    readers, step = progress_of_two_clients(station)
    station.engine_out.send(m.encode_frame(step))
    station.run_until(lambda: all(reader.poll(0) for reader in readers))
    got = [m.decode_frame(m.gateway_frame_decoder, reader.recv()) for reader in readers]
    assert [[delta.request for delta in frame] for frame in got] == [["1", "3"], ["2"]]
    assert not any(reader.poll(20) for reader in readers)


def test_a_part_that_no_frame_holds_comes_message_by_message(station: Station) -> None:
    readers, step = progress_of_two_clients(station)
    station.server._max_bytes = 60
    station.engine_out.send(m.encode_frame(step))
    station.run_until(lambda: bool(readers[0].poll(0)))
    first = m.gateway_frame_decoder.decode(readers[0].recv())
    station.run_until(lambda: bool(readers[0].poll(0)))
    second = m.gateway_frame_decoder.decode(readers[0].recv())
    assert [type(first), type(second)] == [m.Delta, m.Delta]
    assert [first.request, second.request] == ["1", "3"]
