"""Context-free grammars on the real model: in a program, from the engine, and over HTTP with the `openai` package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from cfg_checks import check
from http_server import served
from openai import OpenAI

import radixlm
from radixlm import State, function, gen
from radixlm.grammar.spec import Gbnf, Lark

pytestmark = pytest.mark.model

SUMS = """
start: sum
sum: sum "+" product | product
product: product "*" NUMBER | NUMBER
NUMBER: /[1-9][0-9]{0,2}/
"""
MOVES = 'root ::= "1. " move " " move\nmove ::= [a-h] [1-8] | [NBRQK] [a-h] [1-8]\n'
CALCULATE: Any = {
    "type": "custom",
    "custom": {
        "name": "calculate",
        "description": "Works out a sum",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": SUMS}},
    },
}
QUESTION: Any = [{"role": "user", "content": "What is two plus three times four?"}]
MOVE = r"[a-h][1-8]|[NBRQK][a-h][1-8]"


@pytest.fixture(scope="module")
def api(engine: radixlm.Engine) -> Iterator[OpenAI]:
    with (
        served(engine._runtime, served_name="smollm2") as server,
        OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as api,
    ):
        yield api


def test_a_program_s_gen_keeps_to_its_grammar(engine: radixlm.Engine) -> None:
    @function
    def play(s: State) -> None:
        s += "A game of chess begins: " + gen("moves", 12, grammar=MOVES)
        s += "\nA sum: " + gen("sum", 24, grammar=Lark(SUMS))

    state = play.run(backend=engine, temperature=0.8, seed=3)
    assert re.fullmatch(rf"1\. ({MOVE}) ({MOVE})", state["moves"])
    check(Lark(SUMS), [state["sum"]], [])


def test_the_engine_takes_grammars_as_text_and_as_specs(engine: radixlm.Engine) -> None:
    for grammar in (MOVES, Gbnf(MOVES)):
        assert re.fullmatch(
            rf"1\. ({MOVE}) ({MOVE})", engine.generate("Chess: ", grammar=grammar).value
        )
    broken: Any = SUMS + "start: x"
    with pytest.raises(radixlm.GrammarError, match="already defined at 2:1") as refused:
        engine.generate("x", grammar=broken)
    assert refused.value.place == "6:1"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "choice", ["required", {"type": "custom", "custom": {"name": "calculate"}}]
)
def test_a_custom_tool_is_called_with_a_sentence_of_its_grammar(
    api: OpenAI, choice: Any, stream: bool
) -> None:
    question: Any = {
        "model": "smollm2", "messages": QUESTION, "tools": [CALCULATE], "tool_choice": choice,
        "parallel_tool_calls": False, "max_tokens": 60, "temperature": 0,
    }  # fmt: skip
    if not stream:
        (picked,) = api.chat.completions.create(**question).choices
        (call,) = picked.message.tool_calls or []
        assert call.type == "custom"
        name, text, reason = call.custom.name, call.custom.input, picked.finish_reason
    else:
        chunks = list(api.chat.completions.create(**question, stream=True))
        pieces: list[Any] = [
            piece.model_dump()
            for chunk in chunks
            for piece in chunk.choices[0].delta.tool_calls or []
        ]
        assert pieces[0]["id"]
        assert pieces[0]["type"] == "custom"
        name = pieces[0]["custom"]["name"]
        text = "".join(piece["custom"].get("input", "") for piece in pieces)
        reason = chunks[-1].choices[0].finish_reason
    assert name == "calculate"
    assert reason == "tool_calls"
    check(Lark(SUMS), [text], [])


def test_a_call_of_a_custom_tool_and_its_result_go_on_as_a_conversation(api: OpenAI) -> None:
    ask: Any = {"model": "smollm2", "tools": [CALCULATE], "temperature": 0}
    first = api.chat.completions.create(
        **ask, messages=QUESTION, tool_choice="required", parallel_tool_calls=False, max_tokens=60
    )
    message = first.choices[0].message
    (call,) = message.tool_calls or []
    history: Any = [
        *QUESTION,
        message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "14"},
    ]
    second = api.chat.completions.create(**ask, messages=history, max_tokens=8)
    assert second.choices[0].message.content
    assert second.usage is not None
    assert first.usage is not None
    cached = second.usage.prompt_tokens_details
    assert cached is not None
    assert (cached.cached_tokens or 0) >= first.usage.prompt_tokens - 1


@pytest.mark.parametrize(
    "extra",
    [
        {"grammar": MOVES},
        {"ebnf": MOVES},
        {"guided_grammar": MOVES},
        {"structured_outputs": {"grammar": MOVES}},
        {"response_format": {"type": "grammar", "grammar": MOVES}},
    ],
)
def test_an_answer_keeps_to_a_grammar_in_every_spelling(api: OpenAI, extra: Any) -> None:
    answer = api.chat.completions.create(
        model="smollm2", messages=QUESTION, max_tokens=20, extra_body=extra
    )
    assert re.fullmatch(rf"1\. ({MOVE}) ({MOVE})", answer.choices[0].message.content or "")


def test_a_broken_grammar_is_refused_with_its_line(api: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        api.chat.completions.create(
            model="smollm2", messages=QUESTION, extra_body={"grammar": 'root ::= "a" |\n  (b'}
        )
    assert refused.value.param == "grammar"
    body: Any = refused.value.body
    assert body["message"] == (
        "unexpected end of the grammar: the ( of 2:3 needs its )\n      (b\n        ^ (2:5)"
    )
    tools: Any = [{"type": "custom", "custom": {"name": "f", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}}}]  # fmt: skip
    with pytest.raises(openai.BadRequestError) as refused:
        api.chat.completions.create(model="smollm2", messages=QUESTION, tools=tools)
    assert refused.value.param == "tools[0].custom.format.grammar.definition"
    assert "the rule x is not defined" in refused.value.message
