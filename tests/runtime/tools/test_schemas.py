"""Argument schemas: closing narrows them, and leaves alone what it could contradict."""

from __future__ import annotations

import json
from typing import Any

import pytest

from radixlm.runtime.tools.schemas import arguments_schema, loosened


def made(parameters: dict[str, Any]) -> Any:
    return json.loads(arguments_schema(parameters).text)


def test_objects_with_declared_properties_are_closed_at_every_depth() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "integer"}}}
    closed = {**inner, "additionalProperties": False}
    parameters = {
        "properties": {
            "a": inner,
            "b": {"type": "array", "items": inner},
            "c": {"$ref": "#/$defs/d"},
        },
        "$defs": {"d": {"anyOf": [inner, {"type": "null"}]}},
    }
    found = made(parameters)
    assert found["type"] == "object"
    assert found["additionalProperties"] is False
    assert found["properties"] == {
        "a": closed,
        "b": {"type": "array", "items": closed},
        "c": {"$ref": "#/$defs/d"},
    }
    assert found["$defs"] == {"d": {"anyOf": [closed, {"type": "null"}]}}
    assert "additionalProperties" not in parameters["properties"]["a"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]},
        {"type": "object", "properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}]},
        {"type": "object", "properties": {"a": {"oneOf": [{"properties": {"b": {}}}, {}]}}},
        {"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}},
        {"type": "object", "properties": {"a": {}}, "minProperties": 2},
        {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": {}}, "dependentRequired": {"a": ["b"]}},
    ],
)  # fmt: skip
def test_schemas_that_closing_could_contradict_stay_as_they_are(parameters: dict[str, Any]) -> None:
    assert made(parameters) == parameters


def test_properties_named_like_keywords_are_properties() -> None:
    assert made({"properties": {"not": {"type": "string"}}})["additionalProperties"] is False


def test_the_order_of_properties_is_kept() -> None:
    names = ["z", "a", "m"]
    assert list(made({"properties": {name: {} for name in names}})["properties"]) == names


@pytest.mark.parametrize(
    ("pointer", "argument"),
    [
        ("#/properties/a~1b/pattern", {}),
        ("#/properties/a~1b", {}),
        ("#/properties/nothing/pattern", None),
        ("#/additionalProperties", None),
        ("#", None),
        ("", None),
    ],
)
def test_one_argument_is_loosened_where_the_pointer_leads_to_one(
    pointer: str, argument: dict[str, Any] | None
) -> None:
    parameters = {"type": "object", "properties": {"a/b": {"pattern": "x"}, "c": {"type": "null"}}}
    found = loosened(parameters, pointer)
    if argument is None:
        assert found == {"type": "object"}
    else:
        assert found["properties"] == {"a/b": argument, "c": {"type": "null"}}
