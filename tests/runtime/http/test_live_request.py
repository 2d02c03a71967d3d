"""A live request hands text to its reader, joins what piles up, and ends itself when the reader leaves or is too slow."""

from __future__ import annotations

import asyncio
import threading

import pytest
from manual_client import ManualClient

from radixlm.errors import Aborted, EngineDied, Overloaded
from radixlm.runtime import messages as m
from radixlm.runtime.http.live_request import LiveGroup, LiveRequest


def generate(name: str = "r", n: int = 1) -> m.Generate:
    return m.Generate(name, sampling=m.SamplingParams(n=n), stream=True)


def test_deltas_that_pile_up_arrive_joined_per_output_and_in_order() -> None:
    async def body() -> None:
        client = ManualClient()
        live = LiveRequest(client, generate(n=2))
        client.delta("a", index=1, token_ids=(1,))
        client.delta("b", token_ids=(2,))
        client.delta("c", index=1, token_ids=(3, 4))
        client.finish("b", "ac")
        taken = [(delta.index, delta.text, delta.token_ids) async for delta in live]
        assert taken == [(1, "ac", (1, 3, 4)), (0, "b", (2,))]
        assert [output.text for output in (await live.finished()).outputs] == ["b", "ac"]

    asyncio.run(body())


def test_a_waiting_reader_gets_each_delta_as_it_comes_also_from_another_thread() -> None:
    async def body() -> None:
        client = ManualClient()
        live = LiveRequest(client, generate())
        for text in ("one", "two"):
            reading = asyncio.ensure_future(anext(live))
            await asyncio.sleep(0)
            thread = threading.Thread(target=client.delta, args=(text,))
            thread.start()
            assert (await reading).text == text
            thread.join()
        threading.Thread(target=client.finish, args=("onetwo",)).start()
        assert (await live.finished()).outputs[0].text == "onetwo"

    asyncio.run(body())


def test_an_error_comes_after_the_text_before_it() -> None:
    async def body() -> None:
        client = ManualClient()
        live = LiveRequest(client, generate())
        client.delta("so far")
        client.fail(EngineDied("gone"))
        assert (await anext(live)).text == "so far"
        with pytest.raises(EngineDied):
            await anext(live)
        with pytest.raises(EngineDied):
            await live.finished()

    asyncio.run(body())


def test_leaving_the_block_or_cancelling_the_reader_withdraws_the_request() -> None:
    async def body() -> None:
        client = ManualClient()
        with LiveRequest(client, generate("left")):
            pass
        assert client.futures[0].cancelled()
        live = LiveRequest(client, generate("cancelled"))
        reading = asyncio.ensure_future(live.finished())
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert client.futures[1].cancelled()
        with pytest.raises(Aborted):
            await live.finished()

    asyncio.run(body())


def test_a_reader_that_takes_nothing_costs_a_bounded_memory_then_its_request() -> None:
    async def body() -> None:
        client = ManualClient()
        live = LiveRequest(client, generate(), max_pending_bytes=1000)
        for _ in range(10):
            client.delta("x" * 100)
        assert not live.is_over
        assert (
            len((await anext(live)).text) == 1000
        )  # a reader that comes back in time loses nothing
        for _ in range(11):
            client.delta("x" * 100)
        assert client.futures[0].cancelled()
        client.delta("more")  # on its way when the request ended
        assert len((await anext(live)).text) == 1100
        with pytest.raises(Overloaded, match="1100 bytes"):
            await anext(live)

    asyncio.run(body())


def test_logprobs_that_wait_count_as_memory() -> None:
    async def body() -> None:
        client = ManualClient()
        live = LiveRequest(client, generate(), max_pending_bytes=10_000)
        top = tuple((i, -1.0) for i in range(20))
        for _ in range(10):
            client.delta("x", logprobs=(m.TokenLogprob(1, -0.5, top),))
        with pytest.raises(Overloaded):
            live.check()

    asyncio.run(body())


def test_how_a_request_ended_is_told_apart() -> None:
    async def body() -> None:
        client = ManualClient()
        done, failed, left = (LiveRequest(client, generate(name)) for name in "abc")
        client.finish("x", which=0)
        client.fail(EngineDied("gone"), which=1)
        left.abort()
        assert [live.outcome for live in (done, failed, left)] == ["finished", "failed", "aborted"]

    asyncio.run(body())


