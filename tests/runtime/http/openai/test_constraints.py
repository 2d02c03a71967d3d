"""The spellings of a constraint, and that only one may be given."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from radixlm.errors import UserError
from radixlm.grammar.spec import Choice, Gbnf, JsonSchema, Lark, Regex
from radixlm.runtime.http.openai.bodies import ChatBody
from radixlm.runtime.http.openai.constraints import constraint_of

SCHEMA: Any = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"const": "é"}}}


def found(**fields: Any) -> tuple[Any, str] | None:
    constraint = constraint_of(msgspec.convert(fields, ChatBody))
    return None if constraint is None else (constraint.spec, constraint.field)


def test_no_constraint_is_the_default() -> None:
    assert found() is None
    assert found(response_format={"type": "text"}) is None
    assert found(structured_outputs={}) is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, "response_format.json_schema.schema"),
        ({"structured_outputs": {"json": SCHEMA}}, "structured_outputs.json"),
        ({"structured_outputs": {"json": json.dumps(SCHEMA)}}, "structured_outputs.json"),
        ({"guided_json": SCHEMA}, "guided_json"),
        ({"json_schema": json.dumps(SCHEMA)}, "json_schema"),
    ],
)  # fmt: skip
def test_a_schema_is_found_in_each_of_its_places_with_its_key_order(
    fields: dict[str, Any], field: str
) -> None:
    constraint = found(**fields)
    assert constraint is not None
    assert constraint[1] == field
    assert isinstance(constraint[0], JsonSchema)
    assert json.loads(constraint[0].text) == SCHEMA
    assert [*json.loads(constraint[0].text)["properties"]] == ["b", "a"]


@pytest.mark.parametrize(
    ("fields", "spec"),
    [
        ({"response_format": {"type": "json_object"}}, JsonSchema('{"type": "object"}')),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": "true", "any_order": True, "whitespace": "indented"},
                }
            },
            JsonSchema("true", any_order=True, whitespace="indented"),
        ),
        ({"structured_outputs": {"json_object": True}}, JsonSchema('{"type": "object"}')),
        ({"regex": "a+"}, Regex("a+")),
        ({"guided_regex": "a+"}, Regex("a+")),
        ({"structured_outputs": {"regex": "a+"}}, Regex("a+")),
        ({"choices": ["a", "b"]}, Choice(("a", "b"))),
        ({"guided_choice": ["a", "b"]}, Choice(("a", "b"))),
        ({"structured_outputs": {"choice": ["a", "b"]}}, Choice(("a", "b"))),
        ({"json_schema": True}, JsonSchema("true")),
        ({"grammar": 'root ::= "a"'}, Gbnf('root ::= "a"')),
        ({"grammar": 'start: "a"'}, Lark('start: "a"')),
        ({"ebnf": 'root ::= "a"'}, Gbnf('root ::= "a"')),
        ({"guided_grammar": 'start: "a"'}, Lark('start: "a"')),
        ({"structured_outputs": {"grammar": 'root ::= "a"'}}, Gbnf('root ::= "a"')),
        ({"response_format": {"type": "grammar", "grammar": 'start: "a"'}}, Lark('start: "a"')),
        ({"grammar": "", "regex": "a"}, Regex("a")),
    ],
)
def test_the_other_spellings(fields: dict[str, Any], spec: Any) -> None:
    constraint = found(**fields)
    assert constraint is not None
    assert constraint[0] == spec


def test_two_constraints_are_refused_by_both_names() -> None:
    with pytest.raises(UserError, match=r"response_format and regex") as caught:
        found(response_format={"type": "json_object"}, regex="a")
    assert caught.value.place == "regex"


def test_the_same_constraint_in_two_spellings_is_one() -> None:
    text = 'start: "a" | "b"'
    constraint = found(guided_grammar=text, structured_outputs={"grammar": text})
    assert constraint == (Lark(text), "structured_outputs.grammar")
