from __future__ import annotations

from typing import Any

import pytest
from lagging_backend import lagging

from radixlm import (
    Answer,
    EngineDied,
    Overloaded,
    ProgramError,
    PromptError,
    ScriptedBackend,
    ServiceError,
    State,
    assistant,
    function,
    gen,
    select,
    user,
)

DEAD, FULL = EngineDied("it ended"), Overloaded("the queue is full")


@function
def talk(s: State) -> None:
    s += user("a") + assistant("1" + gen("x"))
    s += select("y", ["b", "c"]) + gen("z")


@pytest.mark.parametrize("late", [False, True])
def test_what_failed_for_a_passing_reason_is_asked_again_on_the_same_text(late: bool) -> None:
    script = {"x": [DEAD, FULL, "2"], "y": [DEAD, "c"], "z": [FULL, "3"]}
    if late:
        with lagging(script) as backend:
            state = talk.run(backend=backend, retries=2)
    else:
        backend = ScriptedBackend(script)
        state = talk.run(backend=backend, retries=2)
    assert state.text() == "a12c3"
    prompts = [each.prompt for each in backend.requests]
    begun = "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n1"
    assert prompts == [begun] * 3 + [f"{begun}2<|im_end|>\n"] * 2 + [f"{begun}2<|im_end|>\nc"] * 2
    assert [state.get_meta(name).num_retries for name in "xyz"] == [2, 1, 1]
    assert not backend.open_branches
    assert state.error() is None


def test_after_the_last_retry_the_error_raises_with_its_place() -> None:
    backend = ScriptedBackend({"x": [DEAD, DEAD]})
    with pytest.raises(EngineDied) as caught:
        talk.run(backend=backend, retries=1)
    assert "running 'x' at" in caught.value.__notes__[0]
    assert not backend.open_branches


def test_a_mistake_is_not_sent_again() -> None:
    backend = ScriptedBackend({"x": [PromptError("too long"), "2"], "y": "b", "z": "3"})
    with pytest.raises(PromptError):
        talk.run(backend=backend, retries=3)
    assert len(backend.requests) == 1


def test_a_request_that_the_backend_refuses_at_once_holds_up_nothing() -> None:
    class Refusing(ScriptedBackend):
        num_asked = 0

        def generate(self, *args: Any, **kwargs: Any) -> Any:
            self.num_asked += 1
            if self.num_asked == 1:
                raise ServiceError("it is closed")
            return super().generate(*args, **kwargs)

    @function
    def two(s: State) -> None:
        s += "p" + gen("x") + "q" + gen("y")
        with pytest.raises(ServiceError):
            s["x"]
        assert s["y"]

    for retries in (0, 2):
        backend = Refusing({"x": "1", "y": "2"})
        with pytest.raises(ServiceError, match="it is closed"):
            two.run(backend=backend, retries=retries, timeout_s=20)
        assert not backend.open_branches


def test_forks_and_attempts_are_asked_again_too() -> None:
    @function
    def f(s: State) -> Any:
        s += "p"
        forks = s.fork(2)
        forks += gen("n", schema=int, check=lambda n: n > 1, max_reasks=1) + gen("end")
        forks.join()
        return s["n"]

    script = {"n": [DEAD, "1", "5", FULL, "6"], "end": [DEAD, ".", "."]}
    backend = ScriptedBackend(script)
    assert f.run(backend=backend, retries=1).ret_value == [5, 6]
    assert not backend.open_branches


def test_what_somebody_has_read_is_not_asked_again() -> None:
    backend = ScriptedBackend({"x": [Answer("half of it", failure=DEAD), "2"], "y": "b", "z": "3"})
    with (
        pytest.raises(EngineDied),
        talk.run(backend=backend, retries=3, stream=True) as live,
    ):
        live.finish()
    silent = ScriptedBackend({"x": [DEAD, "2"], "y": "b", "z": "3"})
    with talk.run(backend=silent, retries=3, stream=True) as live:
        assert live.text() == "a12b3"


def test_a_batch_waits_for_its_retries_side_by_side() -> None:
    with lagging({"x": [*[FULL] * 6, *["2"] * 6], "y": "b", "z": "3"}) as backend:
        states = talk.run_batch([{}] * 6, backend=backend, retries=6)
        assert [state.text() for state in states] == ["a12b3"] * 6


def test_a_program_may_have_a_parameter_of_that_name() -> None:
    @function
    def f(s: State, retries: int) -> int:
        return retries

    assert f.run(retries=7, backend=ScriptedBackend()).ret_value == 7
    with pytest.raises(ProgramError, match="retries"):
        talk.run(retries=-1, backend=ScriptedBackend())
