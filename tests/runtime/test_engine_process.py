"""The engine's loop: it never waits while there is work, looks for faults when idle, and survives bytes that are no message."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from radixlm.runtime import engine_process
from radixlm.runtime import messages as m
from radixlm.runtime.engine_process import EngineLoop, seed_source
from radixlm.runtime.transport import Addresses, BlockingEnd, Transport

numbers = itertools.count()


class CountdownCore:
    """Works `num_steps` steps for every Submit and reports the names."""

    def __init__(self) -> None:
        self.num_steps_left = 0
        self.received: list[m.EngineInbound] = []
        self.num_idle = 0

    @property
    def has_work(self) -> bool:
        return self.num_steps_left > 0

    def receive(self, message: m.EngineInbound) -> None:
        self.received.append(message)
        if isinstance(message, m.Submit):
            self.num_steps_left += 3

    def step(self) -> list[m.EngineOutbound]:
        self.num_steps_left -= 1
        return [m.NeedProgram(f"step {self.num_steps_left}")]

    def idle(self) -> None:
        self.num_idle += 1


class Bench:
    def __init__(self) -> None:
        self.transport = Transport(1 << 20)
        addresses = Addresses.inproc(f"engine{next(numbers)}")
        self.to_engine = BlockingEnd(self.transport.push(addresses.to_engine, bind=True))
        self.from_engine = BlockingEnd(self.transport.pull(addresses.from_engine, bind=True))
        self.core = CountdownCore()
        self.loop = EngineLoop(self.core, self.transport, addresses)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.transport.close()


def test_messages_go_in_steps_go_out_and_idling_comes_once_after_work(bench: Bench) -> None:
    bench.loop.turn(0.0)
    assert bench.core.num_idle == 0
    bench.to_engine.send(m.encode(m.Submit("a", (1,), m.SamplingParams())))
    bench.loop.turn(1.0)
    bench.to_engine.send(m.encode(m.Cancel("a")))
    for _ in range(5):
        bench.loop.turn(0.0)
    assert [type(message) for message in bench.core.received] == [m.Submit, m.Cancel]
    sent = [m.engine_frame_decoder.decode(bench.from_engine.take() or b"") for _ in range(3)]
    assert sent == [m.NeedProgram(f"step {number}") for number in (2, 1, 0)]
    assert bench.from_engine.take() is None
    assert bench.core.num_idle == 1


def test_what_can_wait_is_done_once_when_nothing_came_for_a_while(monkeypatch) -> None:
    monkeypatch.setattr(engine_process, "WARM_UP_AFTER_S", 0.01)
    bench = Bench()
    bench.loop = EngineLoop(
        bench.core,
        bench.transport,
        Addresses.inproc(f"warm{next(numbers)}"),
        warm_up=lambda: bench.core.received.append(m.Cancel("warm")),
    )
    try:
        bench.core.num_steps_left = 2
        for _ in range(2):
            bench.loop.turn(5.0)
        assert bench.core.received == []
        for _ in range(3):
            bench.loop.turn(0.02)
        assert bench.core.received == [m.Cancel("warm")]
    finally:
        bench.transport.close()


def test_bytes_that_are_no_message_are_dropped(bench: Bench) -> None:
    for data in (b"", b"\xc1", m.encode(m.Hello("x"))):
        bench.to_engine.send(data)
    bench.to_engine.send(m.encode(m.Cancel("a")))
    bench.loop.turn(1.0)
    assert bench.core.received == [m.Cancel("a")]


def test_a_base_seed_gives_the_same_row_of_seeds_and_none_gives_others() -> None:
    first, second, other = seed_source(5), seed_source(5), seed_source(6)
    row = [first() for _ in range(4)]
    assert row == [second() for _ in range(4)]
    assert len({*row, other(), seed_source(0)(), seed_source(0)()}) == 7
    assert all(0 <= seed < 2**63 for seed in row)


def test_an_answer_that_no_message_holds_becomes_an_error(bench: Bench) -> None:
    bench.loop.send(m.Done("a", (m.Sample((70_000,) * (1 << 19), "length"),), m.Usage(), 0))
    failed = m.engine_frame_decoder.decode(bench.from_engine.take() or b"")
    assert isinstance(failed, m.EngineFailed)
    assert (failed.request, failed.error.name) == ("a", "ServiceError")
    assert f"a message holds {1 << 20}" in failed.error.message


def test_what_one_step_brings_arrives_as_one_frame(bench: Bench) -> None:
    step = [m.Progress("a", 0, (1,)), m.Progress("b", 0, (2,)), m.NeedProgram("p")]
    bench.loop.send(*step)
    assert m.decode_frame(m.engine_frame_decoder, bench.from_engine.take() or b"") == step
    bench.loop.send()
    assert bench.from_engine.take() is None


def test_a_step_that_no_frame_holds_goes_message_by_message(bench: Bench) -> None:
    half = m.Done("a", (m.Sample((70_000,) * (1 << 17), "length"),), m.Usage(), 0)
    bench.loop.send(half, m.Done("b", half.samples, m.Usage(), 0))
    sent = [m.engine_frame_decoder.decode(bench.from_engine.take() or b"") for _ in range(2)]
    assert [(type(message), message.request) for message in sent] == [
        (m.Done, "a"),
        (m.Done, "b"),
    ]
