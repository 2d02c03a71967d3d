"""Conversations with tools in words that every chat template prints."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from radixlm.runtime.tools import ToolTextParser, collect
from radixlm.runtime.tools.hermes import without_tool_roles

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def calls_message(content: str, *calls: tuple[str, Any]) -> dict[str, Any]:
    listed = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    return {"role": "assistant", "content": content, "tool_calls": listed}


def test_results_in_a_row_share_one_message() -> None:
    results = [{"role": "tool", "content": "1"}, {"role": "function", "content": "2"}]
    assert without_tool_roles([*results, {"role": "user", "content": "x"}]) == [
        {
            "role": "user",
            "content": "<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>",
        },
        {"role": "user", "content": "x"},
    ]


def test_arguments_are_written_verbatim_and_values_as_json() -> None:
    (message,) = without_tool_roles(
        [calls_message("", ("f", '{"a":  1}'), ("g", {"b": "é"}), ("h", None), ("i", ""))]
    )
    assert message == {
        "role": "assistant",
        "content": '<tool_call>\n{"name": "f", "arguments": {"a":  1}}\n</tool_call>\n'
        '<tool_call>\n{"name": "g", "arguments": {"b": "é"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "h", "arguments": {}}\n</tool_call>\n'
        '<tool_call>\n{"name": "i", "arguments": {}}\n</tool_call>',
    }


def test_the_deprecated_function_call_is_a_call() -> None:
    legacy = {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}}
    (message,) = without_tool_roles([legacy])
    assert message["content"] == '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


def test_messages_without_tools_stay_as_they_are_and_arguments_are_not_changed() -> None:
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "U", "name": "u"}]
    assert without_tool_roles(messages) == messages
    told = without_tool_roles(messages, [TOOL])
    assert told[1:] == messages[1:]
    assert messages[0]["content"] == "S"


def test_tools_are_told_once_whoever_speaks_first() -> None:
    for first in ("system", "developer", "user", "assistant", "tool"):
        for has_system in (True, False):
            messages = [{"role": first, "content": "x"}, {"role": "user", "content": "y"}]
            told = without_tool_roles(messages, [TOOL], has_system=has_system)
            assert sum("<tools>" in message["content"] for message in told) == 1
            roles = {message["role"] for message in told}
            assert ("system" in roles) == (
                (has_system and first != "developer") or first == "system"
            )


@given(
    st.text(min_size=1).filter(lambda text: text.strip()),
    st.lists(
        st.sampled_from(['{"a":"x\\n"}', "{}", '{"b":[1,{"c":null}]}']), min_size=1, max_size=3
    ),
)
def test_an_output_s_calls_are_written_back_as_they_were_generated(
    content: str, arguments: list[str]
) -> None:
    """One line break before and between calls, as models write them: then the history is the output, to the character."""
    texts = [f'<tool_call>\n{{"name": "f", "arguments": {a}}}\n</tool_call>' for a in arguments]
    output = "\n".join([content, *texts])
    parser = ToolTextParser()
    found, calls = collect(parser.push(output) + parser.finish())
    message = calls_message(found or "", *((c.name, c.arguments) for c in calls))
    assert without_tool_roles([message])[0]["content"] == output
