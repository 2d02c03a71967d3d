"""Programs that are watched while the embedded model writes, and what the engine holds when nobody watches any more."""

from __future__ import annotations

import asyncio
import time

import pytest
from pydantic import BaseModel, Field

import radixlm
from radixlm import State, TimedOut, assistant, function, gen, select, user

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(300)]


class Cat(BaseModel):
    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=30)


@function
def talk(s: State, topic: str) -> None:
    s += user(f"Tell me about {topic}.") + assistant(gen("first", max_tokens=10))
    s += user("Is that good?")
    s += assistant("It is " + select("mood", ["good", "bad"]) + ". " + gen("more", max_tokens=6))
    s += user("Fill in the form as JSON.") + assistant(gen("cat", schema=Cat, max_tokens=60))


def wait_until_free(engine: radixlm.Engine) -> dict[str, float]:
    """Counters once nothing runs; the last ones seen after ten seconds."""
    end_s = time.monotonic() + 10
    while True:
        stats = engine.stats()
        is_free = not stats["running"] and not stats["waiting"] and not stats["gateway_branches"]
        if is_free or time.monotonic() > end_s:
            return stats
        time.sleep(0.02)


def test_streams_of_variables_are_what_the_run_gives_without_streaming(
    engine: radixlm.Engine,
) -> None:
    plain = talk.run("cats", backend=engine)
    with talk.run("cats", backend=engine, stream=True) as live:
        first = list(live.text_iter("first"))
        assert len(first) > 3, "it comes in pieces"
        *_, cat = live.object_iter("cat")
        streamed = {name: "".join(live.text_iter(name)) for name in ("first", "mood", "more")}
        whole = "".join(live.text_iter())
    assert streamed == {name: plain[name] for name in streamed}
    assert cat == plain["cat"]
    assert whole == plain.text() == live.text()


def test_on_a_loop_several_programs_are_watched_at_once(engine: radixlm.Engine) -> None:
    async def watch(topic: str) -> tuple[str, str]:
        async with await talk.arun(topic, backend=engine, stream=True) as live:
            text = "".join([part async for part in live.text_async_iter("more")])
            await live.afinish()
            return text, live["more"]

    async def main() -> list[tuple[str, str]]:
        return await asyncio.gather(*(watch(topic) for topic in ("cats", "dogs", "birds")))

    assert all(text == value for text, value in asyncio.run(main()))


def test_leaving_timing_out_and_cancelling_free_branches_and_pages(engine: radixlm.Engine) -> None:
    with talk.run("rain", backend=engine, stream=True) as live:
        next(live.text_iter("first"))
    with pytest.raises(TimedOut):
        talk.run("snow", backend=engine, timeout_s=0.05)
    arriving = talk.run_batch([{"topic": t} for t in "abc"], backend=engine, generator_style=True)
    next(arriving)
    arriving.close()

    async def cancelled() -> None:
        task = asyncio.create_task(talk.arun("wind", backend=engine))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    stats = wait_until_free(engine)
    assert (stats["running"], stats["waiting"], stats["gateway_branches"]) == (0, 0, 0)
    assert stats["locked_pages"] == 0
    assert stats["free_pages"] + stats["evictable_pages"] == stats["pages"]
