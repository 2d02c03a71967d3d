"""The normal form: complements, how few shapes are left, and what best effort leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from schema_checks import ok, refused

from radixlm.errors import GrammarError
from radixlm.grammar.expr import Limits
from radixlm.grammar.frontends.json_schema.document import Document
from radixlm.grammar.frontends.json_schema.normal import Normaliser
from radixlm.grammar.frontends.json_schema.shape import Atom, Shape
from radixlm.grammar.frontends.json_schema.source import parse


def normaliser_of(schema: Any, *, is_best_effort: bool = False) -> Normaliser:
    limits = Limits()
    document = Document(parse(json.dumps(schema), limits))
    return Normaliser(document, limits, is_best_effort=is_best_effort)


def shapes_of(schema: Any) -> tuple[Shape, ...]:
    normaliser = normaliser_of(schema)
    return normaliser.shapes((Atom(normaliser.document.root, True),))


COMPLEMENTS = {
    "propertyNames": ({"type": "object", "not": {"propertyNames": {"pattern": "^a"}}}, ['{"b":1}', '{"a":1,"b":2}'], ["{}", '{"a":1}']),
    "propertyNames: false": ({"type": "object", "not": {"propertyNames": False}}, ['{"a":1}'], ["{}"]),
    "propertyNames of an enum": ({"type": "object", "not": {"propertyNames": {"enum": ["a", "b"]}}}, ['{"c":1}', '{"a":1,"ab":2}'], ["{}", '{"a":1,"b":2}']),
    "items behind a prefix": ({"type": "array", "not": {"prefixItems": [True], "items": {"type": "integer"}}}, ['[1,"a"]', '["a",2,"b"]'], ["[]", '["a"]', '["a",1]']),
    "a reference": ({"$defs": {"n": {"type": "null"}}, "not": {"$ref": "#/$defs/n"}}, ["1"], ["null"]),
    "a dynamic reference": ({"$defs": {"n": {"$dynamicAnchor": "n", "type": "null"}}, "not": {"$dynamicRef": "#n"}}, ["1"], ["null"]),
    "oneOf": ({"not": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]}}, ["3", '"a"', "1.5"], ["1", "2.5"]),
    "a condition": ({"type": "integer", "not": {"if": {"minimum": 5}, "then": {"maximum": 7}, "else": {"maximum": 3}}}, ["4", "8"], ["3", "6"]),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEMENTS)
def test_complements(name: str):
    schema, passing, failing = COMPLEMENTS[name]
    ok(schema, passing, failing)


def test_the_complement_of_unique_items_is_refused():
    refused({"not": {"uniqueItems": True}}, "uniqueItems", "#/not/uniqueItems")


def test_tagged_branches_need_no_complements():
    branches = [{"properties": {"k": {"const": i}, "v": {"minimum": i}}} for i in range(50)]
    found = shapes_of({"type": "object", "required": ["k"], "oneOf": branches})
    assert len(found) == 50
    assert not any(shape.some_property for shape in found)


def test_alternatives_that_exclude_each_other_are_not_multiplied():
    def alternatives(name: str) -> dict[str, Any]:
        return {"anyOf": [{"properties": {"k": {"const": i}}, "required": ["k", f"{name}{i}"]} for i in range(12)]}  # fmt: skip

    found = shapes_of({"type": "object", "allOf": [alternatives(name) for name in "abcdef"]})
    assert len(found) == 12


def test_conditions_on_one_tag_are_not_multiplied():
    conditions = [
        {"if": {"properties": {"k": {"const": i}}, "required": ["k"]}, "then": {"required": [f"v{i}"]}}
        for i in range(14)
    ]  # fmt: skip
    assert len(shapes_of({"type": "object", "allOf": conditions})) < 40


def test_shapes_that_only_ask_for_more_presence_are_dropped():
    found = shapes_of({"type": "object", "anyOf": [{"required": ["a", "b"]}, {"required": ["a"]}]})
    assert [list(shape.required) for shape in found] == [["a"]]


def test_absent_names_are_no_rules():
    (first, second) = shapes_of({"type": "object", "dependentRequired": {"a": ["b"]}})
    assert list(first.absent) == ["a"]
    assert list(second.required) == ["a", "b"]
    assert first.presence_key() == second.presence_key()


def test_a_name_that_must_and_must_not_come_leaves_no_object():
    (found,) = shapes_of({"type": ["object", "null"], "required": ["a"], "not": {"required": ["a"], "type": "object"}})  # fmt: skip
    assert found.kinds == 1  # null is left


def test_best_effort_leaves_out_what_cannot_be_enforced_and_says_so():
    normaliser = normaliser_of(
        {
            "type": "object",
            "properties": {"a": {"type": "string", "pattern": "(a)\\1"}, "f": {"format": "zip"}},
            "not": {"uniqueItems": True},
        },
        is_best_effort=True,
    )
    root = normaliser.document.root
    (shape,) = normaliser.shapes((Atom(root, True),))
    for what in shape.property_rules[0].named.values():
        (below,) = normaliser.shapes(what)
        assert not below.languages
    places = [(place, keyword) for place, keyword, _ in normaliser.left_out]
    assert places == [("#/not/uniqueItems", "uniqueItems"), ("#/properties/a/pattern", "pattern")]
    assert normaliser.unasserted == [("#/properties/f/format", "zip")]


def test_best_effort_takes_unknown_constraints_as_annotations_and_says_so():
    normaliser = normaliser_of(
        {"divisibleBy": 3, "additonalProperties": False}, is_best_effort=True
    )
    (shape,) = normaliser.shapes((Atom(normaliser.document.root, True),))
    assert shape.property_rules == []
    assert [keyword for _, keyword, _ in normaliser.left_out] == [
        "divisibleBy",
        "additonalProperties",
    ]


def test_best_effort_does_not_excuse_wrong_values():
    normaliser = normaliser_of({"minLength": "3"}, is_best_effort=True)
    with pytest.raises(GrammarError, match="minLength must be"):
        normaliser.shapes((Atom(normaliser.document.root, True),))
