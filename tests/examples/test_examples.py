"""Every example runs, on scripted answers and on the embedded model, is short, and prints what its docstring shows but for the words of
the model."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import Any

import pytest
from example_files import EXAMPLES, load, names
from http_server import served

import radixlm
from radixlm import ScriptedBackend
from radixlm.lang.tools import call_text

OVER_HTTP = (
    "openai_client"  # its main is given a server's address; test_openai_example.py has its script
)
NOTES = [
    '{"about":"name","value":"Ada"}', '{"about":"pet","value":"a dog Rex"}', '{"about":"nothing","value":""}',
    '{"about":"nothing","value":""}',
]  # fmt: skip


def weather_answer(prompt: str) -> str:
    """A call for the question of the prompt, and an answer where its result is there: both programs of a batch go on by themselves."""
    for word, call, result, answer in (
        ("weather in Paris", call_text("weather", city="Paris"), "sunny", "It is sunny."),
        ("time in Rome", call_text("local_time", city="Rome"), "nine", "Nine."),
    ):
        if word in prompt:
            return answer if result in prompt else call
    raise ValueError(prompt)


SCRIPTS: dict[str, dict[str, Any]] = {
    "hello": {"greeting": "Welcome, Ada!"},
    "fork_join": {"tip": ["Sleep well.", "Eat greens.", "Walk."], "plan": " a walk"},
    "extract_person": {
        "person": '{"name":"Maria Lopez","age":34,"city":"Madrid","hobbies":["chess"]}'
    },
    "extract_folder": {"extract": '{"hotel":"Bellevue","city":"Lyon","mood":"mixed"}'},
    "demo": {
        "note": [" clean", " excellent", " slow"],
        "mood": "mixed",
        "report": '{"hotel":"Bellevue","city":"Lyon","nights":2,"room":"clean","wifi":"slow"}',
    },
    "batch_classify": {"topic": ["sports", "food", "money", "science", *["food"] * 4]},
    "chat_with_memory": {
        "note": NOTES,
        "reply": lambda request: request.prompt.split("Notes: ")[-1].split("\n")[0],
    },
    "map_reduce_summary": {
        "point": [f" Point {number}" for number in (1, 2, 3, 4)],
        "summary": lambda request: f" all of {request.prompt.count('Point')} points",
    },
    "self_consistency": {"reasoning": " 3 * 4", "answer": ["7", *["12"] * 13, *["7"] * 7]},
    "tool_agent": {
        "thought": " Hm.",
        "action": ["stock", "multiply", "finish"],
        "arguments": ['{"item":"bananas"}', '{"a":11,"b":3}'],
        "answer": " the end",
    },
    "weather_agent": {"answer": lambda request: weather_answer(request.prompt)},
    "ask_again": {
        "slogan": lambda request: "Ride far." if "refused" in request.prompt else "one two " * 4,
    },
    "judge_answers": {
        "answer": [" a", " b", " c", " d", " e"] * 2,
        "verdict": [{"yes": -0.5, "no": -float(n)} for n in (1, 2, 5, 3, 4)] * 2,
    },
    "sglang_program": {
        "tip": [" Run", " Rest"] * 2,
        "verdict": "good",
        "rating": '{"stars": 4, "useful": true}',
    },
    "tree_of_thought": {
        "next": lambda request: {choice: -float(len(choice)) for choice in request.choices}
    },
}
SAYS = {
    "hello": ["Welcome, Ada!"],
    "fork_join": ["sleep     Sleep well.", "food      Eat greens.", "Start with a walk."],
    "extract_person": ["Maria Lopez, 34, Madrid: chess"],
    "extract_folder": ["Bellevue in Lyon, mixed", "3 rows, 0 failed", "reads 0 documents"],
    "demo": ["The review is mixed.", "room='clean'", "prompt tokens were cached"],
    "batch_classify": ["sports    2.9  The striker", "science   2.9  The telescope", "were cached"],
    "chat_with_memory": ["name: Ada, pet: a dog Rex | What is my name? -> name: Ada, pet: a dog Rex"],
    "map_reduce_summary": ["- Point 4.", "In one sentence: all of 4 points."],
    "self_consistency": ["one attempt:  7", "13 votes for 12", " 7 votes for 7"],
    "tool_agent": ['stock({"item":"bananas"}) = 11\nmultiply({"a":11,"b":3}) = 33\nthe end'],
    "weather_agent": ['weather({"city": "Paris"}) = sunny, 21 degrees -> It is sunny.', "-> Nine."],
    "ask_again": ["    refused: one two one two one two one two", "\nRide far.\n"],
    "judge_answers": ["  4.50  c", "  0.50  a", "were cached"],
    "sglang_program": ["assistant 1. Run. 2. Rest.", '{"stars": 4, "useful": true} and good'],
    "tree_of_thought": [
        "Drink the tea. Boil the water. Put a tea bag into the cup. Pour the hot water over the tea bag."
    ],
}  # fmt: skip


def shown_output(name: str) -> str:
    """What the docstring says that the example prints; "" where it shows nothing."""
    docstring = ast.get_docstring(ast.parse((EXAMPLES / f"{name}.py").read_text())) or ""
    return docstring.partition(f"$ python examples/{name}.py\n")[2]


def test_every_example_has_a_script_and_a_line_in_the_readme() -> None:
    assert names() == sorted({*SCRIPTS, OVER_HTTP})
    readme = (EXAMPLES / "README.md").read_text()
    assert sorted(set(re.findall(r"\((\w+)\.py\)", readme))) == names()


@pytest.mark.parametrize("name", names())
def test_an_example_is_short_and_shows_what_it_prints(name: str) -> None:
    assert (EXAMPLES / f"{name}.py").read_text().count("\n") < 60
    assert shown_output(name) or name == "demo"  # a table; `make demo` shows it


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_an_example_runs_on_scripted_answers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    backend = ScriptedBackend(SCRIPTS[name])
    load(name).main(backend)
    printed = capsys.readouterr().out
    for text in SAYS[name]:
        assert text in printed
    assert not backend.open_branches


VARYING = {
    "hello",
    "tool_agent",
    "ask_again",
    "sglang_program",
}  # in how many lines they print: that is up to the model


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", names())
def test_an_example_runs_on_the_embedded_model(
    name: str, engine: radixlm.Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == OVER_HTTP:
        with served(engine._runtime) as server:
            load(name).main(f"{server.url}/v1")
    else:
        load(name).main(engine)
    printed, shown = capsys.readouterr().out, shown_output(name)
    assert printed.strip()
    if shown and name not in VARYING:
        assert len(printed.strip().splitlines()) == len(shown.strip().splitlines())


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("smollm2_files")
def test_an_example_runs_as_a_script() -> None:
    command = [sys.executable, str(EXAMPLES / "hello.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()
