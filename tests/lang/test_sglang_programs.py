"""Programs as people write them for SGLang, unmodified but for the import. What they should do is what SGLang's documentation says."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

import radixlm as sgl
from radixlm import ScriptedBackend

# ------------------------------------------------------------------------------------ the programs


@sgl.function
def multi_turn_question(s, question_1, question_2):
    s += sgl.system("You are a helpful assistant.")
    s += sgl.user(question_1)
    s += sgl.assistant(sgl.gen("answer_1", max_tokens=256))
    s += sgl.user(question_2)
    with s.assistant():
        s += sgl.gen("answer_2", max_tokens=256)


@sgl.function
def multi_dimensional_judge(s, article):
    s += "Evaluate the following text: " + article + "\n"
    s += "Is it about food? " + sgl.select("related", choices=["yes", "no"]) + "\n"
    if s["related"] == "no":
        return
    dimensions = ("Clarity", "Originality", "Evidence")
    forks = s.fork(len(dimensions))
    for f, dim in zip(forks, dimensions):  # noqa: B905
        f += "Evaluate " + dim + ": " + sgl.gen("judgment", stop="END")
    judgment = "\n".join([f["judgment"] for f in forks])
    s += "Judgments:\n" + judgment + "\n"
    s += "Summary: " + sgl.gen("summary", max_tokens=64, stop=["\n"])
    s += "Grade: " + sgl.gen("grade", choices=["A", "B"], choices_method=sgl.greedy_token_selection)
    s += "\n" + sgl.gen("output", regex=r'\{"summary": "[\w ]+", "grade": "[AB]"\}', temperature=0)


@sgl.function
def tip_suggestion(s):
    s += "Here are two tips for staying healthy: 1. Balanced Diet. 2. Regular Exercise.\n\n"
    forks = s.fork(2)
    for i, f in enumerate(forks):
        f += f"Now, expand tip {i + 1} into a paragraph:\n"
        f += sgl.gen("detailed_tip", max_tokens=256, stop="\n\n")
    s += "Tip 1:" + forks[0]["detailed_tip"] + "\n"
    s += "Tip 2:" + forks[1]["detailed_tip"] + "\n"
    s += "In summary" + sgl.gen("summary")


character_regex = (
    r"""\{\n"""
    + r"""    "name": "[\w\d\s]{1,16}",\n"""
    + r"""    "house": "(Gryffindor|Slytherin|Ravenclaw|Hufflepuff)",\n"""
    + r"""    "wand": \{\n"""
    + r"""        "length": [0-9]{1,2}\.[0-9]{0,2}\n"""
    + r"""    \}\n"""
    + r"""\}"""
)


@sgl.function
def character_gen(s, name):
    s += name + " is a character in Harry Potter. Please fill in the following information.\n"
    s += sgl.gen("json_output", max_tokens=256, regex=character_regex)


@sgl.function
def tool_use(s, question):
    s += "To answer this question: " + question + ". "
    s += "I need to use a " + sgl.gen("tool", choices=["calculator", "search engine"]) + ". "
    if s["tool"] == "calculator":
        s += "The math expression is" + sgl.gen("expression")
    else:
        s += "The key word to search is" + sgl.gen("word")


@sgl.function
def copies_and_scopes(s, topic):
    s += sgl.user_begin() + "About " + topic + sgl.user_end()
    with s.var_scope("essay"):
        s += sgl.assistant_begin() + sgl.gen("body") + "." + sgl.assistant_end()
    with s.copy() as tmp:
        tmp += sgl.user("How many words?")
        tmp += sgl.assistant(sgl.gen_int("count"))
        s["count"] = tmp["count"]
    with s.fork(size=2) as group:
        group += sgl.user("Rate it") + sgl.assistant(sgl.gen("rate", dtype=int))
    s += sgl.user("Title?") + sgl.assistant(sgl.gen_string("title"))


# ------------------------------------------------------------------------------------ what they do


def test_a_conversation_of_two_turns() -> None:
    backend = ScriptedBackend({"answer_1": "Washington.", "answer_2": "Springfield."})
    sgl.set_default_backend(backend)
    try:
        state = multi_turn_question.run(question_1="US?", question_2="Illinois?", max_new_tokens=32)
    finally:
        sgl.set_default_backend(None)
    assert state["answer_2"] == "Springfield."
    assert [m["role"] for m in state.messages()] == [
        "system", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert backend.requests[0].sampling.max_tokens == 256
    assert not backend.open_branches


def test_a_judge_with_select_fork_join_and_regex() -> None:
    script = {
        "related": "yes", "judgment": [" clear", " new", " weak"], "summary": "fine", "grade": "B",
        "output": '{"summary": "fine", "grade": "B"}',
    }  # fmt: skip
    backend = ScriptedBackend(script)
    state = multi_dimensional_judge.run("soup is good", backend=backend)
    assert "Judgments:\n clear\n new\n weak\nSummary: fine" in state.text()
    assert state["grade"] == "B"
    assert state["output"].startswith("{")
    stopped = multi_dimensional_judge.run("x", backend=ScriptedBackend({"related": "no"}))
    assert "summary" not in stopped


def test_forks_are_read_by_their_index() -> None:
    backend = ScriptedBackend({"detailed_tip": [" Eat.", " Run."], "summary": ", do both."})
    state = tip_suggestion.run(backend=backend)
    assert state.text().endswith("Tip 1: Eat.\nTip 2: Run.\nIn summary, do both.")


def test_a_regex_of_a_character_and_a_batch_of_them() -> None:
    text = '{\n    "name": "Harry",\n    "house": "Gryffindor",\n    "wand": {\n        "length": 11.0\n    }\n}'
    backend = ScriptedBackend({"json_output": text})
    states = character_gen.run_batch(
        [{"name": "Harry"}, {"name": "Ron"}], temperature=0.1, num_threads=2, progress_bar=False,
        backend=backend, max_new_tokens=99,
    )  # fmt: skip
    assert [state["json_output"] for state in states] == [text] * 2
    assert re.fullmatch(character_regex, text)


def test_control_flow_on_a_choice_and_a_bound_program() -> None:
    backend = ScriptedBackend({"tool": "calculator", "expression": " 1+1"})
    state = tool_use.bind(question="1+1").run(backend=backend)
    assert state["expression"] == " 1+1"
    assert "word" not in state


def test_streams_by_variable_with_meta_data_and_async() -> None:
    backend = ScriptedBackend({"answer_1": "one two", "answer_2": "three"})
    state = multi_turn_question.run("a", "b", stream=True, backend=backend)
    assert "".join(state.text_iter("answer_1")) == "one two"
    assert "".join(state.text_iter()) == "You are a helpful assistant.aone twobthree"

    async def read() -> list[Any]:
        state = multi_turn_question.run("a", "b", stream=True, backend=backend)
        pairs = state.text_async_iter(var_name="answer_2", return_meta_data=True)
        return [pair async for pair in pairs]

    pairs = asyncio.run(read())
    assert "".join(text for text, _ in pairs) == "three"
    assert pairs[-1][1].finish_reason == "stop"


def test_copies_scopes_roles_in_halves_and_numbers() -> None:
    script = {"body": "words", "count": "2", "rate": ["4", "5"], "title": '"T"'}
    state = copies_and_scopes.run("cats", backend=ScriptedBackend(script))
    assert (state["essay"], state["count"], state["rate"], state["title"]) == (
        "words.", 2, [4, 5], "T",
    )  # fmt: skip
    assert state.error() is None


def test_log_probabilities_are_asked_and_read_by_sglang_s_names() -> None:
    @sgl.function
    def f(s):
        s += "x" + sgl.gen("a") + sgl.select("c", ["p", "q"])

    backend = ScriptedBackend({"a": "b", "c": "q"})
    state = f.run(
        backend=backend, return_logprob=True, top_logprobs_num=2, logprob_start_len=0,
        return_text_in_logprobs=True, use_thread=False,
    )  # fmt: skip
    sampling = backend.requests[0].sampling
    assert (sampling.logprobs, sampling.prompt_logprobs, sampling.prompt_logprobs_start) == (
        2,
        2,
        0,
    )
    info = state.get_meta_info("a")
    assert info["finish_reason"] == {"type": "stop"}
    assert (info["prompt_tokens"], info["completion_tokens"]) == (1, 1)
    assert len(state.get_meta_info("c")["normalized_prompt_logprobs"]) == 2


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"return_logprob": 1}, "return_logprob"),
        ({"top_logprobs_num": "2"}, "top_logprobs_num"),
        ({"max_new_tokens": 3, "max_tokens": 4}, "max_new_tokens"),
        ({"stop_regex": ["a", ""]}, "stop_regex[1]"),
        ({"stop_regex": "a", "regex": "b"}, "stop_regex"),
        ({"dtype": int, "regex": "b"}, "dtype"),
        ({"dtype": list}, "dtype"),
        ({"choices_method": "greedy_token_selection"}, "choices_method"),
        ({"choices": ["a"], "choices_method": "greedy_token_selection", "top_p": 0.5}, "top_p"),
        ({"choices": ["a"], "choices_method": "best"}, "choices_method"),
    ],
)
def test_what_does_not_fit_together_is_refused_by_name(options: dict[str, Any], place: str) -> None:
    with pytest.raises((sgl.ProgramError, sgl.SamplingError)) as caught:
        sgl.gen("x", **options)
    assert caught.value.place == place


def test_plain_types_are_read_as_such() -> None:
    @sgl.function
    def f(s):
        for name, dtype in (("i", int), ("f", "float"), ("b", bool), ("t", str)):
            s += sgl.gen(name, dtype=dtype)

    state = f.run(backend=ScriptedBackend({"i": "-3", "f": "2.5e1", "b": "True", "t": '"a"'}))
    assert [state[name] for name in "ifbt"] == [-3, 25.0, True, "a"]


def test_pictures_are_refused_with_a_reason() -> None:
    for make in (lambda: sgl.image("a.png"), lambda: sgl.video("a.mp4", 8)):
        with pytest.raises(sgl.ProgramError, match="read text only"):
            make()


def test_a_stop_by_pattern_is_a_constraint_that_ends_with_the_first_match() -> None:
    @sgl.function
    def f(s):
        s += (
            "x"
            + sgl.gen("a", stop_regex=[r"\d\d", "end"])
            + sgl.gen("b")
            + sgl.gen("c", regex="y+")
        )

    backend = ScriptedBackend({"a": "as 42", "b": "no match", "c": "yy"})
    f.run(backend=backend, stop_regex="END")
    patterns = [request.message.constraint.pattern for request in backend.requests]  # type: ignore[union-attr]
    assert patterns[2] == "y+"
    assert re.fullmatch(patterns[0], "as 42")
    assert re.fullmatch(patterns[0], "nothing")
    assert not re.fullmatch(patterns[0], "as 42 and")
    assert re.fullmatch(patterns[1], "the END")


def test_trace_draws_and_cache_computes_the_constant_beginning() -> None:
    assert "answer_1" in str(multi_turn_question.trace("a", "b"))
    backend = ScriptedBackend({"answer_1": "x", "answer_2": "y"}, default="")
    num_tokens = multi_turn_question.cache("a", "b", backend=backend)
    assert num_tokens > 0
    assert backend.requests[0].sampling.max_tokens == 0
    assert "You are a helpful assistant." in backend.requests[0].prompt
    assert not backend.open_branches
    assert character_gen.cache("Harry", backend=backend) == 0
