"""/v1/chat/completions as the real `openai` package and plain HTTP see it, over scripted outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest
from chat_samples import HI, WEATHER, Post
from openai import AsyncOpenAI
from pydantic import BaseModel
from scripted_client import Script, ScriptedClient
from stream_reading import events_of

from radixlm.errors import ContextOverflow, EngineDied, GrammarError, Overloaded
from radixlm.grammar.spec import JsonSchema, Regex
from radixlm.runtime import messages as m


class Person(BaseModel):
    name: str
    age: int


def test_a_whole_answer_reads_as_openais_own(
    client: ScriptedClient, with_openai: Callable[..., Any]
) -> None:
    async def use(api: AsyncOpenAI) -> None:
        answer = await api.chat.completions.create(model="m", messages=HI)
        assert answer.object == "chat.completion"
        assert answer.id.startswith("chatcmpl-")
        (choice,) = answer.choices
        assert (choice.index, choice.finish_reason, choice.logprobs) == (0, "stop", None)
        assert (choice.message.role, choice.message.content) == ("assistant", "Hello")
        assert choice.message.tool_calls is None
        usage = answer.usage
        assert usage is not None
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
        assert usage.prompt_tokens_details is not None
        assert usage.prompt_tokens_details.cached_tokens == 2

    with_openai(use)
    (asked,) = client.asked
    assert asked.segments == (m.Chat(({"role": "user", "content": "Hi"},)),)
    assert asked.sampling.temperature == 1.0  # OpenAI's default, not the engine's
    assert not asked.stream


def test_a_stream_has_one_head_one_role_one_end_and_no_nulls_in_its_deltas(post: Post) -> None:
    answer = post(stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, done = events_of(answer.text)
    assert done == "[DONE]"
    assert len({(chunk["id"], chunk["created"], chunk["object"]) for chunk in chunks}) == 1
    assert chunks[0]["object"] == "chat.completion.chunk"
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [choice["delta"].get("role") for choice in choices] == [
        "assistant",
        *[None] * (len(chunks) - 1),
    ]
    assert all(value is not None for choice in choices for value in choice["delta"].values())
    assert [choice["finish_reason"] for choice in choices] == [*[None] * (len(chunks) - 1), "stop"]
    assert "".join(choice["delta"].get("content", "") for choice in choices) == "Hello"
    assert "usage" not in str(chunks)


def test_the_usage_chunk_comes_last_and_alone_when_asked_for(post: Post) -> None:
    *_, finish, usage, done = events_of(
        post(stream=True, stream_options={"include_usage": True}).text
    )
    assert done == "[DONE]"
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] > 0
    assert usage["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}
    assert "usage" not in finish


def test_characters_of_several_bytes_are_never_cut(client: ScriptedClient, post: Post) -> None:
    client.answer = lambda _: Script("aé😀ü" * 3)
    client.tokens_per_delta = 1
    pieces = [
        chunk["choices"][0]["delta"].get("content", "")
        for chunk in events_of(post(stream=True).text)[:-1]
    ]
    assert "".join(pieces) == "aé😀ü" * 3
    assert "\ufffd" not in "".join(pieces)


def test_each_of_n_choices_is_streamed_under_its_index(client: ScriptedClient, post: Post) -> None:
    texts = iter(["one", "two", "three"])
    client.answer = lambda _: Script(next(texts))
    chunks = events_of(post(stream=True, n=3).text)[:-1]
    found = {0: "", 1: "", 2: ""}
    for chunk in chunks:
        (choice,) = chunk["choices"]
        found[choice["index"]] += choice["delta"].get("content", "")
    assert found == {0: "one", 1: "two", 2: "three"}


def test_logprobs_stand_in_the_chat_shape_whole_and_streamed_alike(
    client: ScriptedClient, post: Post
) -> None:
    client.answer = lambda _: Script("aé.")
    whole = post(logprobs=True, top_logprobs=2).json()["choices"][0]["logprobs"]
    assert [entry["token"] for entry in whole["content"]] == ["a", "\ufffd", "\ufffd", "."]
    assert whole["content"][0] == {
        "token": "a",
        "logprob": -0.5,
        "bytes": [97],
        "top_logprobs": [
            {"token": "a", "logprob": -0.5, "bytes": [97]},
            {"token": "b", "logprob": -1.5, "bytes": [98]},
        ],
    }
    chunks = events_of(post(logprobs=True, top_logprobs=2, stream=True).text)[:-1]
    streamed = [
        entry
        for chunk in chunks
        for entry in (chunk["choices"][0].get("logprobs") or {}).get("content", [])
    ]
    assert streamed == whole["content"]


def test_logprobs_without_alternatives_have_empty_lists(post: Post) -> None:
    content = post(logprobs=True).json()["choices"][0]["logprobs"]["content"]
    assert [entry["top_logprobs"] for entry in content] == [[]] * 5


def test_the_tokens_of_a_stop_string_are_in_neither_text_nor_logprobs(
    client: ScriptedClient, post: Post
) -> None:
    client.answer = lambda _: Script("one ", stop="STOP", hidden=b"STOP")
    client.tokens_per_delta = 5
    choice = post(logprobs=True, stop=["STOP"]).json()["choices"][0]
    assert (choice["message"]["content"], choice["stop_reason"]) == ("one ", "STOP")
    assert len(choice["logprobs"]["content"]) == 4
    chunks = events_of(post(logprobs=True, stop=["STOP"], stream=True).text)[:-1]
    told = [c["choices"][0].get("logprobs", {}).get("content", []) for c in chunks]
    assert sum(map(len, told)) == 4


# ---------------------------------------------------------------------------------------------- constraints


def test_a_pydantic_model_is_parsed_from_whole_and_streamed_answers(
    client: ScriptedClient, with_openai: Callable[..., Any]
) -> None:
    client.answer = lambda _: Script('{"name":"Ada","age":36}')

    async def use(api: AsyncOpenAI) -> None:
        parsed = await api.chat.completions.parse(model="m", messages=HI, response_format=Person)
        assert parsed.choices[0].message.parsed == Person(name="Ada", age=36)
        async with api.chat.completions.stream(
            model="m", messages=HI, response_format=Person
        ) as stream:
            kinds = [event.type async for event in stream]
            final = await stream.get_final_completion()
        assert "content.delta" in kinds
        assert "content.done" in kinds
        assert final.choices[0].message.parsed == Person(name="Ada", age=36)

    with_openai(use)
    for asked in client.asked:
        assert isinstance(asked.constraint, JsonSchema)
        assert json.loads(asked.constraint.text)["required"] == ["name", "age"]


def test_a_refused_schema_is_a_400_that_names_field_and_place_in_both_modes(
    client: ScriptedClient, post: Post
) -> None:
    client.answer = lambda _: Script(error=GrammarError("no such thing", place="#/properties/a"))
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
    for stream in (False, True):
        answer = post(response_format=schema, stream=stream)
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert error["code"] == "unsupported_schema"
        assert error["param"] == "response_format.json_schema.schema#/properties/a"


# ---------------------------------------------------------------------------------------------- refusals and failures


def test_every_field_nobody_knows_is_named_in_header_and_body(post: Post) -> None:
    answer = post(top_a=0.5, verbosity="low", stream_options={"x": 1})
    assert answer.status_code == 200
    assert answer.headers["x-radixlm-ignored-fields"] == "top_a, stream_options.x, verbosity"
    assert answer.json()["radixlm"]["ignored_fields"] == ["top_a", "stream_options.x", "verbosity"]
    streamed = events_of(post(top_a=0.5, stream=True).text)
    assert streamed[-2]["radixlm"]["ignored_fields"] == ["top_a"]


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"model": "other"}, 404, "model"),
        ({"messages": []}, 400, "messages"),
        ({"messages": None}, 400, "messages"),
        ({"messages": "Hi"}, 400, "messages"),
        ({"messages": [{"role": "user", "content": "x", "audio": {"id": "a"}}]}, 400, "messages[0].audio"),
        ({"temperature": -1}, 400, "temperature"),
        ({"temperature": "warm"}, 400, "temperature"),
        ({"max_completion_tokens": -1}, 400, "max_completion_tokens"),
        ({"max_tokens": -1}, 400, "max_tokens"),
        ({"n": 0}, 400, "n"),
        ({"top_logprobs": 2}, 400, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 101}, 400, "top_logprobs"),
        ({"stop": ["a", ""]}, 400, "stop"),
        ({"stop": [1]}, 400, "stop[0]"),
        ({"logit_bias": {"x": 1}}, 400, "logit_bias"),
        ({"logit_bias": {"1": 5000}}, 400, "logit_bias"),
        ({"min_tokens": 5, "max_tokens": 2}, 400, "min_tokens"),
        ({"response_format": {"type": "yaml"}}, 400, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, 400, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, 400, "response_format.json_schema.schema"),
        ({"regex": "a", "choices": ["b"]}, 400, "choices"),
        ({"audio": {"voice": "x"}}, 400, "audio"),
        ({"modalities": ["text", "audio"]}, 400, "modalities"),
        ({"functions": [{"name": "f"}]}, 400, "functions"),
        ({"function_call": {"name": "f"}}, 400, "function_call"),
        ({"moderation": {"model": "x"}}, 400, "moderation"),
        ({"store": True}, 400, "store"),
        ({"web_search_options": {}}, 400, "web_search_options"),
        ({"ebnf": "root ::= x", "grammar": "start: x"}, 400, "ebnf"),
        ({"structured_outputs": {"structural_tag": "x"}}, 400, "structured_outputs.structural_tag"),
        ({"response_format": {"type": "grammar"}}, 400, "response_format.grammar"),
        ({"tools": [{"type": "web_search"}]}, 400, "tools[0].type"),
        ({"tools": [{"type": "custom", "custom": {"name": "x", "format": {"type": "y"}}}]}, 400, "tools[0].custom.format.type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "f"}}}, 400, "tool_choice.function.name"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_with_its_field(
    client: ScriptedClient, post: Post, fields: dict[str, Any], status: int, param: str
) -> None:
    for stream in (False, True):
        answer = post(**fields, stream=stream)
        assert answer.status_code == status
        error = answer.json()["error"]
        assert error["param"] == param
        assert error["message"]
        assert set(error) == {"message", "type", "param", "code"}
    assert client.asked == []


def test_null_is_the_same_as_absent_for_every_field(client: ScriptedClient, post: Post) -> None:
    from radixlm.runtime.http.openai.bodies import ChatBody

    nulls = {name: None for name in ChatBody.__struct_fields__ if name not in ("messages", "model")}
    assert post(**nulls).status_code == 200
    assert post().status_code == 200
    first, second = client.asked
    assert (first.sampling, first.constraint, first.segments) == (
        second.sampling, second.constraint, second.segments,
    )  # fmt: skip


def test_an_error_after_the_first_text_is_a_frame_that_ends_the_stream(
    client: ScriptedClient, post: Post
) -> None:
    client.answer = lambda _: Script("a long text", error=EngineDied("it died"), fails_after=6)
    answer = post(stream=True)
    assert answer.status_code == 200
    events = events_of(answer.text)
    assert "choices" in events[-2]
    assert events[-1]["error"]["code"] == "engine_died"
    assert "[DONE]" not in answer.text


def test_a_full_queue_is_a_429_that_the_client_may_try_again(
    client: ScriptedClient, with_openai: Callable[..., Any]
) -> None:
    client.answer = lambda _: Script(error=Overloaded("full"))

    async def use(api: AsyncOpenAI) -> None:
        with pytest.raises(openai.RateLimitError, match="full"):
            await api.chat.completions.create(model="m", messages=HI)

    with_openai(use)


def test_regex_and_choices_are_constraints_of_their_own(client: ScriptedClient, post: Post) -> None:
    assert post(regex="[ab]+").status_code == 200
    assert post(structured_outputs={"regex": "[ab]+"}).status_code == 200
    assert [asked.constraint for asked in client.asked] == [Regex("[ab]+")] * 2


def test_a_long_salt_costs_no_memory_in_the_cache(client: ScriptedClient, post: Post) -> None:
    post(cache_salt="a" * 100_000)
    post(cache_salt="a" * 100_001)
    first, second = (asked.namespace for asked in client.asked)
    assert first != second
    assert len(first) < 100


def test_a_prompt_that_is_refused_is_named(client: ScriptedClient, post: Post) -> None:
    client.answer = lambda _: Script(error=ContextOverflow("too long"))
    for stream in (False, True):
        error = post(stream=stream).json()["error"]
        assert (error["param"], error["code"]) == ("messages", "context_length_exceeded")


def test_callers_with_different_salts_share_no_cache(client: ScriptedClient, post: Post) -> None:
    post(cache_salt="a")
    post(cache_salt="b")
    post()
    assert len({asked.namespace for asked in client.asked}) == 3


def test_the_lengths_of_chunks_are_blurred_when_asked_for(
    client: ScriptedClient, post: Post
) -> None:
    client.answer = lambda _: Script("some words of different lengths")
    client.tokens_per_delta = 4
    text = post(stream=True, stream_options={"include_obfuscation": True}).text
    frames = [frame for frame in text.split("\n\n") if frame.startswith("data: {")]
    sizes = {len(frame.removeprefix("data: ").encode()) % 64 for frame in frames}
    assert sizes == {0}
    assert all("obfuscation" in json.loads(frame.removeprefix("data: ")) for frame in frames)
