"""Tools over /v1/chat/completions as the real `openai` package sees them: calls, streams, limits, refused schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from chat_samples import CALL, HI, WEATHER, Post
from openai import AsyncOpenAI
from pydantic import BaseModel
from scripted_client import Script, ScriptedClient
from stream_reading import events_of

from radixlm.errors import GrammarError
from radixlm.grammar.spec import StructuralTag
from radixlm.runtime import messages as m


class Person(BaseModel):
    name: str
    age: int


def test_a_call_is_told_as_a_call_and_not_as_text(client: ScriptedClient, post: Post) -> None:
    client.answer = lambda _: Script(CALL)
    (choice,) = post(tools=[WEATHER]).json()["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    (call,) = choice["message"]["tool_calls"]
    assert call["type"] == "function"
    assert call["id"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "Seoul"}
    (asked,) = client.asked
    assert isinstance(asked.constraint, StructuralTag)
    chat = asked.segments[0]
    assert isinstance(chat, m.Chat)
    assert [tool["function"]["name"] for tool in chat.tools] == ["get_weather"]


@pytest.mark.parametrize("tokens_per_delta", [1, 2, 7, 1000])
def test_a_streamed_call_names_itself_once_and_first(
    client: ScriptedClient, post: Post, tokens_per_delta: int
) -> None:
    client.answer = lambda _: Script(f"Well.\n{CALL}")
    client.tokens_per_delta = tokens_per_delta
    chunks = events_of(post(tools=[WEATHER], stream=True).text)[:-1]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert calls[0]["index"] == 0
    assert calls[0]["type"] == "function"
    assert calls[0]["id"]
    assert calls[0]["function"] == {"name": "get_weather", "arguments": ""}
    assert all(set(call) == {"index", "function"} for call in calls[1:])
    assert all(set(call["function"]) == {"arguments"} for call in calls[1:])
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert json.loads(arguments) == {"city": "Seoul"}
    assert "".join(delta.get("content", "") for delta in deltas) == "Well."
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_the_stream_helper_puts_a_call_together(
    client: ScriptedClient, with_openai: Callable[..., Any]
) -> None:
    client.answer = lambda _: Script(
        CALL.replace("get_weather", "Person").replace('"city": "Seoul"', '"name": "Ada", "age": 36')
    )

    async def use(api: AsyncOpenAI) -> None:
        async with api.chat.completions.stream(
            model="m", messages=HI, tools=[openai.pydantic_function_tool(Person)]
        ) as stream:
            events = [event.type async for event in stream]
            final = await stream.get_final_completion()
        assert "tool_calls.function.arguments.done" in events
        (call,) = final.choices[0].message.tool_calls or []
        assert call.function.parsed_arguments == Person(name="Ada", age=36)

    with_openai(use)


def test_with_tool_choice_none_the_tools_are_not_shown_and_text_stays_text(
    client: ScriptedClient, post: Post
) -> None:
    client.answer = lambda _: Script("no " + CALL)
    (choice,) = post(tools=[WEATHER], tool_choice="none").json()["choices"]
    assert choice["message"]["content"] == "no " + CALL
    assert "tool_calls" not in choice["message"]
    assert client.asked[0].constraint is None
    assert client.asked[0].segments == (m.Chat(tuple(HI)),)


@pytest.mark.parametrize(
    ("script", "max_tokens", "reason"),
    [
        (Script("and then", has_end=False), 8, "length"),  # what max_tokens cut
        (Script("and then"), 9, "stop"),  # the model's own end, at the limit
        (Script("and then", has_end=False), None, "stop"),
        (Script("and then", stop="."), 8, "stop"),
        (Script("and then", reason="length"), 8, "length"),
    ],
)
def test_text_among_tools_ends_with_length_where_the_limit_cut_it(
    client: ScriptedClient, post: Post, script: Script, max_tokens: int | None, reason: str
) -> None:
    # free text is complete under its grammar at every place, so the engine calls all of these stopped
    client.answer = lambda _: script
    (choice,) = post(tools=[WEATHER], max_tokens=max_tokens).json()["choices"]
    assert choice["finish_reason"] == reason
    chunks = events_of(post(tools=[WEATHER], max_tokens=max_tokens, stream=True).text)[:-1]
    assert chunks[-1]["choices"][0]["finish_reason"] == reason


@pytest.mark.parametrize("text", ['{"name":"Ada"}', CALL])
def test_an_answer_under_a_schema_that_ends_at_the_limit_is_whole(
    client: ScriptedClient, post: Post, text: str
) -> None:
    # unlike free text it is complete at its end only: what the engine calls stopped is
    client.answer = lambda _: Script(text, has_end=False)
    fields: dict[str, Any] = {
        "tools": [WEATHER],
        "max_tokens": len(text),
        "response_format": {"type": "json_object"},
    }
    (choice,) = post(**fields).json()["choices"]
    assert choice["finish_reason"] == ("tool_calls" if text == CALL else "stop")
    chunks = events_of(post(**fields, stream=True).text)[:-1]
    assert chunks[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]


def test_the_arguments_that_are_relaxed_one_after_another_are_bounded(
    client: ScriptedClient, post: Post
) -> None:
    # each costs a compilation of all tools: a request must not ask for thousands
    def answer(asked: m.Generate) -> Script:
        place = f"tools[0].function.parameters#/properties/p{len(client.asked) - 1}"
        return Script(error=GrammarError("no", place=place))

    client.answer = answer
    properties = {f"p{number}": {"pattern": "x"} for number in range(40)}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}
    refused = post(tools=[tool])
    assert refused.status_code == 400
    assert refused.json()["error"]["param"].startswith("tools[0].function.parameters#/properties/p")
    assert 2 < len(client.asked) < 30


def test_a_tool_the_grammar_refuses_loses_its_constraint_and_the_answer_says_so(
    client: ScriptedClient, post: Post
) -> None:
    def answer(asked: m.Generate) -> Script:
        assert isinstance(asked.constraint, StructuralTag)
        if '"pattern"' in str(asked.constraint):
            place = "tools[0].function.parameters/properties/city/pattern"
            return Script(error=GrammarError("a lookahead", place=place))
        return Script(CALL)

    client.answer = answer
    tool: Any = json.loads(json.dumps(WEATHER))
    tool["function"]["parameters"]["properties"]["city"]["pattern"] = "(?=x)"
    for stream in (False, True):
        answered = post(tools=[tool], stream=stream)
        assert answered.status_code == 200
        extras = events_of(answered.text)[-2]["radixlm"] if stream else answered.json()["radixlm"]
        (warning,) = extras["warnings"]
        assert "get_weather" in warning
        assert "lookahead" in warning
    tool["function"]["strict"] = True
    refused = post(tools=[tool])
    assert refused.status_code == 400
    assert "tools[0].function.parameters" in refused.json()["error"]["param"]