def test_a_group_is_read_as_one_and_fails_as_one() -> None:
    async def body() -> None:
        client = ManualClient()
        with LiveGroup([LiveRequest(client, generate(name)) for name in "ab"]) as group:
            client.delta("second", which=1)
            assert [(index, delta.text) for index, delta in [await anext(group)]] == [(1, "second")]
            reading = asyncio.ensure_future(anext(group))
            await asyncio.sleep(0)
            client.delta("first", which=0)
            assert (await reading)[1].text == "first"
            client.finish("first", which=0)
            waiting = asyncio.ensure_future(group.finished())
            await asyncio.sleep(0)
            client.fail(EngineDied("gone"), which=1)
            with pytest.raises(EngineDied):
                await waiting
        with LiveGroup([LiveRequest(client, generate(name)) for name in "cd"]) as group:
            client.fail(EngineDied("gone"), which=3)
            with pytest.raises(EngineDied):
                await anext(group)
        assert client.futures[2].cancelled()

    asyncio.run(body())


def test_a_busy_member_of_a_group_does_not_keep_the_others_waiting() -> None:
    async def body() -> None:
        client = ManualClient()
        group = LiveGroup([LiveRequest(client, generate(name)) for name in "abc"])
        order: list[int] = []
        for _ in range(6):  # each has text again before the next is read
            for which in range(3):
                client.delta("x", which=which)
            order.append((await anext(group))[0])
        assert order == [0, 1, 2, 0, 1, 2]

    asyncio.run(body())


def test_a_group_says_whose_error_it_raised() -> None:
    async def body() -> None:
        client = ManualClient()
        group = LiveGroup([LiveRequest(client, generate(name)) for name in "abc"])
        client.finish("x", which=0)
        client.fail(EngineDied("gone"), which=1)
        with pytest.raises(EngineDied):
            await group.finished()
        assert group.failed == 1

    asyncio.run(body())


def test_the_results_of_a_group_are_in_order() -> None:
    async def body() -> None:
        client = ManualClient()
        group = LiveGroup([LiveRequest(client, generate(name)) for name in "ab"])
        client.finish("last", which=1)
        client.finish("first", which=0)
        assert [f.outputs[0].text for f in await group.finished()] == ["first", "last"]
        assert [item async for item in group] == []

    asyncio.run(body())


def test_text_that_comes_while_the_reader_waits_is_offered_first_and_read_where_it_is_not_taken() -> (
    None
):
    async def body() -> None:
        client = ManualClient()
        live = LiveRequest(client, generate())
        offered: list[str] = []

        def take(delta: m.Delta) -> bool:
            offered.append(delta.text)
            return delta.text != "no"

        live.hand_over(take)
        client.delta("before")  # nobody waits
        assert (await anext(live)).text == "before"
        reading = asyncio.ensure_future(anext(live))
        await asyncio.sleep(0)
        for text in ("one", "two", "no", "behind"):  # the last has another before it
            client.delta(text)
        assert offered == ["one", "two", "no"]
        assert (await reading).text == "nobehind"
        client.delta("rest")  # the reader is busy with what it has
        client.finish("whatever")
        assert [delta.text async for delta in live] == ["rest"]
        assert offered == ["one", "two", "no"]

    asyncio.run(body())


def test_in_a_group_text_is_offered_with_its_number_while_the_group_is_waited_for() -> None:
    async def body() -> None:
        client = ManualClient()
        offered: list[tuple[int, str]] = []
        with LiveGroup([LiveRequest(client, generate(name)) for name in "ab"]) as group:
            group.hand_over(lambda which, delta: not offered.append((which, delta.text)))
            client.delta("early", which=1)
            assert (await anext(group))[1].text == "early"
            reading = asyncio.ensure_future(anext(group))
            await asyncio.sleep(0)
            client.delta("x", which=1)
            client.delta("y", which=0)
            assert offered == [(1, "x"), (0, "y")]
            client.finish("y", which=0)
            client.finish("earlyx", which=1)
            with pytest.raises(StopAsyncIteration):
                await reading

    asyncio.run(body())


def test_an_error_in_taking_text_ends_the_request_and_reaches_its_reader() -> None:
    async def body() -> None:
        client = ManualClient()
        live = LiveRequest(client, generate())

        def take(delta: m.Delta) -> bool:
            raise KeyError("a defect")

        live.hand_over(take)
        reading = asyncio.ensure_future(anext(live))
        await asyncio.sleep(0)
        client.delta("text")
        with pytest.raises(KeyError):
            await reading
        assert client.futures[0].cancelled()

    asyncio.run(body())
