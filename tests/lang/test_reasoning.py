from __future__ import annotations

import pytest

from radixlm import (
    Answer,
    OutputError,
    ProgramError,
    ScriptedBackend,
    State,
    assistant,
    function,
    gen,
    gen_int,
    separate_reasoning,
    user,
)
from radixlm.grammar.spec import AfterReasoning, JsonSchema, Regex
from radixlm.lang.reasoning import MODEL_TYPES, divide


@function
def solve(s: State, model_type: str = "qwen3", budget: int | None = None) -> None:
    thinking = separate_reasoning(gen("x", max_tokens=9), model_type, max_thinking_tokens=budget)
    s += user("2+2?") + assistant(thinking) + user("Sure?") + assistant(gen("sure"))


def test_thinking_is_kept_beside_the_answer_and_out_of_what_follows() -> None:
    backend = ScriptedBackend({"x": "<think>\nTwo and two.\n</think>\n\nFour.", "sure": "Yes."})
    state = solve.run(backend=backend)
    assert (state["x"], state["x_reasoning_content"]) == ("Four.", "Two and two.")
    assert state.text() == "2+2?Four.Sure?Yes."
    assert "think" not in backend.requests[1].prompt
    assert state.get_meta("x").reasoning == "Two and two."
    assert not backend.open_branches


def test_an_output_without_thinking_stays_as_it_is() -> None:
    backend = ScriptedBackend({"x": "Four.", "sure": "Yes."})
    state = solve.run(backend=backend)
    assert (state["x"], state["x_reasoning_content"]) == ("Four.", "")


def test_a_budget_ends_the_thinking_by_force_and_the_answer_follows() -> None:
    script = {"x": [Answer("so much to say", "length"), "Four."], "sure": "Yes."}
    backend = ScriptedBackend(script)
    state = solve.run(budget=4, backend=backend)
    assert (state["x"], state["x_reasoning_content"]) == ("Four.", "so much to say")
    begun = "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n<think>\n"
    assert backend.requests[0].prompt == begun
    assert backend.requests[1].prompt == f"{begun}so much to say\n</think>\n\n"
    first, second = (request.sampling for request in backend.requests[:2])
    assert (first.max_tokens, first.stop, second.max_tokens) == (4, ("</think>",), 9)
    usage = state.get_meta("x").usage
    assert usage.completion_tokens == 4 + 1
    assert "think" not in backend.requests[2].prompt


def test_a_model_whose_prompt_opens_the_thinking_gets_no_second_mark() -> None:
    backend = ScriptedBackend({"x": ["hm", "Four."], "sure": "Yes."})
    solve.run(model_type="deepseek-r1", budget=4, backend=backend)
    assert backend.requests[0].prompt.endswith("assistant\n")
    assert divide("hm</think>4", MODEL_TYPES["deepseek-r1"]) == ("hm", "4")
    assert divide("cut off", MODEL_TYPES["deepseek-r1"]) == ("cut off", "")
    assert divide("<think>cut off", MODEL_TYPES["qwen3"]) == ("cut off", "")
    assert divide("◁think▷a◁/think▷b", MODEL_TYPES["kimi"]) == ("a", "b")


def test_a_constraint_holds_for_the_answer() -> None:
    @function
    def f(s: State, budget: int | None) -> None:
        s += "x" + separate_reasoning(gen_int("n"), max_thinking_tokens=budget)
        after = AfterReasoning(JsonSchema('{"type": "integer"}'))
        s += separate_reasoning(gen("m", grammar=after), max_thinking_tokens=budget)

    backend = ScriptedBackend({"n": "hm</think>4", "m": "well</think>5"})
    state = f.run(budget=None, backend=backend)
    assert (state["n"], state["n_reasoning_content"], state["m"]) == (4, "hm", "5")
    constraints = [request.message.constraint for request in backend.requests]  # type: ignore[union-attr]
    assert isinstance(constraints[0], AfterReasoning)
    assert isinstance(constraints[0].content, Regex)
    backend = ScriptedBackend({"n": ["hm", "4"], "m": ["well", "5"]})
    assert f.run(budget=5, backend=backend)["n"] == 4
    constraints = [request.message.constraint for request in backend.requests]  # type: ignore[union-attr]
    assert [type(each) for each in constraints] == [type(None), Regex, type(None), JsonSchema]


def test_an_answer_that_is_none_raises_when_it_is_read() -> None:
    @function
    def f(s: State) -> None:
        s += "x" + separate_reasoning(gen_int("n"), max_thinking_tokens=3)

    state = f.run(backend=ScriptedBackend({"n": ["hm", Answer("-", "length")]}))
    with pytest.raises(OutputError, match="cut by max_tokens"):
        _ = state["n"]
    assert state["n_reasoning_content"] == "hm"


def test_a_live_run_streams_the_answer_and_then_the_thinking() -> None:
    backend = ScriptedBackend({"x": "<think>a b</think>c d", "sure": "Yes."})
    with solve.run(backend=backend, stream=True) as live:
        assert "".join(live.text_iter("x")) == "c d"
        assert "".join(live.text_iter("x_reasoning_content")) == "a b"


def test_nodes_around_a_gen_stay_and_what_cannot_be_is_refused() -> None:
    @function
    def f(s: State) -> None:
        s += separate_reasoning(user("q") + assistant("A: " + gen("x")), "qwen3")

    state = f.run(backend=ScriptedBackend({"x": "<think>t</think>a"}))
    assert state.messages()[1] == {"role": "assistant", "content": "A: a"}
    with pytest.raises(ProgramError, match="Known: deepseek-r1"):
        separate_reasoning(gen("x"), "gpt-2")
    with pytest.raises(ProgramError, match="max_reasks"):
        separate_reasoning(gen("x", max_reasks=1))
    with pytest.raises(ProgramError) as caught:
        separate_reasoning(gen("x"), max_thinking_tokens=-1)
    assert caught.value.place == "max_thinking_tokens"
