"""What may be said to a program, and what is said of wrong names."""

from __future__ import annotations

from typing import Any

import pytest

from radixlm import ProgramError, SamplingError, ScriptedBackend, State, function, gen


@function
def ask(s: State, question: str, *, style: str = "brief") -> str:
    s += f"{style}: {question}" + gen("answer")
    return s["answer"]


def backend() -> ScriptedBackend:
    return ScriptedBackend(default="x")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ({"stile": "x"}, "style"),
        ({"qestion": "x"}, "question"),
        ({"temprature": 1.0}, "temperature"),
        ({"max_token": 9}, "max_tokens"),
        ({"timeout": 9}, "timeout_s"),
        ({"name_space": "x"}, "namespace"),
    ],
)
def test_a_wrong_name_is_named_with_the_nearest_right_one(wrong: dict[str, Any], near: str) -> None:
    for attempt in (
        lambda: ask.run("why", backend=backend(), **wrong),
        lambda: ask.bind(**wrong),
        lambda: ask.run_batch([{"question": "why", **wrong}], backend=backend()),
        lambda: ask.run_batch([{"question": "why"}], backend=backend(), **wrong),
    ):
        with pytest.raises(ProgramError) as caught:
            attempt()
        assert caught.value.place.endswith(next(iter(wrong)))
        assert f"Did you mean {near}?" in str(caught.value)


def test_missing_and_surplus_arguments_say_what_is_taken() -> None:
    for attempt in (
        lambda: ask.run(backend=backend()),
        lambda: ask.run("a", "b", backend=backend()),
        lambda: ask.run("a", question="b", backend=backend()),
    ):
        with pytest.raises(ProgramError, match="It takes question, style"):
            attempt()
    with pytest.raises(ProgramError) as caught:
        ask.run_batch([{"question": "a"}, {}], backend=backend())
    assert caught.value.place == "batch[1].question"


def test_a_function_that_takes_any_name_gets_them() -> None:
    @function
    def f(s: State, **rest: Any) -> dict[str, Any]:
        s += gen("x")
        return rest

    assert f.run(anything=1, temperature=0.5, backend=backend()).ret_value == {"anything": 1}


def test_a_positional_argument_comes_before_a_bound_one() -> None:
    bound = ask.bind(question="bound", style="long", backend=backend())
    assert bound.run().text() == "long: boundx"
    assert bound.run("given").text() == "long: givenx"

    @function
    def outer(s: State) -> None:
        bound(s, "given")

    assert outer.run(backend=backend()).text() == "long: givenx"


def test_options_of_a_batch_may_be_parameters_of_the_function() -> None:
    @function
    def f(s: State, num_threads: int = 1, progress_bar: str = "") -> str:
        s += gen("x")
        return f"{num_threads}{progress_bar}"

    assert f.run(num_threads=7, progress_bar="!", backend=backend()).ret_value == "7!"
    batch = [{"num_threads": 7}, {}]
    states = f.bind(progress_bar="?").run_batch(batch, backend=backend())
    assert [st.ret_value for st in states] == ["7?", "1?"]
    with pytest.raises(
        ProgramError, match=r"a parameter of .* and an option of run_batch"
    ) as caught:
        f.run_batch(batch, num_threads=8, backend=backend())
    assert "bind(num_threads=...)" in caught.value.hint


def test_a_wrong_value_of_an_option_is_a_sampling_error_at_once() -> None:
    with pytest.raises(SamplingError, match="temperature"):
        ask.bind(temperature="hot")


def test_a_program_cannot_be_a_generator_or_take_an_option_of_run() -> None:
    async def streams(s: State) -> Any:
        yield 1

    def takes(s: State, stream: bool) -> None: ...

    for body in (streams, takes):
        with pytest.raises(ProgramError):
            function(body)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_s": "1"},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
        {"seed": 1.5},
        {"namespace": 7},
        {"strict_text": "yes"},
    ],
)
def test_a_wrong_value_of_an_option_of_a_run_is_named(wrong: dict[str, Any]) -> None:
    for attempt in (
        lambda: ask.run("why", backend=backend(), **wrong),
        lambda: ask.bind(**wrong),
        lambda: ask.run_batch([{"question": "why"}], backend=backend(), **wrong),
    ):
        with pytest.raises(ProgramError) as caught:
            attempt()
        assert caught.value.place == next(iter(wrong))
