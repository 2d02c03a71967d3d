"""Bodies that suspend: on an asyncio loop, in batches, nested, interrupted."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import time
import tracemalloc

import pytest
from lagging_backend import lagging

from radixlm import EngineDied, ScriptedBackend, State, TimedOut, function, gen
from radixlm.runtime.messages import Abort


@function
def ask(s: State, question: str) -> str:
    s += question + gen("answer")
    return s["answer"]


def test_arun_runs_plain_bodies_side_by_side_on_one_loop() -> None:
    async def main(backend: ScriptedBackend) -> list[State]:
        return await asyncio.gather(*(ask.arun(f"{i}", backend=backend) for i in range(50)))

    with lagging(default="x") as backend:
        states = asyncio.run(main(backend))
        assert not backend.open_branches
    assert [st.text() for st in states] == [f"{i}x" for i in range(50)]


def test_other_tasks_run_while_a_body_waits() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()

    async def main() -> State:
        task = asyncio.create_task(ask.arun("q", backend=backend))
        while not backend.num_waiting:
            await asyncio.sleep(0)
        backend.resume()
        return await task

    assert asyncio.run(main()).ret_value == "x"


def test_errors_of_arun_raise_at_the_await() -> None:
    with (
        lagging({"answer": EngineDied("it ended")}) as backend,
        pytest.raises(EngineDied) as caught,
    ):
        asyncio.run(ask.arun("q", backend=backend))
    assert any(__file__ in note for note in caught.value.__notes__)


def test_cancelling_the_task_aborts_and_closes() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()

    async def main() -> None:
        task = asyncio.create_task(ask.arun("q", backend=backend))
        while not backend.num_waiting:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert sum(isinstance(m, Abort) for m in backend.sent) == 1
    assert not backend.open_branches


def test_arun_times_out() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()
    with pytest.raises(TimedOut):
        asyncio.run(ask.arun("q", backend=backend, timeout_s=0.05))
    assert not backend.open_branches


def test_a_body_sees_the_context_variables_of_its_caller() -> None:
    tenant = contextvars.ContextVar("tenant", default="nobody")

    @function
    def f(s: State) -> str:
        s += gen("a")
        _ = s["a"]
        return tenant.get()

    tenant.set("acme")
    with lagging(default="x") as backend:
        assert [st.ret_value for st in f.run_batch([{}, {}], backend=backend)] == ["acme"] * 2


def test_a_run_or_batch_inside_a_body_of_a_batch_lets_the_others_go_on() -> None:
    @function
    def outer(s: State, i: int) -> list[str]:
        one = ask.run(f"run {i} ", backend=backend).ret_value
        many = ask.run_batch([{"question": f"{i}.{j}"} for j in range(3)], backend=backend)
        s += f"outer {i}" + gen("last")
        return [one, *(st.ret_value for st in many)]

    with lagging({"answer": lambda request: request.prompt.upper()}, default="x") as backend:
        states = outer.run_batch([{"i": i} for i in range(10)], backend=backend)
        prompts = [request.prompt for request in backend.requests]
        assert not backend.open_branches
    for i, st in enumerate(states):
        assert st.ret_value == [f"RUN {i} ", *(f"{i}.{j}" for j in range(3))]
    assert prompts[:10] == [f"run {i} " for i in range(10)], "no body waits for another's inner run"


def test_an_interrupt_ends_all_programs_of_a_batch() -> None:
    @function
    def f(s: State, i: int) -> None:
        s += gen("a")
        _ = s["a"]
        if i == 5:
            raise KeyboardInterrupt
        s += gen("b")
        _ = s["b"]

    with lagging(default="x") as backend:
        with pytest.raises(KeyboardInterrupt):
            f.run_batch([{"i": i} for i in range(10)], backend=backend)
        deadline_s = time.monotonic() + 5
        while backend.open_branches and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert not backend.open_branches


def test_hundreds_of_live_programs_need_little_memory() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()

    async def main() -> float:
        gc.collect()
        tracemalloc.start()
        tasks = [asyncio.create_task(ask.arun("q", backend=backend)) for _ in range(400)]
        while backend.num_waiting < 400:
            await asyncio.sleep(0)
        megabytes = tracemalloc.get_traced_memory()[0] / 2**20
        tracemalloc.stop()
        backend.resume()
        await asyncio.gather(*tasks)
        return megabytes

    assert asyncio.run(main()) < 12
