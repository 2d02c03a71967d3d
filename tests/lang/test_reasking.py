from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from lagging_backend import lagging
from pydantic import BaseModel, field_validator

from radixlm import (
    Aborted,
    Answer,
    EngineDied,
    OutputError,
    ProgramError,
    ScriptedBackend,
    State,
    TimedOut,
    assistant,
    function,
    gen,
    select,
    user,
)
from radixlm.lang.tools import call_text
from radixlm.runtime.messages import Append, CloseBranch, Fork, Generate, OpenBranch


class Person(BaseModel):
    age: int

    @field_validator("age")
    @classmethod
    def may_be(cls, age: int) -> int:
        if age > 120:
            raise ValueError("nobody is that old")
        return age


@function
def ask(s: State, **options: Any) -> None:
    s += user("Who?") + assistant("It is " + gen("p", schema=Person, **options) + ".")
    s += user("Sure?") + assistant(gen("sure"))


OLD, YOUNG = '{"age": 200}', '{"age": 20}'


def run(answers: list[Any], **options: Any) -> tuple[State, ScriptedBackend]:
    backend = ScriptedBackend({"p": answers, "sure": "yes"})
    state = ask.run(backend=backend, **options)
    assert not backend.open_branches
    return state, backend


def test_a_refused_value_is_asked_for_again_with_the_error_in_the_prompt() -> None:
    state, backend = run([OLD, '{"age": 150}', YOUNG], max_reasks=2)
    assert state["p"] == Person(age=20)
    begun = "<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\nIt is "
    told = (
        "<|im_end|>\n<|im_start|>user\nYour answer was refused: Person refuses '{}': Value error, nobody is"
        " that old (at /age)\nAnswer again, corrected.<|im_end|>\n<|im_start|>assistant\nIt is "
    )
    first, second = told.replace("{}", OLD), told.replace("{}", '{"age": 150}')
    assert [each.prompt for each in backend.requests[:3]] == [
        begun,
        begun + OLD + first,
        begun + OLD + first + '{"age": 150}' + second,
    ]


