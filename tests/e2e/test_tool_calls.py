"""Tool calls on the real model: valid by grammar, a second turn that hits to the token, refusals that name the tool."""

from __future__ import annotations

import json
from typing import Any, cast

import jsonschema
import pytest

import radixlm
from radixlm.errors import GrammarError
from radixlm.runtime import messages as m
from radixlm.runtime.tools import ToolCall, ToolSet, collect

pytestmark = pytest.mark.model

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["city"],
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": "", "parameters": WEATHER},
    },
    {"type": "function", "function": {"name": "now"}},
]
NUM_FORCED_END = 16  # at most, of '}\n</tool_call>' and what closes the arguments
QUESTION = {"role": "user", "content": "What is the weather in Paris?"}


def answer(
    engine: radixlm.Engine, toolset: ToolSet, *messages: dict[str, Any], max_tokens: int = 48
) -> m.Finished:
    client = engine._client  # pyright: ignore[reportPrivateUsage]
    request = m.Generate(
        client.new_id("tools"),
        segments=(m.Chat(messages, toolset.wire_tools),),
        sampling=m.SamplingParams(max_tokens=max_tokens, temperature=0.0),
        constraint=toolset.constraint(),
    )
    return cast("m.Finished", client.request(request).result(60))


def calls_of(toolset: ToolSet, finished: m.Finished) -> list[ToolCall]:
    parser = toolset.parser()
    output = finished.outputs[0]
    return collect(parser.push(output.text) + parser.finish(output.finish_reason == "length"))[1]


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_weather"}}]
)
def test_a_demanded_call_is_valid_and_forced_where_nothing_else_can_come(
    engine: radixlm.Engine, choice: Any
) -> None:
    toolset = ToolSet.of(TOOLS, choice, parallel=False)
    finished = answer(engine, toolset, QUESTION)
    (call,) = calls_of(toolset, finished)
    assert call.name in ("get_weather", "now")
    if call.name == "get_weather":
        jsonschema.validate(json.loads(call.arguments), WEATHER)
    assert finished.outputs[0].finish_reason == "stop"
    assert finished.usage.forced_tokens > 5


def test_the_second_turn_hits_the_first_one_and_its_output(
    engine: radixlm.Engine,
) -> None:
    toolset = ToolSet.of(TOOLS, "required", parallel=False)
    first = answer(engine, toolset, QUESTION)
    (call,) = calls_of(toolset, first)
    function = {"name": call.name, "arguments": call.arguments}
    history = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call.id, "type": "function", "function": function}],
    }
    result = {"role": "tool", "tool_call_id": call.id, "content": "Sunny"}
    free = ToolSet.of(TOOLS)
    second = answer(engine, free, QUESTION, history, result, max_tokens=4)
    # The call's forced end was never computed: the grammar ended the output there.
    num_computed = first.usage.prompt_tokens + first.usage.completion_tokens - NUM_FORCED_END
    assert second.usage.cached_tokens >= num_computed


def test_free_text_with_tools_is_the_text_without_a_constraint(engine: radixlm.Engine) -> None:
    """At temperature 0 a model that does not call writes what it would write anyway."""
    toolset = ToolSet.of(TOOLS)
    constrained = answer(engine, toolset, QUESTION, max_tokens=12).outputs[0].text
    client = engine._client  # pyright: ignore[reportPrivateUsage]
    plain = m.Generate(
        client.new_id("tools"),
        segments=(m.Chat((QUESTION,), toolset.wire_tools),),
        sampling=m.SamplingParams(max_tokens=12, temperature=0.0),
    )
    free = cast("m.Finished", client.request(plain).result(60)).outputs[0].text
    if "<tool_call>" not in free:
        assert constrained == free


def test_a_refused_tool_is_named_and_the_relaxed_request_works(engine: radixlm.Engine) -> None:
    to = {"type": "string", "pattern": r"^(?<!a)x$"}
    mail = {"type": "object", "properties": {"to": to}, "required": ["to"]}
    toolset = ToolSet.of(
        [*TOOLS, {"type": "function", "function": {"name": "send", "parameters": mail}}]
    )
    with pytest.raises(GrammarError, match="send") as refused:
        answer(engine, toolset, QUESTION, max_tokens=4)
    assert refused.value.place.startswith("tools[2].function.parameters#/properties/to")
    relaxed = toolset.relaxed(refused.value)
    assert relaxed is not None
    assert answer(engine, relaxed.toolset, QUESTION, max_tokens=4).outputs[0].text
