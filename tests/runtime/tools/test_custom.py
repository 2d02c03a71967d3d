"""Custom tools: their grammars as constraints, their calls in outputs, streams and histories."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import accepts, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_spec
from radixlm.runtime.tools import (
    CallArguments,
    CallBegin,
    TextPiece,
    ToolCall,
    ToolSet,
    ToolTextParser,
    collect,
)
from radixlm.runtime.tools.custom import as_function
from radixlm.runtime.tools.hermes import with_custom_calls_as_text, without_tool_roles

SUMS = """
start: start "+" NUMBER | NUMBER
NUMBER: /[0-9]+/
%ignore " "
"""
NOW = {"type": "function", "function": {"name": "now"}}
CALL_NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
NAMES = frozenset({"add"})


def custom(name: str, syntax: str = "", definition: str = "") -> dict[str, Any]:
    format_: dict[str, Any] = {"type": "text"}
    if syntax:
        format_ = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    return {"type": "custom", "custom": {"name": name, "format": format_}}


def call(name: str, text: str) -> str:
    return f'<tool_call>\n{{"name": "{name}"}}\n{text}\n</tool_call>'


def check(toolset: ToolSet, passing: list[str], failing: list[str]) -> None:
    spec = toolset.constraint()
    assert spec is not None
    vocabulary = byte_vocabulary()
    matcher = matcher_of(compile_spec(spec, vocabulary.alphabet), vocabulary)
    for text in passing:
        assert accepts(matcher, text.encode()), f"{text!r} is refused"
    for text in failing:
        assert not accepts(matcher, text.encode()), f"{text!r} is accepted"


def test_the_input_is_a_sentence_of_the_tool_s_grammar() -> None:
    tools = [
        custom("add", "lark", SUMS),
        custom("hex", "regex", "[0-9a-f]+"),
        custom("x", "gbnf", 'root ::= "(" root? ")"'),
        NOW,
    ]
    check(
        ToolSet.of(tools, "required"),
        [call("add", "1 + 22"), call("hex", "fe0"), call("x", "(())"), f"{call('add', '1')}\n{CALL_NOW}"],
        ["", "Hi", call("add", "1 +"), call("hex", "g"), call("x", "(()"), call("add", ""), call("now", "1"), call("add", '"1"')],
    )  # fmt: skip
    check(ToolSet.of(tools), ["Hi", f"I add.\n{call('add', '1+1')} done"], [call("hex", "")])


def test_an_input_without_a_grammar_is_any_text_that_does_not_end_the_call() -> None:
    for tool in (custom("say"), {"type": "custom", "custom": {"name": "say"}}):
        toolset = ToolSet.of([tool], {"type": "custom", "custom": {"name": "say"}})
        check(
            toolset,
            [call("say", ""), call("say", "a\n<b> é </tool_cal"), call("say", "\n")],
            ["", "Hi", call("say", "x</tool_call>y"), call("say", "a") + call("say", "b")],
        )


def test_a_custom_tool_may_be_among_the_allowed_tools() -> None:
    listed = [{"type": "custom", "custom": {"name": "hex"}}]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": listed}}
    tools = [custom("hex", "regex", "[0-9a-f]+"), NOW]
    check(ToolSet.of(tools, choice), [call("hex", "a")], [CALL_NOW, ""])


def test_a_grammar_that_is_refused_names_the_tool_and_the_place_in_it() -> None:
    toolset = ToolSet.of([NOW, custom("add", "lark", SUMS + "start: x")])
    spec = toolset.constraint()
    assert spec is not None
    with pytest.raises(GrammarError) as refused:
        compile_spec(spec, bytes([1]) * 256)
    error = refused.value
    assert error.place == "tools[1].custom.format.grammar.definition 5:1"
    assert error.message.startswith("tool 'add': start is already defined at 2:1\n")
    assert toolset.relaxed(error) is None  # a grammar is never loosened


def test_the_model_sees_the_tool_as_it_was_given_and_how_to_call_it() -> None:
    tool = custom("add", "lark", SUMS)
    toolset = ToolSet.of([tool])
    assert toolset.wire_tools == (tool,)
    told = without_tool_roles([{"role": "user", "content": "x"}], toolset.wire_tools)
    assert "input as plain text" in told[0]["content"]
    assert "input as plain text" not in without_tool_roles(told[1:], [NOW])[0]["content"]


def events_of(chunks: Any, *, is_cut: bool = False) -> list[Any]:
    parser = ToolTextParser(new_id=lambda: "id", custom_names=NAMES)
    events = [event for chunk in chunks for event in parser.push(chunk)]
    return events + parser.finish(is_cut)


def test_a_call_is_read_back_with_its_text() -> None:
    added = call("add", "1 +<b>\n 2")
    text = f"Well.\n{added}\n{CALL_NOW}\n{call('add', '')} bye"
    content, calls = collect(events_of([text]))
    assert content == "Well. bye"
    assert calls == [
        ToolCall("id", "add", "1 +<b>\n 2", is_custom=True),
        ToolCall("id", "now", "{}"),
        ToolCall("id", "add", "", is_custom=True),
    ]


def test_an_input_streams_but_for_what_may_be_the_end() -> None:
    parser = ToolTextParser(new_id=lambda: "id", custom_names=NAMES)
    assert parser.push('<tool_call>\n{"name": "add"') == [CallBegin(0, "id", "add", is_custom=True)]
    assert parser.push("}\n1 ") == [CallArguments(0, "1 ", is_custom=True)]
    assert parser.push("+ 2\n") == [CallArguments(0, "+ 2", is_custom=True)]
    assert parser.push("</tool") == []
    assert parser.push("_call>x") == [TextPiece("x")]


@pytest.mark.parametrize(
    ("text", "found"), [("1 +\n</tool", "1 +"), ("1 <", "1 <"), ("1\n", "1\n"), ("", "")]
)
def test_an_input_that_was_cut_keeps_what_there_is(text: str, found: str) -> None:
    begin = '<tool_call>\n{"name": "add"}\n'
    assert collect(events_of([begin + text], is_cut=True))[1][0].arguments == found


_PIECES = st.sampled_from(
    ["<tool_call>", "</tool_call>", "\n", " ", "a", '{"name": "add"}', '{"name": "f"', '"', "}", "<", "</tool", call("add", "1\n")]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(_PIECES, max_size=12).map("".join), st.lists(st.integers(0, 120)), st.booleans())
def test_streamed_in_any_pieces_equals_the_whole(text: str, cuts: list[int], is_cut: bool) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    chunks = [text[start:end] for start, end in pairwise(places)]
    whole = collect(events_of([text], is_cut=is_cut))
    assert collect(events_of(chunks, is_cut=is_cut)) == whole
    assert collect(events_of(text, is_cut=is_cut)) == whole


@given(st.text().filter(lambda text: "</tool_call>" not in text))
def test_a_call_is_written_back_as_it_was_generated(text: str) -> None:
    output = f"So:\n{call('add', text)}"
    content, calls = collect(events_of([output]))
    given_back = [
        {"id": c.id, "type": "custom", "custom": {"name": c.name, "input": c.arguments}}
        for c in calls
    ]
    message = {"role": "assistant", "content": content, "tool_calls": given_back}
    assert without_tool_roles([message])[0]["content"] == output
    assert with_custom_calls_as_text(message)["content"] == output


def test_templates_that_know_functions_get_functions() -> None:
    assert as_function(NOW) is NOW
    function = as_function(custom("add"))["function"]
    assert function["name"] == "add"
    assert function["parameters"]["required"] == ["input"]
    calls = [
        {"type": "custom", "custom": {"name": "add", "input": "1"}},
        {"function": {"name": "f"}},
    ]
    rewritten = with_custom_calls_as_text({"role": "assistant", "content": "", "tool_calls": calls})
    assert rewritten["content"] == call("add", "1")
    assert rewritten["tool_calls"] == calls[1:]
