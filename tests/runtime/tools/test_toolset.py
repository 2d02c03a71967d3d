"""The tool fields of a request: what is read, what is refused and where, and which outputs they allow."""

from __future__ import annotations

from typing import Any

import pytest
from toy_vocabulary import accepts, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError, PromptError
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.spec import JsonSchema, Regex
from radixlm.runtime.tools import ToolSet, collect

ALPHABET = bytes([1]) * 256
ANSWER = JsonSchema('{"type":"object","properties":{"a":{"const":1}},"required":["a"]}')
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str, parameters: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


def custom(name: str, form: Any = None) -> dict[str, Any]:
    return {
        "type": "custom",
        "custom": {"name": name, **({} if form is None else {"format": form})},
    }


WEATHER = tool("get_weather", CITY, description="Weather of a city", strict=None)
NOW = tool("now")
CALL_WEATHER = '<tool_call>\n{"name": "get_weather", "arguments": {"city":"Oslo"}}\n</tool_call>'
CALL_NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


def check(toolset: ToolSet, passing: list[str], failing: list[str], answer: Any = None) -> None:
    spec = toolset.constraint(answer)
    assert spec is not None
    vocabulary = byte_vocabulary()
    matcher = matcher_of(compile_spec(spec, vocabulary.alphabet), vocabulary)
    for text in passing:
        assert accepts(matcher, text.encode()), f"{text!r} is refused"
    for text in failing:
        assert not accepts(matcher, text.encode()), f"{text!r} is accepted"


def test_auto_allows_text_with_calls_in_it() -> None:
    check(
        ToolSet.of([WEATHER, NOW], "auto"),
        ["", "Hi", CALL_NOW, f"Let me see.\n{CALL_WEATHER}\n{CALL_NOW}"],
        ["<tool_call>", CALL_WEATHER.replace("city", "town"), CALL_NOW.replace("{}}", '{"a":1}}')],
    )


def test_required_allows_calls_alone() -> None:
    check(
        ToolSet.of([WEATHER, NOW], "required"),
        [CALL_NOW, f"{CALL_WEATHER}\n{CALL_NOW}"],
        ["", "Hi", f" {CALL_NOW}", f"{CALL_NOW}\n"],
    )


def test_without_parallel_calls_there_is_at_most_one() -> None:
    check(
        ToolSet.of([WEATHER, NOW], None, parallel=False),
        ["Hi", f"So: {CALL_NOW}"],
        [CALL_NOW * 2, f"{CALL_NOW}\n{CALL_NOW}"],
    )
    check(ToolSet.of([NOW], "required", parallel=False), [CALL_NOW], [f"{CALL_NOW}\n{CALL_NOW}"])


def test_a_named_tool_is_called_once() -> None:
    named = {"type": "function", "function": {"name": "now"}}
    toolset = ToolSet.of([WEATHER, NOW], named, parallel=True)
    check(toolset, [CALL_NOW], ["", CALL_WEATHER, f"{CALL_NOW}\n{CALL_NOW}"])
    assert len(toolset.wire_tools) == 2


def test_allowed_tools_are_called_and_all_are_shown() -> None:
    allowed = {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "required",
            "tools": [{"type": "function", "function": {"name": "now"}}],
        },
    }
    toolset = ToolSet.of([WEATHER, NOW], allowed)
    check(toolset, [CALL_NOW, f"{CALL_NOW}\n{CALL_NOW}"], [CALL_WEATHER, ""])
    assert len(toolset.wire_tools) == 2
    allowed["allowed_tools"]["mode"] = "auto"  # type: ignore[index]
    check(ToolSet.of([WEATHER, NOW], allowed), ["Hi", CALL_NOW], [CALL_WEATHER])


def test_with_a_response_schema_there_are_calls_or_an_answer() -> None:
    check(ToolSet.of([NOW]), [CALL_NOW, '{"a":1}'], ["", "Hi", '{"a":1}' + CALL_NOW], ANSWER)
    check(ToolSet.of([NOW], "required"), [CALL_NOW], ['{"a":1}', ""], ANSWER)
    check(ToolSet.of([NOW]), [CALL_NOW, "aa"], ["", "b"], Regex("a+"))


@pytest.mark.parametrize(("tools", "choice"), [(None, None), ([], "auto"), ([NOW], "none")])
def test_without_tools_or_with_none_chosen_the_output_is_text(tools: Any, choice: Any) -> None:
    toolset = ToolSet.of(tools, choice)
    assert not toolset.is_active
    assert toolset.wire_tools == ()
    assert toolset.constraint() is None
    assert toolset.constraint(ANSWER) is ANSWER
    assert collect(toolset.parser().push(CALL_NOW)) == (CALL_NOW, [])


def test_the_model_sees_name_description_and_parameters() -> None:
    weather, now = ToolSet.of([WEATHER, NOW]).wire_tools
    function = {"name": "get_weather", "description": "Weather of a city", "parameters": CITY}
    assert weather == {"type": "function", "function": function}
    assert now["function"] == {"name": "now", "parameters": {"type": "object", "properties": {}}}


def test_text_that_the_token_limit_cuts_is_told_from_calls_that_end() -> None:
    assert ToolSet.of([NOW]).is_open_ended
    assert not ToolSet.of([NOW], "required").is_open_ended
    assert not ToolSet.of(None).is_open_ended


