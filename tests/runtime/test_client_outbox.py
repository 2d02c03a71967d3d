"""A slow client's messages stay in order and their deltas become one."""

from __future__ import annotations

from radixlm.runtime import messages as m
from radixlm.runtime.client_outbox import ClientOutbox


def test_deltas_of_one_output_join_and_nothing_crosses_an_end() -> None:
    outbox = ClientOutbox()
    finished = m.Finished("a", (), m.Usage())
    for message in (
        m.Delta("a", 0, "x", (1,)),
        m.Delta("b", 0, "u", (7,)),
        m.Delta("a", 0, "y", (2,), (m.TokenLogprob(2, -1.0),)),
        m.Delta("a", 1, "z", (3,)),
        finished,
        m.Delta("b", 0, "v", (8,)),
    ):
        outbox.add(message)
    got = []
    while len(outbox):
        got.append(outbox.first())
        outbox.drop_first()
    assert got == [
        m.Delta("a", 0, "xy", (1, 2), (m.TokenLogprob(2, -1.0),)),
        m.Delta("b", 0, "uv", (7, 8)),
        m.Delta("a", 1, "z", (3,)),
        finished,
    ]


def test_a_reader_that_stopped_costs_its_outputs_once() -> None:
    outbox = ClientOutbox()
    for number in range(10_000):
        outbox.add(m.Delta("a", number % 2, "x", (1,)))
    assert len(outbox) == 2
