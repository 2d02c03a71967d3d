"""The values of parts become one: the stated rule, and the promise that the result satisfies the schema."""

from __future__ import annotations

from typing import Any

import pytest

from radixlm.errors import ConfigError
from radixlm.lang.extraction.merging import first_telling, merge_rule
from radixlm.lang.extraction.target import Target

OBJECT: dict[str, Any] = {"type": "object"}


def union(values: list[Any], schema: dict[str, Any] = OBJECT) -> Any:
    return merge_rule("union", Target.of(schema))(values)


@pytest.mark.parametrize(
    ("values", "merged"),
    [
        ([{"a": None}, {"a": 3}, {"a": 4}], {"a": 3}),
        ([{"a": ""}, {"a": " "}, {"a": "x"}], {"a": "x"}),
        ([{"a": ""}, {"a": None}], {"a": ""}),
        ([{"a": [1, {"b": 2}]}, {"a": [{"b": 2}, 3, 1]}], {"a": [1, {"b": 2}, 3]}),
        ([{"a": False}, {"a": True}, {"a": False}], {"a": True}),
        ([{"a": 0}, {"a": 7}], {"a": 0}),
        ([{"a": {"x": 1}}, {"a": {"y": 2}, "b": 3}], {"a": {"x": 1, "y": 2}, "b": 3}),
        ([{"a": "x"}, {"a": ["y"]}], {"a": "x"}),
        ([None, None], None),
        ([1, 1.0], 1),
    ],
)
def test_union_takes_what_each_part_says(values: list[Any], merged: Any) -> None:
    assert union(values, {}) == merged


def test_lists_are_cut_at_the_most_the_schema_allows_also_behind_a_reference() -> None:
    schema = {
        "type": "object",
        "properties": {"tags": {"$ref": "#/$defs/Tags"}},
        "$defs": {"Tags": {"type": "array", "maxItems": 3}},
    }
    assert union([{"tags": [1, 2]}, {"tags": [2, 3, 4]}], schema) == {"tags": [1, 2, 3]}


def test_alternatives_that_do_not_mix_stay_as_the_first_part_has_them() -> None:
    cat = {"properties": {"kind": {"const": "cat"}, "lives": {}}, "additionalProperties": False}
    dog = {"properties": {"kind": {"const": "dog"}, "tricks": {}}, "additionalProperties": False}
    schema = {
        "type": "object",
        "properties": {"pet": {"oneOf": [cat, dog]}, "names": {"type": "array"}},
    }
    first = {"pet": {"kind": "cat", "lives": 9}, "names": ["Tom"]}
    second = {"pet": {"kind": "dog", "tricks": 2}, "names": ["Rex"]}
    assert union([first, second], schema) == {**first, "names": ["Tom", "Rex"]}


def test_properties_come_in_the_schemas_order() -> None:
    schema = {"properties": {"a": {}, "b": {}, "c": {}}}
    assert list(union([{"c": 1}, {"a": 1, "z": 1}, {"b": 1}], schema)) == ["a", "b", "c", "z"]


def test_first_takes_the_first_part_that_says_something() -> None:
    assert first_telling([None, "", [], {}, 0, 5]) == 0
    assert first_telling([None, ""]) is None


def test_a_function_is_a_rule_and_another_name_is_refused() -> None:
    assert merge_rule(max, Target.of(OBJECT)) is max
    with pytest.raises(ConfigError, match="union, first"):
        merge_rule("last", Target.of(OBJECT))
