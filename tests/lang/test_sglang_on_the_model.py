"""A program written for SGLang, re-asking, reasoning, stop patterns and log-probabilities, on the embedded model."""

from __future__ import annotations

import re
import time

import pytest

import radixlm as sgl
from radixlm import State

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(300)]


@sgl.function
def tips(s, topic):
    s += sgl.system("You are a helpful assistant.")
    s += sgl.user("Give two tips about " + topic + ".")
    forks = s.fork(2)
    for number, f in enumerate(forks):
        f += sgl.assistant("Tip " + str(number + 1) + ":" + sgl.gen("tip", max_tokens=24, stop="."))
    s += sgl.assistant("Tips: " + forks[0]["tip"] + forks[1]["tip"])
    s += sgl.user("Is it healthy?") + sgl.assistant(sgl.select("yes", choices=["Yes", "No"]))
    s += sgl.user("As JSON?")
    s += sgl.assistant(sgl.gen("json", regex=r'\{"tips": [0-9], "topic": "\w{1,9}"\}'))


def test_a_program_of_forks_select_and_regex_runs_and_streams(engine: sgl.Engine) -> None:
    state = tips.run("sleep", backend=engine, max_new_tokens=40)
    assert state["yes"] in ("Yes", "No")
    assert re.fullmatch(r'\{"tips": [0-9], "topic": "\w{1,9}"\}', state["json"])
    with tips.run("sleep", backend=engine, stream=True) as live:
        assert "".join(live.text_iter("json")) == state["json"]
        assert live.text() == state.text()


def test_a_stop_pattern_ends_the_text_and_an_evil_one_takes_no_time(engine: sgl.Engine) -> None:
    @sgl.function
    def count(s: State, pattern: str) -> None:
        s += "One, two, three, 4, 5, 6, 7, 8, 9, 10, 11," + sgl.gen(
            "x", max_tokens=24, stop_regex=pattern
        )

    text = count.run(r"1\d, 1[5-9]", backend=engine)["x"]
    assert re.search(r"1\d, 1[5-9]$", text)
    assert len(re.findall(r"1\d, 1[5-9]", text)) == 1
    began_s = time.monotonic()
    count.run(r"(1+)+(a|aa)+b", backend=engine)
    assert time.monotonic() - began_s < 60  # a backtracking search would not end in a lifetime


def test_log_probabilities_come_with_their_texts(engine: sgl.Engine) -> None:
    @sgl.function
    def f(s: State) -> None:
        s += "The capital of France is" + sgl.gen(
            "x", max_tokens=3, return_logprob=True, top_logprobs_num=2, logprob_start_len=0,
            return_text_in_logprobs=True,
        )  # fmt: skip

    state = f.run(backend=engine)
    info = state.get_meta_info("x")
    assert "".join(text for _, _, text in info["output_token_logprobs"]) == state["x"]
    assert [len(each) for each in info["output_top_logprobs"]] == [2, 2, 2]
    assert "France" in "".join(text for _, _, text in info["input_token_logprobs"])


def test_a_budget_ends_the_thinking_and_the_answer_keeps_its_type(engine: sgl.Engine) -> None:
    @sgl.function
    def f(s: State) -> None:
        s += sgl.user("What is 2 + 3? Think first.")
        answer = sgl.gen_int("n", minimum=0, maximum=99)
        s += sgl.assistant(sgl.separate_reasoning(answer, "qwen3", max_thinking_tokens=12))

    state = f.run(backend=engine)
    assert 0 <= state["n"] <= 99
    assert state["n_reasoning_content"]
    assert state.messages()[-1]["content"] == str(state["n"])
    assert state.get_meta("n").usage.completion_tokens <= 12 + 4


def test_a_refused_value_is_asked_for_again(engine: sgl.Engine) -> None:
    seen: list[int] = []

    def new(number: int) -> bool:
        seen.append(number)
        return len(seen) == 3

    @sgl.function
    def f(s: State) -> None:
        s += sgl.user("Say a number.")
        s += sgl.assistant(
            "It is " + sgl.gen("n", schema=int, check=new, max_reasks=4, max_tokens=6)
        )
        s += sgl.user("Again.") + sgl.assistant(sgl.gen("m", max_tokens=4))

    state = f.run(backend=engine)
    assert state["n"] == seen[2]
    assert len(state.get_meta("n").attempts) == 3
    assert state.messages()[1]["content"] == f"It is {seen[2]}"
    assert state.get_meta("n").usage.cached_tokens > 0


def test_the_constant_beginning_is_computed_in_advance(engine: sgl.Engine) -> None:
    @sgl.function
    def f(s: State, word: str) -> None:
        s += "Translate these animals from English to French, one word each, without comments. "
        s += word + " ->" + sgl.gen("x", max_tokens=3)

    num_tokens = f.cache("cat", backend=engine)
    assert num_tokens > 10
    state = f.run("dog", backend=engine)
    assert state.get_meta("x").usage.cached_tokens >= num_tokens - 3
