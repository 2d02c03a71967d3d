"""Schemas: what validation accepts, refuses, and leaves to the grammar."""

from __future__ import annotations

from typing import Any

import pytest

from radixlm.errors import GrammarError, OutputError
from radixlm.lang.extraction.outline import outline, reminder
from radixlm.lang.extraction.target import Target


def test_an_error_names_the_place_in_the_value() -> None:
    target = Target.of({"properties": {"a": {"items": {"type": "integer"}}}})
    target.check({"a": [1]})
    with pytest.raises(OutputError) as caught:
        target.check({"a": [1, "x"]})
    assert caught.value.place == "/a/1"


def test_formats_are_checked() -> None:
    with pytest.raises(OutputError):
        Target.of({"format": "date"}).check("2024-02-30")


@pytest.mark.parametrize(
    "schema",
    [{"pattern": r"^\p{L}+$"}, {"patternProperties": {r"\p{L}": {"type": "integer"}}}],
)
def test_patterns_that_python_cannot_read_are_left_to_the_grammar(schema: dict[str, Any]) -> None:
    Target.of(schema).check("é")
    Target.of(schema).check({"é": 1})


def test_readable_patterns_are_checked() -> None:
    with pytest.raises(OutputError):
        Target.of({"pattern": "^a+$"}).check("b")


def test_references_are_followed_inside_the_schema_and_never_fetched() -> None:
    target = Target.of({"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer"}}})
    target.check(3)
    with pytest.raises(OutputError):
        target.check("3")
    with pytest.raises(GrammarError, match=r"example\.com"):
        Target.of({"$ref": "http://example.com/s.json"}).check(1)


def test_the_outline_names_fields_kinds_and_descriptions() -> None:
    schema = {
        "type": "object",
        "properties": {
            "who": {"type": "string", "description": "the  sender"},
            "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "mood": {"enum": ["good", "bad"]},
            "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        },
        "$defs": {"Line": {"type": "object", "properties": {"price": {"type": "number"}}}},
    }
    assert outline(schema) == (
        "- who (text)\n"
        "- when (text, date or null)\n"
        '- mood ("good" or "bad")\n'
        "- lines (list of: object)\n"
        "  - price (number)"
    )
    assert reminder(schema) == "Report as JSON: the sender (who), when, mood, lines."


def test_long_descriptions_stand_in_the_outline_and_the_reminder_stays_short() -> None:
    schema = {"properties": {"who": {"type": "string", "description": "the sender " * 60}}}
    assert "the sender" in outline(schema)
    assert reminder(schema) == "Report as JSON: who."
    assert reminder({"properties": {f"field_{n}": {} for n in range(200)}}) == ""
    assert reminder({"type": "array"}) == ""


def test_the_outline_of_a_recursive_schema_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert len(outline(node)) < 2000
