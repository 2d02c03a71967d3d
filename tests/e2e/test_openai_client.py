"""The server with the real model, called by the real `openai` package and by instructor, over loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import instructor
import openai
import pytest
from http_server import Served, served
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel, Field

import radixlm

pytestmark = pytest.mark.model

HI: Any = [{"role": "user", "content": "Hi"}]
CITY_TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 12}},
            "required": ["city"],
        },
    },
}


class Person(BaseModel):
    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=150)


@pytest.fixture(scope="module")
def server(engine: radixlm.Engine) -> Iterator[Served]:
    with served(engine._runtime, served_name="smollm2") as server:
        yield server


@pytest.fixture(scope="module")
def api(server: Served) -> Iterator[OpenAI]:
    with OpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as api:
        yield api


def test_a_chat_is_answered_and_its_stream_says_the_same(api: OpenAI) -> None:
    question: Any = {"model": "smollm2", "messages": HI, "temperature": 0, "max_tokens": 12}
    whole = api.chat.completions.create(**question)
    assert whole.usage is not None
    assert 0 < whole.usage.completion_tokens <= 12
    assert whole.choices[0].message.content
    chunks = list(
        api.chat.completions.create(**question, stream=True, stream_options={"include_usage": True})
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens == whole.usage.completion_tokens
    assert usage.prompt_tokens_details is not None
    assert (usage.prompt_tokens_details.cached_tokens or 0) > 0  # the second time


def test_a_seed_repeats_an_answer_and_the_answer_tells_its_seed(api: OpenAI) -> None:
    def ask(seed: Any) -> Any:
        return api.chat.completions.create(
            model="smollm2", messages=HI, max_tokens=6, temperature=1.2, seed=seed, n=2
        )

    first = ask(openai.omit)
    seed = first.model_extra["radixlm"]["seed"]
    again = ask(seed)
    texts = [[choice.message.content for choice in answer.choices] for answer in (first, again)]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 2


def test_log_probabilities_have_one_entry_per_token_of_the_text(api: OpenAI) -> None:
    answer = api.chat.completions.create(
        model="smollm2", messages=HI, temperature=0, max_tokens=6, logprobs=True, top_logprobs=2
    )
    (choice,) = answer.choices
    assert choice.logprobs is not None
    content = choice.logprobs.content or []
    assert "".join(entry.token for entry in content) == choice.message.content
    assert b"".join(bytes(e.bytes or []) for e in content).decode() == choice.message.content
    assert all(entry.logprob <= 0 for entry in content)
    for entry in content:  # greedy: the chosen one is the best
        assert entry.top_logprobs[0].token == entry.token
        assert entry.top_logprobs[0].logprob == pytest.approx(entry.logprob)
    assert answer.usage is not None
    assert len(content) == answer.usage.completion_tokens


def test_a_pydantic_model_is_filled_whole_and_streamed(api: OpenAI) -> None:
    question: Any = [{"role": "user", "content": "Invent a person, as JSON"}]
    parsed = api.chat.completions.parse(
        model="smollm2", messages=question, response_format=Person, max_tokens=60
    )
    assert isinstance(parsed.choices[0].message.parsed, Person)
    with api.chat.completions.stream(
        model="smollm2", messages=question, response_format=Person, max_tokens=60
    ) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, Person)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_weather"}}]
)
def test_a_required_call_comes_with_valid_arguments(api: OpenAI, choice: Any, stream: bool) -> None:
    question: Any = {
        "model": "smollm2", "messages": [{"role": "user", "content": "Weather in Seoul?"}],
        "tools": [CITY_TOOL], "tool_choice": choice, "max_tokens": 80, "parallel_tool_calls": False,
    }  # fmt: skip
    if stream:
        with api.chat.completions.stream(**question) as events:
            for _ in events:
                pass
            answer: Any = events.get_final_completion()
    else:
        answer = api.chat.completions.create(**question)
    (found,) = answer.choices
    assert found.finish_reason == "tool_calls"
    assert not found.message.content
    (call,) = found.message.tool_calls
    assert call.function.name == "get_weather"
    arguments = json.loads(call.function.arguments)
    assert set(arguments) == {"city"}
    assert len(arguments["city"]) <= 12


def test_the_turn_after_a_call_finds_the_prompt_and_the_call_in_the_cache(api: OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "What is the weather in Paris today?"}]
    question: Any = {"model": "smollm2", "tools": [CITY_TOOL], "max_tokens": 80}
    first = api.chat.completions.create(
        **question, messages=messages, tool_choice="required", parallel_tool_calls=False
    )
    assert first.usage is not None
    message = first.choices[0].message
    assert message.tool_calls
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Sunny"}
    history = [*messages, message.model_dump(), result]
    second = api.chat.completions.create(**question | {"max_tokens": 4}, messages=history)
    assert second.usage is not None
    assert second.usage.prompt_tokens_details is not None
    # the forced end of the call was never computed, so it is not there
    assert (second.usage.prompt_tokens_details.cached_tokens or 0) > first.usage.prompt_tokens


def test_an_agent_s_tools_and_its_answers_schema_go_together(api: OpenAI) -> None:
    answer = api.chat.completions.parse(
        model="smollm2",
        messages=[{"role": "user", "content": "Invent a person"}],
        tools=[{**CITY_TOOL, "function": {**CITY_TOOL["function"], "strict": True}}],
        response_format=Person,
        max_tokens=80,
    )
    message = answer.choices[0].message
    assert isinstance(message.parsed, Person) or message.tool_calls


def test_a_stop_string_of_several_tokens_never_leaks(api: OpenAI) -> None:
    chunks = api.chat.completions.create(
        model="smollm2", messages=HI, stream=True, stop=["STOPNOW", "\nObservation:"],
        extra_body={"regex": "one STOPX STOPNOW tail"},
    )  # fmt: skip
    choices = [chunk.choices[0] for chunk in chunks]
    assert "".join(choice.delta.content or "" for choice in choices) == "one STOPX "
    assert choices[-1].finish_reason == "stop"


def test_text_completions_echo_and_score_their_prompt(api: OpenAI) -> None:
    scored = api.completions.create(
        model="smollm2", prompt="The sky is blue", echo=True, logprobs=1, max_tokens=0
    )
    (choice,) = scored.choices
    logprobs = choice.logprobs
    assert choice.text == "The sky is blue"
    assert logprobs is not None
    assert "".join(logprobs.tokens or []) == choice.text
    assert (logprobs.token_logprobs or [0])[0] is None
    assert all(value <= 0 for value in (logprobs.token_logprobs or [])[1:])
    assert logprobs.text_offset == [
        len("".join((logprobs.tokens or [])[:count])) for count in range(len(logprobs.tokens or []))
    ]


def test_several_prompts_are_completed_in_order(api: OpenAI) -> None:
    answer = api.completions.create(
        model="smollm2", prompt=["A", "B", "C"], max_tokens=2, echo=True, temperature=0
    )
    assert [choice.text[0] for choice in answer.choices] == ["A", "B", "C"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
                "type": "object", "properties": {"a": {"type": "string", "pattern": "[unclosed"}}, "required": ["a"]}}}},
            "unsupported_schema", "response_format.json_schema.schema#/properties/a/pattern",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": []}}},
            "unsupported_schema", "response_format.json_schema.schema",
        ),
        ({"extra_body": {"regex": "(a"}}, "unsupported_schema", "regex"),
        ({"messages": [{"role": "user", "content": "word " * 20000}]}, "context_length_exceeded", "messages"),
        ({"messages": [{"role": "banana", "content": "Hi"}]}, "invalid_prompt", "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
         "invalid_prompt", "messages[0].content[0]"),
        ({"logit_bias": {"49999999": 1}}, "invalid_value", "logit_bias"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_400_with_its_place_and_the_next_request_is_answered(
    api: OpenAI, fields: dict[str, Any], code: str, param: str | None, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        api.chat.completions.create(
            **{"model": "smollm2", "messages": HI, "max_tokens": 4, "stream": stream, **fields}
        )
    assert (caught.value.code, caught.value.param) == (code, param)
    assert api.chat.completions.create(model="smollm2", messages=HI, max_tokens=1).choices


def test_a_client_that_leaves_frees_the_engine(api: OpenAI, engine: radixlm.Engine) -> None:
    stream = api.chat.completions.create(
        model="smollm2", messages=HI, stream=True, max_tokens=2000, extra_body={"ignore_eos": True}
    )
    next(stream)
    next(stream)
    stream.close()
    short = api.with_options(timeout=0.5)
    with pytest.raises(openai.APITimeoutError):
        short.chat.completions.create(
            model="smollm2", messages=HI, max_tokens=2000, extra_body={"ignore_eos": True}
        )
    deadline_s = time.monotonic() + 10
    while engine.stats()["running"] and time.monotonic() < deadline_s:
        time.sleep(0.02)
    assert engine.stats()["running"] == 0


def test_the_asynchronous_client_streams_several_answers_at_once(server: Served) -> None:
    import asyncio

    async def one(api: AsyncOpenAI, number: int) -> str:
        stream = await api.chat.completions.create(
            model="smollm2", messages=HI, stream=True, max_tokens=8, seed=number
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def main() -> list[str]:
        async with AsyncOpenAI(api_key="none", base_url=f"{server.url}/v1", max_retries=0) as api:
            return await asyncio.gather(*(one(api, number) for number in range(4)))

    assert all(asyncio.run(main()))


@pytest.mark.parametrize("mode", [instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA])
def test_instructor_gets_its_instance_whole_and_in_parts(
    api: OpenAI, mode: instructor.Mode
) -> None:
    client = instructor.from_openai(api, mode=mode)
    question: Any = {
        "model": "smollm2",
        "messages": [{"role": "user", "content": "Ada is 36 years old."}],
        "response_model": Person,
        "max_tokens": 60,
        "max_retries": 0,
    }
    assert isinstance(client.chat.completions.create(**question), Person)
    *_, last = client.chat.completions.create_partial(**question)
    assert Person.model_validate(last.model_dump())


def test_of_several_tools_one_that_the_grammar_refuses_costs_only_its_own_constraint(
    api: OpenAI,
) -> None:
    tools: Any = [
        {"type": "function", "function": {"name": f"t{number}", "parameters": {
            "type": "object", "properties": {"x": {"type": "string", "maxLength": 5}}, "required": ["x"]}}}
        for number in range(6)
    ]  # fmt: skip
    tools[4]["function"]["parameters"]["properties"]["x"]["pattern"] = r"(a)\1"
    question: Any = {"model": "smollm2", "messages": HI, "tools": tools, "max_tokens": 8}
    answer = api.chat.completions.create(**question)
    (warning,) = (answer.model_extra or {})["radixlm"]["warnings"]
    assert "t4" in warning
    tools[4]["function"]["strict"] = True
    with pytest.raises(openai.BadRequestError) as caught:
        api.chat.completions.create(**question)
    assert caught.value.param == "tools[4].function.parameters#/properties/x/pattern"
    assert "t4" in caught.value.message
