"""What a type checker makes of the public names: read by pyright strict in `make lint`, never run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from typing import Any, assert_type

import radixlm
from radixlm import (
    Engine,
    LiveState,
    Meta,
    Program,
    ScriptedBackend,
    State,
    assistant,
    function,
    gen,
    select,
    system,
    user,
)
from radixlm.lang.compiler.compiled import CompiledProgram
from radixlm.lang.fork_group import ForkGroup
from radixlm.lang.ir import Concat, Node
from radixlm.lang.primitives.gen import Gen
from radixlm.runtime.completions import Completion
from radixlm.runtime.messages import Usage


@dataclass
class Invoice:
    total: float


@function
def ask(s: State, question: str, *, words: int = 40) -> str:
    s += system("You are short.") + user(question)
    s += assistant(gen("answer", max_tokens=words, temperature=0.5, stop=["\n"]))
    s += select("mood", ["good", "bad"])
    return "done"


@function()
def typed(s: State) -> Invoice:
    s += gen("invoice", schema=Invoice)
    return s["invoice"]


def programs(engine: Engine, backend: ScriptedBackend) -> None:
    state = ask.run("Why?", backend=engine)
    assert_type(state, State)
    assert_type(ask.run("Why?", backend=backend, seed=1, timeout_s=2.0, top_k=4), State)
    assert_type(ask.run("Why?", stream=True, backend=backend), LiveState)
    assert_type(ask.run_batch([{"question": "Why?"}], backend=backend), list[State])
    live = ask.run_batch([{"question": "Why?"}], generator_style=True)
    assert_type(live, Generator[State])
    assert_type(typed.compile(), CompiledProgram[[], Invoice])
    assert_type(typed.bind(temperature=1.0), Program[..., Invoice])


def inside_another(s: State) -> None:
    assert_type(ask(s, "Why?"), str)
    assert_type(ask(s, "Why?", words=3), str)
    assert_type(typed(s), Invoice)
    ask(s, 5)  # pyright: ignore[reportArgumentType]
    ask(s)  # pyright: ignore[reportCallIssue]
    ask(s, "Why?", wrods=3)  # pyright: ignore[reportCallIssue]


def states(s: State) -> None:
    assert_type(s.text(), str)
    assert_type(s["answer"], Any)
    assert_type(s.get_meta("answer"), Meta)
    assert_type(s.get_meta("answer").scores, dict[str, float])
    assert_type(s.usage(), Usage)
    assert_type(s.error(), BaseException | None)
    assert_type(s.fork(3), ForkGroup[State])
    assert_type([child["x"] for child in s.fork(2)], list[Any])
    assert_type(s.copy(), State)
    assert_type(s.messages(), list[dict[str, str]])
    with s.user() as inner:
        assert_type(inner, State)
    s += 5  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]


def nodes() -> None:
    assert_type(gen("x", 5, regex="a+"), Gen)
    assert_type("a" + gen("x"), Concat)
    assert_type(gen("x") + "b", Concat)
    node: Node = user("hello")
    assert_type(node + gen("x"), Concat)
    gen("x", temperatur=1)  # pyright: ignore[reportCallIssue]
    gen("x", top_k="4")  # pyright: ignore[reportArgumentType]


async def on_a_loop(engine: Engine) -> None:
    assert_type(await ask.arun("Why?", backend=engine), State)
    async with await ask.arun("Why?", backend=engine, stream=True) as live:
        assert_type(live, LiveState)
        async for text in live.text_async_iter("answer"):
            assert_type(text, str)
    assert_type(await ask.arun_batch([{"question": "Why?"}]), list[State])
    arriving = ask.arun_batch([{"question": "Why?"}], generator_style=True)
    assert_type(arriving, AsyncGenerator[State])


def engines() -> None:
    with Engine("smollm2-135m", threads=2) as engine:
        assert_type(engine, Engine)
        assert_type(engine.generate("Once", max_tokens=4), Completion)
        assert_type(engine.generate(["Once", "Twice"]), list[Completion])
        assert_type(engine.generate("Once").text, str)
        assert_type(engine.generate("Once").usage, Usage)
        with engine.stream("Once") as stream:
            for piece in stream:
                assert_type(piece, str)
        engine.generate("Once", max_tokens="4")  # pyright: ignore[reportCallIssue, reportArgumentType]


def errors(error: radixlm.RadixError) -> None:
    assert_type(error.place, str)
    assert_type(error.hint, str)
    wrapped: Callable[..., State] = ask.run
    wrapped()