@pytest.mark.parametrize(
    ("tools", "choice", "place"),
    [
        ("x", None, "tools"),
        (["x"], None, "tools[0]"),
        ([{"type": "web_search"}], None, "tools[0].type"),
        ([{"type": "custom"}], None, "tools[0].custom"),
        ([{"type": "custom", "custom": {"name": "a b"}}], None, "tools[0].custom.name"),
        ([custom("x", 5)], None, "tools[0].custom.format"),
        ([custom("x", {"type": "json"})], None, "tools[0].custom.format.type"),
        ([custom("x", {"type": "grammar"})], None, "tools[0].custom.format.syntax"),
        ([custom("x", {"type": "grammar", "grammar": {"syntax": "abnf"}})], None,
         "tools[0].custom.format.grammar.syntax"),
        ([custom("x", {"type": "grammar", "grammar": {"syntax": "lark", "definition": 5}})], None,
         "tools[0].custom.format.grammar.definition"),
        ([NOW, custom("now")], None, "tools[1].custom.name"),
        ([NOW, custom("x")], {"type": "custom", "custom": {"name": "y"}}, "tool_choice.custom.name"),
        ([{"type": "function"}], None, "tools[0].function"),
        ([NOW, tool("")], None, "tools[1].function.name"),
        ([tool("a b")], None, "tools[0].function.name"),
        ([tool("é")], None, "tools[0].function.name"),
        ([tool("a" * 65)], None, "tools[0].function.name"),
        ([tool("a\n")], None, "tools[0].function.name"),
        ([{"type": "function", "function": {"name": 5}}], None, "tools[0].function.name"),
        ([NOW, NOW], None, "tools[1].function.name"),
        ([tool("f", "x")], None, "tools[0].function.parameters"),
        ([tool("f", {"type": "array"})], None, "tools[0].function.parameters.type"),
        ([tool("f", description=5)], None, "tools[0].function.description"),
        ([tool("f", strict="yes")], None, "tools[0].function.strict"),
        ([NOW], "always", "tool_choice"),
        ([NOW], 5, "tool_choice"),
        ([], "required", "tool_choice"),
        ([NOW], {"type": "custom"}, "tool_choice.custom"),
        ([NOW], {"type": "web_search"}, "tool_choice.type"),
        ([NOW], {"type": "function"}, "tool_choice.function"),
        ([NOW], {"type": "function", "function": {"name": "x"}}, "tool_choice.function.name"),
        ([NOW], {"type": "function", "function": {"name": ["now"]}}, "tool_choice.function.name"),
        ([], {"type": "function", "function": {"name": "x"}}, "tool_choice.function.name"),
        ([NOW], {"type": "allowed_tools"}, "tool_choice.allowed_tools"),
        ([NOW], {"type": "allowed_tools", "allowed_tools": {"mode": "x", "tools": []}},
         "tool_choice.allowed_tools.mode"),
        ([NOW], {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
         "tool_choice.allowed_tools.tools"),
        ([NOW], {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": ["now"]}},
         "tool_choice.allowed_tools.tools[0]"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(tools: Any, choice: Any, place: str) -> None:
    with pytest.raises(PromptError) as refused:
        ToolSet.of(tools, choice)
    assert refused.value.place == place


# ---------------------------------------------------------------------------------------------- refused schemas

EMAIL = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "pattern": r"^(\w+)@\1$"},
        "subject": {"type": "string"},
    },
    "required": ["to"],
}


def refusal_of(toolset: ToolSet) -> GrammarError:
    spec = toolset.constraint()
    assert spec is not None
    with pytest.raises(GrammarError) as refused:
        compile_spec(spec, ALPHABET)
    return refused.value


def test_a_schema_that_is_refused_names_the_tool_and_the_property() -> None:
    tools = [*(tool(f"t{number}", CITY) for number in range(29)), tool("send_email", EMAIL)]
    error = refusal_of(ToolSet.of(tools))
    assert "send_email" in error.message
    assert error.place.startswith("tools[29].function.parameters#/properties/to")


def test_a_relaxed_tool_takes_any_value_for_the_refused_argument_only() -> None:
    toolset = ToolSet.of([NOW, tool("mail", EMAIL)])
    relaxed = toolset.relaxed(refusal_of(toolset))
    assert relaxed is not None
    assert "mail" in relaxed.warning
    assert relaxed.toolset.wire_tools == toolset.wire_tools
    call = '<tool_call>\n{"name": "mail", "arguments": %s}\n</tool_call>'
    check(
        relaxed.toolset,
        [call % '{"to":"x","subject":"y"}', call % '{"to":[1]}'],
        [call % "{}", call % '{"to":"x","subject":1}'],
    )


def test_a_schema_refused_as_a_whole_is_relaxed_to_any_object() -> None:
    whole = {"type": "object", "properties": {"a": {}}, "minProperties": 9}
    toolset = ToolSet.of([tool("f", whole)], "required")
    relaxed = toolset.relaxed(refusal_of(toolset))
    assert relaxed is not None
    call = '<tool_call>\n{"name": "f", "arguments": {"b":[]}}\n</tool_call>'
    check(relaxed.toolset, [call], [call.replace('{"b":[]}', "5")])


def test_relaxing_ends() -> None:
    toolset = ToolSet.of([tool("f", EMAIL)])
    error = refusal_of(toolset)
    seen = 0
    while (relaxed := toolset.relaxed(error)) is not None:
        toolset = relaxed.toolset
        seen += 1
    assert 1 <= seen <= 3


def test_a_strict_tool_and_other_errors_are_not_relaxed() -> None:
    strict = ToolSet.of([tool("f", EMAIL, strict=True)])
    assert strict.relaxed(refusal_of(strict)) is None
    toolset = ToolSet.of([tool("f", EMAIL)])
    assert toolset.relaxed(PromptError("x", place="tools[0].function.parameters#/a")) is None
    assert toolset.relaxed(GrammarError("x", place="#/properties/to")) is None
