from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from backend_subjects import openai
from fake_openai import FakeOpenAI
from pydantic import BaseModel

from radixlm import (
    GrammarError,
    ProgramError,
    ScriptedBackend,
    State,
    TimedOut,
    assistant,
    function,
    gen,
    system,
    user,
)
from radixlm.lang.agent import AgentResult, agent_loop, run_agent
from radixlm.lang.tools import call_text, describe_tools


def search(query: str) -> list[str]:
    """Search."""
    return [f"about {query}"]


def divide(a: int, b: int) -> float:
    """Divide."""
    return a / b


@function
def ask(s: State, question: str, **options: Any) -> AgentResult:
    s += system("Use tools.") + user(question)
    return run_agent(s, [search, divide], "answer", **options)


def run(answers: Any, **options: Any) -> tuple[Any, ScriptedBackend]:
    backend = ScriptedBackend({"answer": answers})
    program = ask.bind(**options) if options else ask
    state = program.run("Why?", backend=backend)
    assert not backend.open_branches
    return state, backend


def test_calls_are_carried_out_and_told_until_there_is_an_answer() -> None:
    first = call_text("search", query="x") + "\n" + call_text("divide", a=6, b=3)
    state, backend = run([first, call_text("search", query="y"), "Because."])
    result: AgentResult = state.ret_value
    assert (result.answer, result.stopped, len(result.turns)) == ("Because.", "answer", 3)
    assert [each.value for each in result.results] == [["about x"], 2.0, ["about y"]]
    assert [each.call.name for each in result.results] == ["search", "divide", "search"]
    assert backend.requests[1].prompt == (
        "<|im_start|>system\nUse tools.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n"
        f"<|im_start|>assistant\n{first}<|im_end|>\n"
        '<|im_start|>user\n<tool_response>\n["about x"]\n</tool_response>\n<tool_response>\n2.0\n</tool_response>'
        "<|im_end|>\n<|im_start|>assistant\n"
    )
    assert state["answer"] == "Because."
    assert state["answer_turns"] == result.turns
    assert result.turns[0].usage.completion_tokens > 0


def test_what_a_tool_raises_is_told_to_the_model() -> None:
    state, backend = run([call_text("divide", a=1, b=0), "I cannot."])
    failed = state.ret_value.results[0]
    assert isinstance(failed.error, ZeroDivisionError)
    assert failed.text == "error: ZeroDivisionError: division by zero"
    assert failed.text in backend.requests[1].prompt


def test_what_a_tool_raises_can_raise_in_the_program() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run([call_text("divide", a=1, b=0)], on_tool_error="raise")
    assert "the agent called divide" in caught.value.__notes__[0]


class Even(BaseModel):
    n: int

    def model_post_init(self, context: object) -> None:
        if self.n % 2:
            raise ValueError("odd")


def halve(even: Even) -> int:
    return even.n // 2


def test_arguments_that_a_validator_refuses_are_told_too() -> None:
    @function
    def f(s: State) -> None:
        s += user("go") + agent_loop("answer", [halve])

    backend = ScriptedBackend({"answer": [call_text("halve", even={"n": 3}), "no"]})
    state = f.run(backend=backend)
    assert "odd" in state["answer_turns"][0].results[0].text
    assert "halve/even" in str(state["answer_turns"][0].results[0].error)


def test_the_last_turn_cannot_call_so_there_is_an_answer() -> None:
    again = call_text("search", query="x")
    state, _ = run([again, again, "Enough."], max_turns=3)
    assert state.ret_value.stopped == "max_turns"
    assert state.ret_value.answer == "Enough."
    with pytest.raises(ProgramError, match="breaks"):
        run([again, again, again], max_turns=3)


def test_the_first_turn_can_be_made_to_call() -> None:
    run([call_text("search", query="x"), "done"], tool_choice="required")
    with pytest.raises(ProgramError, match="breaks"):
        run(["no call"], tool_choice="required")


def test_the_answer_can_be_typed() -> None:
    @function
    def f(s: State) -> None:
        s += user("go") + agent_loop("answer", [divide], schema=int)

    state = f.run(backend=ScriptedBackend({"answer": [call_text("divide", a=4, b=2), "2"]}))
    assert state["answer"] == 2


def test_an_empty_conversation_begins_with_the_tools_and_a_routine_fits_between_messages() -> None:
    @function
    def f(s: State) -> None:
        s += agent_loop("answer", [divide], max_tokens=9)
        s += user("and?") + agent_loop("more", [divide])

    backend = ScriptedBackend({"answer": "a", "more": "b"})
    state = f.run(backend=backend)
    assert backend.requests[0].prompt.startswith("<|im_start|>system\n" + describe_tools([divide]))
    assert [m["role"] for m in state.messages()] == ["system", "assistant", "user", "assistant"]
    assert (backend.requests[0].sampling.max_tokens, state["more"]) == (9, "b")

    @function
    def wrong(s: State) -> None:
        s += assistant(agent_loop("answer", [divide]))

    with pytest.raises(ProgramError, match="inside another node"):
        wrong.run(backend=backend)


