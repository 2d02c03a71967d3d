"""Outputs into text and calls: what is found, and that it never depends on how the output was cut."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.runtime.tools import (
    CallArguments,
    CallBegin,
    TextPiece,
    ToolCall,
    ToolEvent,
    ToolTextParser,
    collect,
)

_CASES = Path(__file__).parents[4] / "shared" / "cases" / "cases.jsonl"


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def events_of(chunks: Iterable[str], *, is_cut: bool = False) -> list[ToolEvent]:
    numbers = count()
    parser = ToolTextParser(new_id=lambda: f"call_{next(numbers)}")
    events = [event for chunk in chunks for event in parser.push(chunk)]
    return events + parser.finish(is_cut)


def parsed(text: str, *, is_cut: bool = False) -> tuple[str | None, list[tuple[str, str]]]:
    """(content, [(name, arguments)]), the same for the text whole and character by character."""
    whole = collect(events_of([text], is_cut=is_cut))
    assert collect(events_of(text, is_cut=is_cut)) == whole
    content, calls = whole
    return content, [(c.name, c.arguments) for c in calls]


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ("", "", []),
        ("Hello.\n", "Hello.\n", []),
        (call("f", '{"a":1}'), None, [("f", '{"a":1}')]),
        (call("f", "{}"), None, [("f", "{}")]),
        (f"\n\n{call('f', '{}')}\n", None, [("f", "{}")]),
        (f"Wait.\n{call('f', '{}')}", "Wait.", [("f", "{}")]),
        (f"Wait.\n\n{call('f', '{}')}", "Wait.\n", [("f", "{}")]),
        (f"Wait.{call('f', '{}')}\nDone.", "Wait.\nDone.", [("f", "{}")]),
        (f"{call('g', '[1]')}\n{call('f', '{}')}", None, [("g", "[1]"), ("f", "{}")]),
        (call("f", '{"s": "{x{y\\"</tool_call>"}'), None, [("f", '{"s": "{x{y\\"</tool_call>"}')]),
        (call("f", '{"a": {"b": [1, {"c": 2}]}, "n": 10}'), None,
         [("f", '{"a": {"b": [1, {"c": 2}]}, "n": 10}')]),
        ("Use <tool or <tool_box> if a < b <tool_cal", "Use <tool or <tool_box> if a < b <tool_cal", []),
    ],
)  # fmt: skip
def test_text_and_calls_are_told_apart(
    text: str, content: str | None, calls: list[tuple[str, str]]
) -> None:
    assert parsed(text) == (content, calls)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('{"name":"f","parameters":{"a":1}}', ("f", '{"a":1}')),
        ('{"arguments": {"a": 1}, "name": "f"}', ("f", '{"a": 1}')),
        ('{"id": 7, "name": "f", "arguments": {}, "extra": {"name": "g"}}', ("f", "{}")),
        ('{"name": "f", "arguments": "{\\"a\\": 1}"}', ("f", '{"a": 1}')),
        ('{"name": "f", "arguments": null}', ("f", "{}")),
        ('{"name": "f"}', ("f", "{}")),
        ('{"name": "f", "arguments": {"a": 1}', ("f", '{"a": 1}')),
        ('{"name": "f\\u00e9", "arguments": {}}', ("fé", "{}")),
    ],
)
def test_bodies_that_no_grammar_wrote_are_understood_where_they_can_be(
    body: str, found: tuple[str, str]
) -> None:
    assert parsed(f"<tool_call>\n{body}\n</tool_call>") == (None, [found])


@pytest.mark.parametrize("body", ["", "hello", "{}", '{"name": 5}', '{"name": ""}', "[1]"])
def test_what_names_no_tool_stays_text_with_its_tags(body: str) -> None:
    text = f"See <tool_call>{body}</tool_call> there"
    assert parsed(text) == (text, [])


def test_a_call_that_was_not_ended_ends_where_the_next_one_begins() -> None:
    text = '<tool_call>{"name": "f", "arguments": {"a": 1}}\n' + call("g", "{}")
    assert parsed(text) == (None, [("f", '{"a": 1}'), ("g", "{}")])


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ('<tool_call>\n{"name": "f", "arguments": {"path": "a", "t": "hel', None,
         [("f", '{"path": "a", "t": "hel')]),
        ('<tool_call>\n{"name": "f", "argu', None, [("f", "")]),
        ('Hm.\n<tool_call>\n{"name": "f', 'Hm.\n<tool_call>\n{"name": "f', []),
        ("Hm <tool_c", "Hm <tool_c", []),
        (call("f", "{}")[:-3], None, [("f", "{}")]),
    ],
)  # fmt: skip
def test_a_cut_output_keeps_what_there_is_and_invents_nothing(
    text: str, content: str | None, calls: list[tuple[str, str]]
) -> None:
    assert parsed(text, is_cut=True) == (content, calls)


def test_a_call_begins_as_soon_as_its_name_is_known_and_arguments_stream() -> None:
    parser = ToolTextParser(new_id=lambda: "id")
    assert parser.push("Hi\n") == [TextPiece("Hi")]
    assert parser.push('<tool_call>\n{"name": "f"') == [CallBegin(0, "id", "f")]
    assert parser.push(', "arguments": {"a') == [CallArguments(0, '{"a')]
    assert parser.push('": 1}}') == [CallArguments(0, '": 1}')]
    assert parser.push("\n</tool_call>\nBye") == [TextPiece("\nBye")]
    assert parser.finish() == []
    assert parser.num_calls == 1


def test_ids_differ_and_indices_count_the_calls_of_the_output() -> None:
    parser = ToolTextParser()
    events = parser.push(call("f", "{}") + "\n" + call("f", "{}"))
    begins = [event for event in events if isinstance(event, CallBegin)]
    assert [begin.index for begin in begins] == [0, 1]
    assert begins[0].id != begins[1].id


def test_without_tools_everything_is_text_at_once() -> None:
    parser = ToolTextParser(is_active=False)
    assert parser.push("<tool_call>") == [TextPiece("<tool_call>")]
    assert parser.push("") == []
    assert parser.finish() == []


_PIECES = st.sampled_from(
    ["<tool_call>", "</tool_call>", "\n", " ", "a", '{"name": "f", "arguments": {"x": "<', '"}}', "<", "tool",
     '{"name": "g"', "}", ', "arguments": "{}"', "\\", '"', call("h", '{"é": [1]}')]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=12).map("".join), st.lists(st.integers(0, 120)), st.booleans())
def test_streamed_in_any_pieces_equals_the_whole(text: str, cuts: list[int], is_cut: bool) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    chunks = [text[start:end] for start, end in pairwise(places)]
    whole = collect(events_of([text], is_cut=is_cut))
    assert collect(events_of(chunks, is_cut=is_cut)) == whole
    assert collect(events_of(text, is_cut=is_cut)) == whole


@given(st.text(), st.dictionaries(st.text(), st.text() | st.integers() | st.booleans()), st.text())
def test_a_written_call_is_read_back_exactly(
    before: str, arguments: dict[str, Any], after: str
) -> None:
    text = json.dumps(arguments, ensure_ascii=False)
    content, calls = collect(events_of([f"x{before}.\n{call('f', text)}y{after}"]))
    assert calls == [ToolCall("call_0", "f", text)]
    assert content == f"x{before}.y{after}"


@pytest.mark.data
@pytest.mark.parametrize("output_format", ["hermes", "generic_fallback"])
def test_the_shared_cases_of_tool_text_hold(output_format: str) -> None:
    """A fallback for calls without tags is not offered: such text must stay as it is."""
    if not _CASES.exists():
        pytest.skip(f"{_CASES} is not there")
    rows = [json.loads(line) for line in _CASES.read_text().splitlines()]
    rows = [r for r in rows if r["kind"] == "T" and r["input"]["format"] == output_format]
    assert rows
    for row in rows:
        is_cut = row["input"].get("engine_finish") == "length"
        content, calls = parsed(row["input"]["output"], is_cut=is_cut)
        assert any(
            matches(content, calls, wanted)
            for wanted in (row["expect"], row["expect"].get("also_allowed"))
            if wanted
        ), (row["id"], content, calls)


def matches(content: str | None, calls: list[tuple[str, str]], wanted: dict[str, Any]) -> bool:
    partial = wanted.get("tool_calls_partial")
    if partial is not None:
        return calls == [(p["name"], p["arguments_prefix"]) for p in partial]
    found = [{"name": name, "arguments": _value(arguments)} for name, arguments in calls]
    same_text = " ".join((content or "").split()) == " ".join((wanted.get("content") or "").split())
    return found == wanted["tool_calls"] and same_text


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