def test_the_branch_holds_the_accepted_answer_only() -> None:
    state, backend = run([OLD, YOUNG], max_reasks=2)
    assert state.text() == f"Who?It is {YOUNG}.Sure?yes"
    assert backend.requests[-1].prompt == (
        f"<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\nIt is {YOUNG}.<|im_end|>\n"
        "<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_attempts_are_kept_and_their_usage_is_added_up() -> None:
    state, _ = run([OLD, YOUNG], max_reasks=2)
    meta = state.get_meta("p")
    assert [each.text for each in meta.attempts] == [OLD, YOUNG]
    assert [type(each.error) for each in meta.attempts] == [OutputError, type(None)]
    used = [each.usage for each in meta.attempts]
    assert meta.usage.prompt_tokens == used[0].prompt_tokens + used[1].prompt_tokens
    assert state.usage().completion_tokens == 2 + 2 + 1
    assert state.error() is None


def test_a_first_answer_that_is_accepted_costs_a_fork_and_keeps_its_tokens() -> None:
    _, backend = run([YOUNG], max_reasks=2)
    kinds = [type(message) for message in backend.sent]
    first = [OpenBranch, Append, Fork, Generate, CloseBranch]
    assert kinds == [*first, Append, Generate, CloseBranch]
    copy = backend.sent[2].children[0]
    assert [each.branch for each in backend.sent[3:]] == [copy, "branch#1", copy, copy, copy]


def test_after_the_last_attempt_the_error_raises_where_the_value_is_read() -> None:
    state, _ = run([OLD, OLD], max_reasks=1)
    with pytest.raises(OutputError, match="nobody is that old") as caught:
        _ = state["p"]
    assert caught.value.place == "/age"
    notes = "\n".join(caught.value.__notes__)
    assert "refused 2 times" in notes
    assert "set at" in notes
    assert "test_reasking.py" in notes
    assert state.text() == f"Who?It is {OLD}.Sure?yes"
    assert isinstance(run([OLD, OLD], max_reasks=1)[0].error(), OutputError)


def test_a_check_of_the_program_refuses_by_false_by_a_reason_or_by_raising() -> None:
    def not_two(value: int) -> Any:
        if value == 2:
            raise ValueError("it is two")
        return "it is three" if value == 3 else value != 4

    @function
    def f(s: State) -> None:
        s += "n: " + gen("n", schema=int, check=not_two, max_reasks=5)

    backend = ScriptedBackend({"n": ["2", "3", "4", "5"]})
    assert f.run(backend=backend)["n"] == 5
    prompts = [each.prompt for each in backend.requests]
    assert "the check refuses '2': it is two\nAnswer again, corrected.\n" in prompts[1]
    assert "it is three" in prompts[2]
    assert "it does not pass the check" in prompts[3]
    assert prompts[1].startswith("n: 2\n\nYour answer was refused")


def test_a_check_alone_refuses_without_asking_again() -> None:
    @function
    def f(s: State) -> None:
        s += gen("n", check=lambda text: text != "no")

    with pytest.raises(OutputError, match="does not pass the check"):
        _ = f.run(backend=ScriptedBackend({"n": "no"}))["n"]


def test_another_error_of_a_check_is_the_program_s_own() -> None:
    @function
    def f(s: State) -> None:
        s += "x" + gen("n", check=lambda text: 1 / 0, max_reasks=3) + gen("m")

    backend = ScriptedBackend({"n": "a", "m": "b"})
    with pytest.raises(ZeroDivisionError):
        f.run(backend=backend)
    assert [each.name for each in backend.requests] == ["n"]
    assert not backend.open_branches


def test_the_program_can_say_what_the_model_is_told() -> None:
    _, backend = run([OLD, YOUNG], max_reasks=1, reask_prompt=lambda error: "Younger!")
    assert "<|im_start|>user\nYounger!<|im_end|>" in backend.requests[1].prompt


def test_a_cut_answer_and_calls_that_are_refused_are_asked_for_again() -> None:
    state, _ = run([Answer('{"age"', "length"), YOUNG], max_reasks=1)
    assert state["p"].age == 20

    @function
    def f(s: State) -> Any:
        s += user("go") + assistant(gen("c", tools=[greet], max_reasks=1))
        return s["c"][0].arguments["person"].age

    script = [call_text("greet", person={"age": 200}), call_text("greet", person={"age": 2})]
    assert f.run(backend=ScriptedBackend({"c": script})).ret_value == 2


def greet(person: Person) -> str:
    return f"Hello, {person.age}"


def test_attempts_draw_differently_and_repeatably() -> None:
    seeds: list[list[int | None]] = []
    for _ in range(2):
        _, backend = run([OLD, YOUNG], max_reasks=2, seed=5)
        seeds.append([each.sampling.seed for each in backend.requests])
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"max_reasks": -1}, "max_reasks"),
        ({"max_reasks": True}, "max_reasks"),
        ({"max_reasks": 1, "check": 7}, "check"),
        ({"max_reasks": 1, "reask_prompt": "x"}, "reask_prompt"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], place: str) -> None:
    with pytest.raises(ProgramError) as caught:
        gen("x", **options)
    assert caught.value.place == place


def test_several_outputs_cannot_be_asked_again() -> None:
    @function
    def f(s: State) -> None:
        s += "x" + gen("x", n=2, max_reasks=1)

    with pytest.raises(ProgramError, match="n=2"):
        f.run(backend=ScriptedBackend(default="y"))


# ------------------------------------------------------------------------------------ how a program waits


def later(request: Any) -> str:
    return OLD if "refused" not in request.prompt else YOUNG