@pytest.mark.parametrize(
    "options", [{"max_turns": 0}, {"max_turns": True}, {"on_tool_error": "hide"}, {"name": ""}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ProgramError):
        agent_loop(**{"name": "answer", "tools": [search], **options})


def test_a_tool_that_blocks_lets_the_other_programs_of_a_batch_go_on() -> None:
    meet = threading.Barrier(4)

    def together(x: int) -> int:
        """All four are in here at once, or nobody leaves."""
        meet.wait(20)
        return x

    @function
    def f(s: State, number: int) -> Any:
        s += user(str(number)) + agent_loop("answer", [together])
        return s["answer_turns"][0].results[0].value

    def script(request: Any) -> str:
        return "done" if "tool_response" in request.prompt else call_text("together", x=1)

    states = f.run_batch(
        [{"number": n} for n in range(4)], backend=ScriptedBackend({"answer": script})
    )
    assert [state.ret_value for state in states] == [1] * 4


def test_async_tools_run_on_the_loop_of_an_awaited_program_and_on_one_of_their_own() -> None:
    loops: list[object] = []

    async def look(x: int) -> int:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return x + 1

    @function
    def f(s: State) -> Any:
        s += user("go") + agent_loop("answer", [look])
        return s["answer_turns"][0].results[0].value

    def backend() -> ScriptedBackend:
        return ScriptedBackend({"answer": [call_text("look", x=1), "done"]})

    async def main() -> None:
        state = await f.arun(backend=backend())
        assert state.ret_value == 2
        assert loops[-1] is asyncio.get_running_loop()
        states = await f.arun_batch([{}], backend=backend())
        assert states[0].ret_value == 2
        assert loops[-1] is asyncio.get_running_loop()

    asyncio.run(main())
    assert f.run(backend=backend()).ret_value == 2


def test_a_slow_tool_is_answered_for_and_the_time_of_the_run_counts() -> None:
    gate = threading.Event()

    def hang(x: int) -> bool:
        return gate.wait(30)

    @function
    def f(s: State, **options: Any) -> Any:
        s += user("go") + agent_loop("answer", [hang], **options)
        return s["answer_turns"]

    try:
        script = {"answer": [call_text("hang", x=1) + "\n" + call_text("hang", x=2), "done"]}
        turns = f.run(tool_timeout_s=0.02, backend=ScriptedBackend(script)).ret_value
        assert all(isinstance(each.error, TimedOut) for each in turns[0].results)
        assert "no result within 0.02 s" in turns[0].results[1].text
        with pytest.raises(TimedOut):
            f.run(timeout_s=0.05, backend=ScriptedBackend(script))
    finally:
        gate.set()


def test_a_tool_may_run_an_agent_of_its_own() -> None:
    inner_backend = ScriptedBackend(
        {
            "answer": lambda r: (
                "42" if "tool_response" in r.prompt else call_text("search", query="x")
            )
        }
    )

    @function
    def inner(s: State) -> str:
        s += user("inner") + agent_loop("answer", [search])
        return s["answer"]

    def delegate(task: str) -> str:
        """Have somebody else do it."""
        return inner.run(backend=inner_backend).ret_value

    @function
    def outer(s: State) -> str:
        s += user("go") + agent_loop("answer", [delegate])
        return s["answer_turns"][0].results[0].value

    backend = ScriptedBackend({"answer": [call_text("delegate", task="t"), "ok"]})
    assert outer.run(backend=backend).ret_value == "42"


def test_long_results_are_cut_and_what_has_no_json_form_is_its_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd one"

    def big(n: int) -> Any:
        return "x" * n if n else Odd()

    @function
    def f(s: State) -> Any:
        s += user("go") + agent_loop("answer", [big], max_result_chars=5)
        return [each.text for each in s["answer_turns"][0].results]

    script = {"answer": [call_text("big", n=9) + "\n" + call_text("big", n=0), "done"]}
    assert f.run(backend=ScriptedBackend(script)).ret_value == [
        "xxxxx ... (4 more characters)",
        "odd o ... (2 more characters)",
    ]


def test_an_agent_in_each_fork_keeps_its_own_turns() -> None:
    @function
    def f(s: State) -> None:
        s += user("go")
        forks = s.fork(2)
        forks += [agent_loop("answer", [search]), agent_loop("answer", [search])]
        forks.join()
        s += assistant(gen("end"))

    script = {"answer": [call_text("search", query="a"), "one", "two"], "end": "."}
    backend = ScriptedBackend(script)
    state = f.run(backend=backend)
    assert state["answer"] == ["one", "two"]
    assert [len(turns) for turns in state["answer_turns"]] == [2, 1]
    assert not backend.open_branches


@pytest.mark.parametrize("server", ["openai", "vllm", "sglang", "llama.cpp"])
def test_servers_that_cannot_enforce_calls_are_refused_before_anything_is_sent(server: str) -> None:
    fake = FakeOpenAI(server)
    with openai(fake) as backend, pytest.raises(GrammarError, match="cannot enforce StructuralTag"):
        ask.run("Why?", backend=backend)
    assert not fake.requests
