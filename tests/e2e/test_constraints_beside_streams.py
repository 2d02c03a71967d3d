"""Every kind of constraint at once on the running server, and all that must be refused, while others stream and notice nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import httpx
import jsonschema
import pytest
from bad_constraints import BAD, Bad
from http_answers import Choice, read_answer
from http_server import Served, served
from http_wire import Ending, Reply
from running_streams import RunningStreams

import radixlm
from radixlm.grammar.explain import check_text
from radixlm.grammar.spec import (
    AfterReasoning,
    Gbnf,
    JsonSchema,
    Lark,
    Spec,
    StructuralTag,
    Tag,
)
from radixlm.runtime import messages as m

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
WAIT_S = 120.0
MAX_SILENCE_S = 10.0  # of a stream; a stalled one is silent until the others are done
ASK: Any = {
    "messages": [{"role": "user", "content": "Tell me of a city you like, in the form I want."}],
    "max_tokens": 64,
    "temperature": 0.7,
    "seed": 11,
}
STREAMED: Any = [
    {"prompt": prompt, "max_tokens": 32, "ignore_eos": True, "temperature": 0}
    for prompt in ("The sea was calm and", "1, 2, 3, 4, 5, 6,", "Once upon a time a small dragon")
]

# ------------------------------------------------------------------------------------------ constraints

CITY: Any = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{2,11}$"},
        "rank": {"type": "integer", "minimum": 1, "maximum": 40},
        "tags": {"type": "array", "items": {"enum": ["old", "warm", "big"]}, "minItems": 1, "maxItems": 3, "uniqueItems": True},
    },
    "required": ["name", "rank", "tags"],
    "additionalProperties": False,
}  # fmt: skip
TREE: Any = {
    "$defs": {"tree": {"type": "object", "properties": {"size": {"type": "integer", "multipleOf": 5}, "below": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}}, "required": ["size"], "additionalProperties": False}},
    "$ref": "#/$defs/tree",
}  # fmt: skip
SUMS = 'start: sum\nsum: sum "+" product | product\nproduct: product "*" NUMBER | NUMBER\nNUMBER: /[1-9][0-9]{0,2}/\n'
BRACKETS = 'root ::= pair pair?\npair ::= "(" pair? ")" | "[" pair? "]"\n'
PATTERN = r"(?=.*7)[0-9]{3}-[A-Z]{2}(?:-(?:red|blue))?"
OPTIONS = ["very good", "very bad", "very", "neither"]
LAYOUTS: Any = {
    "compact": {"separators": (",", ":")},
    "single_space": {},
    "indented": {"indent": 2},
}
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
CALCULATE: Any = {"type": "custom", "custom": {"name": "calculate", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": SUMS}}}}  # fmt: skip
CITY_TAG = Tag("<city>", JsonSchema(json.dumps(CITY)), "</city>", "<city")


def _form(schema: Any, **options: Any) -> dict[str, Any]:
    form = {"name": "x", "schema": schema, **options}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def is_city(text: str) -> None:
    jsonschema.validate(json.loads(text), CITY)


def is_tree(choice: Choice) -> None:
    jsonschema.validate(json.loads(choice.text), TREE)


def is_object(choice: Choice) -> None:
    assert isinstance(json.loads(choice.text), dict)


def is_city_laid_out(layout: str) -> Callable[[Choice], None]:
    def check(choice: Choice) -> None:
        is_city(choice.text)
        value = json.loads(choice.text)
        assert list(value) == list(CITY["properties"])
        assert choice.text == json.dumps(value, **LAYOUTS[layout])

    return check


def is_match(choice: Choice) -> None:
    assert re.fullmatch(PATTERN, choice.text)


def is_option(choice: Choice) -> None:
    assert choice.text in OPTIONS


def is_sum(text: str) -> None:
    assert re.fullmatch(r"[1-9][0-9]{0,2}([+*][1-9][0-9]{0,2})*", text)
    assert check_text(Lark(SUMS), text).outcome == "accepted"


def are_brackets(choice: Choice) -> None:
    rest = choice.text
    assert rest
    while rest:  # take the innermost pairs away until none is left
        fewer = rest.replace("()", "").replace("[]", "")
        assert fewer != rest
        rest = fewer
    assert check_text(Gbnf(BRACKETS), choice.text).outcome == "accepted"


def calls_weather(choice: Choice) -> None:
    assert choice.calls
    for call in choice.calls.values():
        assert call["name"] == "weather"
        is_city(call["arguments"])


def calls_or_talks(choice: Choice) -> None:
    assert choice.calls or choice.text
    if choice.calls:
        calls_weather(choice)


def calls_or_is_tree(choice: Choice) -> None:
    if choice.calls:
        calls_weather(choice)
    else:
        is_tree(choice)


def calls_calculate(choice: Choice) -> None:
    (call,) = choice.calls.values()
    assert call["name"] == "calculate"
    is_sum(call["arguments"])


def is_prose_with_cities(choice: Choice) -> None:
    pieces = re.split(r"<city>(.*?)</city>", choice.text, flags=re.DOTALL)
    assert len(pieces) > 1
    for city in pieces[1::2]:
        is_city(city)
    assert not any("<city" in prose for prose in pieces[::2])


def is_city_after_thought(choice: Choice) -> None:
    _, end, answer = choice.text.partition("</think>")
    assert end
    is_city(answer)


@dataclass(frozen=True)
class Kind:
    """A request with a constraint, over HTTP or straight to the gateway, and what its output has to be."""

    asked: dict[str, Any] | Spec
    check: Callable[[Choice], None]
    path: str = CHAT
    may_be_cut: bool = False  # free text is complete wherever it is


KINDS: dict[str, Kind] = {
    "schema": Kind(_form(CITY), is_city_laid_out("compact")),
    "schema, spaced": Kind(_form(CITY, whitespace="single_space"), is_city_laid_out("single_space")),
    "schema, indented": Kind(_form(CITY, whitespace="indented"), is_city_laid_out("indented")),
    "schema, flexible": Kind(_form(CITY, whitespace="flexible"), lambda choice: is_city(choice.text)),
    "schema, any order": Kind(_form(CITY, any_order=True), lambda choice: is_city(choice.text)),
    "recursive schema": Kind({"guided_json": TREE}, is_tree),
    "any object": Kind({"response_format": {"type": "json_object"}}, is_object),
    "pattern": Kind({"regex": PATTERN}, is_match),
    "pattern on plain text": Kind({"structured_outputs": {"regex": PATTERN}, "prompt": "The code is "}, is_match, TEXT),
    "choice": Kind({"choices": OPTIONS}, is_option),
    "lark": Kind({"grammar": SUMS}, lambda choice: is_sum(choice.text)),
    "gbnf": Kind({"response_format": {"type": "grammar", "grammar": BRACKETS}}, are_brackets),
    "tools, auto": Kind({"tools": [WEATHER], "tool_choice": "auto"}, calls_or_talks, may_be_cut=True),
    "tools, required": Kind({"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False}, calls_weather),
    "tools or a schema": Kind({"tools": [WEATHER], **_form(TREE)}, calls_or_is_tree),
    "custom tool": Kind({"tools": [CALCULATE], "tool_choice": "required", "parallel_tool_calls": False}, calls_calculate),
    "structural tag": Kind(StructuralTag((CITY_TAG,), at_least_one=True), is_prose_with_cities),
    "reasoning": Kind(AfterReasoning(JsonSchema(json.dumps(CITY))), is_city_after_thought),
}  # fmt: skip

# ------------------------------------------------------------------------------------------ the server


@pytest.fixture(scope="module")
def server(engine: radixlm.Engine) -> Iterator[Served]:
    with served(engine._runtime) as server:
        yield server


@pytest.fixture(scope="module")
def alone(server: Served) -> list[str]:
    """What each of the streams says when there is nothing else."""
    return [
        httpx.post(server.url + TEXT, json=body, timeout=WAIT_S).json()["choices"][0]["text"]
        for body in STREAMED
    ]


def ask(server: Served, path: str, body: dict[str, Any]) -> Reply:
    answer = httpx.post(server.url + path, json=ASK | body, timeout=WAIT_S)
    return Reply(Ending.WHOLE, answer.status_code, dict(answer.headers), answer.content)


def ask_gateway(engine: radixlm.Engine, spec: Spec) -> Choice:
    client = engine._client
    request = m.Generate(
        client.new_id("kinds"),
        segments=(m.Chat(tuple(ASK["messages"])),),
        sampling=m.SamplingParams(max_tokens=ASK["max_tokens"], temperature=0.7, seed=ASK["seed"]),
        constraint=spec,
    )
    output = cast("m.Finished", client.request(request).result(WAIT_S)).outputs[0]
    return Choice(output.text, output.finish_reason)


# ------------------------------------------------------------------------------------------ all kinds at once

Outputs = tuple[dict[str, Choice], RunningStreams]


@pytest.fixture(scope="module")
def outputs(server: Served, engine: radixlm.Engine, alone: list[str]) -> Outputs:
    def output_of(numbered: tuple[int, Kind]) -> Choice:
        number, kind = numbered
        if not isinstance(kind.asked, dict):
            return ask_gateway(engine, kind.asked)
        answer = read_answer(ask(server, kind.path, kind.asked | {"stream": number % 2 == 0}))
        assert answer.error is None, answer.error
        (choice,) = answer.choices.values()
        return choice

    with (
        RunningStreams(server.url + TEXT, STREAMED) as streams,
        ThreadPoolExecutor(len(KINDS)) as pool,
    ):
        found = list(pool.map(output_of, enumerate(KINDS.values())))
    return dict(zip(KINDS, found, strict=True)), streams


@pytest.mark.parametrize("name", KINDS)
def test_an_output_is_what_its_constraint_says(outputs: Outputs, name: str) -> None:
    choice = outputs[0][name]
    if not KINDS[name].may_be_cut:
        assert choice.finish_reason in ("stop", "tool_calls"), choice
    KINDS[name].check(choice)


def assert_undisturbed(streams: RunningStreams, alone: list[str]) -> None:
    assert not streams.faults, streams.faults
    for answers, text in zip(streams.answers, alone, strict=True):
        assert answers
        for answer in answers:
            assert answer.error is None
            assert (answer.choices[0].text, answer.choices[0].finish_reason) == (text, "length")
    assert streams.longest_silence_s < MAX_SILENCE_S


def test_the_streams_beside_them_say_what_they_say_alone(
    outputs: Outputs, alone: list[str]
) -> None:
    assert_undisturbed(outputs[1], alone)


# ------------------------------------------------------------------------------------------ what is refused


@dataclass(frozen=True)
class Refusal:
    """An answer, and how many frames of each stream came while it was waited for."""

    reply: Reply
    num_frames_beside: list[int]


Refusals = tuple[dict[str, Refusal], RunningStreams]


@pytest.fixture(scope="module")
def refusals(server: Served, alone: list[str]) -> Refusals:
    def refusal_of(bad: Bad) -> Refusal:
        before = list(streams.num_frames)
        reply = ask(server, CHAT, bad.body)
        return Refusal(
            reply, [now - then for now, then in zip(streams.num_frames, before, strict=True)]
        )

    with (
        RunningStreams(server.url + TEXT, STREAMED) as streams,
        ThreadPoolExecutor(len(BAD)) as pool,
    ):
        found = list(pool.map(refusal_of, BAD.values()))
    return dict(zip(BAD, found, strict=True)), streams


@pytest.mark.parametrize("name", BAD)
def test_a_bad_constraint_is_refused_with_its_place(refusals: Refusals, name: str) -> None:
    reply, bad = refusals[0][name].reply, BAD[name]
    assert reply.status == 400, reply.body
    error = reply.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", bad.place)
    assert bad.words in error["message"]


def test_the_streams_beside_refusals_say_what_they_say_alone(
    refusals: Refusals, alone: list[str]
) -> None:
    assert_undisturbed(refusals[1], alone)


def test_streams_go_on_while_a_hard_pattern_is_compiled_to_its_deadline(refusals: Refusals) -> None:
    assert all(num > 1 for num in refusals[0]["hard pattern"].num_frames_beside)


def test_afterwards_the_server_is_whole(
    server: Served, outputs: Outputs, refusals: Refusals
) -> None:
    assert httpx.get(f"{server.url}/health", timeout=WAIT_S).status_code == 200
    answer = read_answer(ask(server, CHAT, {"regex": PATTERN, "max_tokens": 20}))
    is_match(answer.choices[0])
    metrics = httpx.get(f"{server.url}/metrics", timeout=WAIT_S).text
    assert re.search(r"^radixlm_repairs_total 0(\.0)?$", metrics, re.MULTILINE)
    assert re.search(r"^radixlm_live_requests 0(\.0)?$", metrics, re.MULTILINE)
