"""A whole day's work: many runs, what comes when, what is shown, what is freed."""

from __future__ import annotations

import asyncio
import io
import itertools
import threading
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from lagging_backend import lagging

from radixlm import (
    EngineDied,
    OutputError,
    ProgramError,
    ScriptedBackend,
    State,
    function,
    gen,
)
from radixlm.lang.batch import ProgressLine
from radixlm.lang.testing import Answer, Request
from radixlm.runtime.messages import Abort


@function
def ask(s: State, question: str) -> str:
    s += f"{question}?" + gen("answer")
    return s["answer"]


def echo(request: Request) -> str:
    return request.prompt.upper()


QUESTIONS = [{"question": f"q{i}"} for i in range(20)]


class Counter:
    """A progress bar that counts."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int]] = []
        self.is_shown = False

    def __enter__(self) -> Counter:
        self.is_shown = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_shown = False

    def advance(self, num_prompt: int = 0, num_cached: int = 0, num_completion: int = 0) -> None:
        assert self.is_shown
        self.steps.append((num_prompt, num_cached, num_completion))


def test_results_come_as_they_finish_and_say_which_item_they_are() -> None:
    backend = ScriptedBackend(default=echo)
    backend.pause()
    arriving = ask.run_batch(QUESTIONS[:3], backend=backend, generator_style=True)
    threading.Timer(0.02, backend.resume).start()
    assert sorted((st.index, st.ret_value) for st in arriving) == [(i, f"Q{i}?") for i in range(3)]

    @function
    def uneven(s: State, n: int) -> None:
        for _ in range(n):
            s += gen("x")
            _ = s["x"]

    with lagging(default="x") as backend:
        items = [{"n": n} for n in (4, 1, 3, 2)]
        order = [st.index for st in uneven.run_batch(items, backend=backend, generator_style=True)]
    assert order == [1, 3, 2, 0]


def test_a_generator_takes_items_only_as_there_is_room() -> None:
    taken: list[int] = []

    def endless() -> Iterator[dict[str, str]]:
        for i in itertools.count():
            taken.append(i)
            yield {"question": f"q{i}"}

    backend = ScriptedBackend(default=echo)
    arriving = ask.run_batch(endless(), backend=backend, num_threads=4, generator_style=True)
    first = [next(arriving).ret_value for _ in range(10)]
    assert first == [f"Q{i}?" for i in range(10)]
    assert len(taken) <= 14
    arriving.close()
    assert not backend.open_branches


def test_leaving_the_iteration_aborts_what_runs() -> None:
    backend = ScriptedBackend({"answer": echo})
    backend.pause()
    arriving = ask.run_batch(QUESTIONS, backend=backend, generator_style=True, timeout_s=0.05)
    first = next(arriving)
    assert first.error() is not None
    del arriving, first
    assert not backend.open_branches
    assert sum(isinstance(m, Abort) for m in backend.sent) == len(QUESTIONS)


def test_a_wrong_item_of_an_endless_batch_ends_it_with_its_place() -> None:
    backend = ScriptedBackend(default=echo)
    items = iter([{"question": "a"}, {"qestion": "b"}])
    arriving = ask.run_batch(items, backend=backend, generator_style=True)
    with pytest.raises(ProgramError) as caught:
        list(arriving)
    assert caught.value.place == "batch[1].qestion"
    assert "Did you mean question" in caught.value.hint
    assert not backend.open_branches


def test_a_list_is_wanted_where_the_order_counts() -> None:
    with pytest.raises(ProgramError, match="generator_style=True"):
        ask.run_batch(iter(QUESTIONS), backend=ScriptedBackend())  # type: ignore[reportArgumentType]


def test_on_a_loop_a_batch_is_awaited_or_iterated() -> None:
    async def main(backend: ScriptedBackend) -> tuple[list[Any], list[Any], int]:
        num_ticks = 0

        async def tick() -> None:
            nonlocal num_ticks
            while True:
                await asyncio.sleep(0)
                num_ticks += 1

        ticking = asyncio.create_task(tick())
        states = await ask.arun_batch(QUESTIONS, backend=backend)
        arriving = ask.arun_batch(QUESTIONS, backend=backend, generator_style=True)
        indices = [st.index async for st in arriving]
        ticking.cancel()
        return [st.ret_value for st in states], indices, num_ticks

    with lagging(default=echo) as backend:
        values, indices, num_ticks = asyncio.run(main(backend))
        assert not backend.open_branches
    assert values == [f"Q{i}?" for i in range(20)]
    assert sorted(indices) == list(range(20))
    assert num_ticks > 5


def test_cancelling_a_batch_on_a_loop_aborts_all_of_it() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()

    async def main() -> None:
        task = asyncio.create_task(ask.arun_batch(QUESTIONS, backend=backend))
        while backend.num_waiting < len(QUESTIONS):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not backend.open_branches
    assert backend.num_waiting == 0


def test_a_batch_on_a_loop_times_out_program_by_program() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()
    states = asyncio.run(ask.arun_batch(QUESTIONS[:3], backend=backend, timeout_s=0.05))
    assert [type(st.error()).__name__ for st in states] == ["TimedOut"] * 3
    assert not backend.open_branches


# ---------------------------------------------------------------------------------------------- errors


def test_a_result_that_is_no_value_of_its_schema_is_an_error_without_reading_it() -> None:
    @function
    def fill(s: State, i: int) -> None:
        s += f"{i}" + gen("v", schema=list[int]) + gen("w", choices=["yes", "no"])

    answers = {
        "v": ["[1]", Answer("[2,", "length"), "[3]"],
        "w": ["yes", "no", Answer("y", "length")],
    }
    states = fill.run_batch([{"i": i} for i in range(3)], backend=ScriptedBackend(answers))
    errors = [st.error() for st in states]
    assert [type(e) for e in errors] == [type(None), OutputError, OutputError]
    assert all(any(__file__ in note for note in e.__notes__) for e in errors[1:] if e is not None)
    assert states[1].error() is errors[1], "asked twice, it is the same"
    with pytest.raises(OutputError) as caught:
        _ = states[1]["v"]
    assert caught.value is errors[1]
    assert states[1].error() is errors[1], "reading it afterwards does not hide it"


def test_a_refused_result_that_the_program_dealt_with_is_no_error() -> None:
    @function
    def retry(s: State) -> list[int]:
        attempt = s.copy()
        attempt += gen("v", schema=list[int])
        try:
            return attempt["v"]
        except OutputError:
            s += gen("v", schema=list[int])
            return s["v"]

    st = retry.run(backend=ScriptedBackend({"v": [Answer("[2,", "length"), "[3]"]}))
    assert st.error() is None
    assert st.ret_value == [3]

    @function
    def again(s: State) -> None:
        s += gen("v", schema=list[int])
        if s.get_meta("v").finish_reason == "length":
            s += gen("v", schema=list[int])

    script = {"v": [Answer("[2,", "length"), "[3]"]}
    assert again.run(backend=ScriptedBackend(script)).error() is None, "the name has a good value"

    @function
    def shrug(s: State) -> None:
        s += gen("v", schema=list[int])
        with pytest.raises(OutputError):
            _ = s["v"]

    assert shrug.run(backend=ScriptedBackend({"v": Answer("[2,", "length")})).error() is None


def test_an_exception_of_a_users_validator_carries_the_line() -> None:
    from typing import Annotated

    from pydantic import AfterValidator

    def check(value: int) -> int:
        raise RuntimeError(f"the database does not know {value}")

    @function
    def fill(s: State) -> None:
        s += gen("v", schema=Annotated[int, AfterValidator(check)])

    (st,) = fill.run_batch([{}], backend=ScriptedBackend({"v": "7"}))
    error = st.error()
    assert isinstance(error, RuntimeError)
    assert any(f"{__file__}:" in note for note in error.__notes__)


# ---------------------------------------------------------------------------------------------- progress


def test_progress_counts_every_run_with_its_tokens_failed_ones_too() -> None:
    bar = Counter()
    answers = ["a b", EngineDied("it ended"), "c"]
    states = ask.run_batch(
        QUESTIONS[:3], backend=ScriptedBackend({"answer": answers}), progress_bar=bar
    )
    assert not bar.is_shown
    assert [each[2] for each in bar.steps] == [2, 0, 1]
    assert isinstance(states[1].error(), EngineDied)


def test_a_backend_may_bring_its_own_bar() -> None:
    class WithBar(ScriptedBackend):
        bars: list[Counter] = []  # noqa: RUF012

        def progress(self, num_items: int) -> Counter:
            assert num_items == 20
            self.bars.append(Counter())
            return self.bars[-1]

    backend = WithBar(default="x")
    ask.run_batch(QUESTIONS, backend=backend, progress_bar=True)
    ask.run_batch(QUESTIONS, backend=backend, progress_bar=False)
    ask.run_batch(QUESTIONS, backend=backend)  # stderr is no terminal here
    assert [len(bar.steps) for bar in backend.bars] == [20]


def test_without_one_a_line_on_stderr_is_rewritten(capsys: pytest.CaptureFixture[str]) -> None:
    ask.run_batch(QUESTIONS, backend=ScriptedBackend(default="x"), progress_bar=True)
    shown = capsys.readouterr().err
    assert "20/20 runs" in shown
    assert shown.endswith("\n")
    stream = io.StringIO()
    with ProgressLine(0, stream) as line:
        line.advance(100, 75, 10)
    assert "1 runs" in stream.getvalue()
    assert "75 % of prompts cached" in stream.getvalue()


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"progress_bar": "yes"}, "progress_bar"),
        ({"num_threads": 0}, "num_threads"),
        ({"num_threads": "many"}, "num_threads"),
        ({"temprature": 1.0}, "temprature"),
    ],
)
@pytest.mark.parametrize("style", [True, False])
def test_wrong_options_of_a_batch_are_refused_before_anything_runs(
    options: dict[str, Any], place: str, style: Literal[True]
) -> None:
    backend = ScriptedBackend(default="x")
    with pytest.raises(ProgramError) as caught:
        ask.run_batch(QUESTIONS, backend=backend, generator_style=style, **options)
    assert caught.value.place == place
    assert not backend.sent