@function
def chain(s: State) -> tuple[Any, ...]:
    s += user("Who?") + assistant(gen("p", schema=Person, max_reasks=1))
    s += user("And?") + assistant(select("c", ["x", "y"]) + gen("q", schema=Person, max_reasks=1))
    forks = s.fork(3)
    forks += user("More?") + assistant(gen("r", schema=Person, max_reasks=1) + gen("end"))
    last = [fork["end"] for fork in forks]  # behind everything that is asked again
    return last, [fork["r"].age for fork in forks], s["q"].age, s["p"].age


EXPECTED = (["end"] * 3, [20] * 3, 20, 20)
SCRIPT = {"p": later, "q": later, "r": later, "c": "x", "end": "end"}


def test_reading_what_stands_behind_asks_again_for_what_stands_before() -> None:
    backend = ScriptedBackend(SCRIPT)
    assert chain.run(backend=backend).ret_value == EXPECTED
    assert not backend.open_branches
    with lagging(SCRIPT) as slow:
        assert chain.run(backend=slow).ret_value == EXPECTED
        assert [s.ret_value for s in chain.run_batch([{}] * 5, backend=slow)] == [EXPECTED] * 5
        assert asyncio.run(chain.arun(backend=slow)).ret_value == EXPECTED
        assert not slow.open_branches


def test_a_run_that_reads_nothing_asks_again_all_the_same() -> None:
    with lagging({"p": later, "sure": "yes"}) as slow:
        assert ask.run(backend=slow, max_reasks=1)["p"].age == 20


def test_forks_are_asked_side_by_side() -> None:
    backend = ScriptedBackend({"p": later})
    backend.pause()
    seen: list[int] = []

    @function
    def g(s: State) -> None:
        s += "x"
        forks = s.fork(4)
        forks += gen("p", schema=Person, max_reasks=1)
        seen.append(backend.num_waiting)
        backend.resume()
        forks.join()

    g.run(backend=backend)
    assert seen == [4]


def test_a_live_run_gets_the_accepted_answer_as_a_whole() -> None:
    with (
        lagging({"p": later, "sure": "yes"}, by_word=True) as slow,
        ask.run(backend=slow, max_reasks=1, stream=True) as live,
    ):
        assert list(live.text_iter("p")) == [YOUNG]
        assert "".join(live.text_iter()) == f"Who?It is {YOUNG}.Sure?yes"


def test_a_compiled_run_is_the_same_run() -> None:
    compiled = chain.compile()
    assert "stopped" not in str(compiled.stopped)
    assert compiled.run(backend=ScriptedBackend(SCRIPT)).ret_value == EXPECTED


def test_a_run_that_ends_meanwhile_leaves_nothing_open() -> None:
    backend = ScriptedBackend({"p": later, "sure": "yes"})
    backend.pause()
    with pytest.raises(TimedOut):
        ask.run(backend=backend, max_reasks=1, timeout_s=0.02)
    backend.resume()
    assert not backend.open_branches

    @function
    def leaves(s: State) -> None:
        s += user("Who?") + assistant(gen("p", schema=Person, max_reasks=3))
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        leaves.run(backend=ScriptedBackend({"p": later}))


def test_a_request_that_fails_raises_what_made_it_fail() -> None:
    with pytest.raises(EngineDied):
        run([OLD, EngineDied("gone")], max_reasks=2)
    backend = ScriptedBackend({"p": [OLD, Aborted("gone")], "sure": "yes"})
    with pytest.raises(Aborted):
        ask.run(backend=backend, max_reasks=2)
    assert not backend.open_branches


def test_a_check_runs_on_the_thread_of_the_program_without_its_lock() -> None:
    threads: list[int] = []

    @function
    def f(s: State) -> None:
        def check(value: str) -> bool:
            threads.append(threading.get_ident())
            return bool(inner.run(backend=backend)["y"])

        s += "x" + gen("x", check=check, max_reasks=1)

    @function
    def inner(s: State) -> None:
        s += "i" + gen("y")

    with lagging(default="z") as backend:
        f.run(backend=backend)
    assert threads == [threading.get_ident()]
