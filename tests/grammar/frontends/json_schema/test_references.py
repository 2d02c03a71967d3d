"""References: drafts, resources, anchors, and the dynamic scope."""

from __future__ import annotations

from typing import Any

import pytest
from schema_checks import ok, refused

_D4 = "http://json-schema.org/draft-04/schema#"
_D7 = "http://json-schema.org/draft-07/schema#"
_D2019 = "https://json-schema.org/draft/2019-09/schema"
_TREE = {
    "$id": "tree",
    "type": "object",
    "properties": {"d": True},
}

CASES: dict[str, tuple[Any, list[str], list[str]]] = {
    "the outermost dynamic anchor in scope counts": (
        {"$id": "http://x.org/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False,
         "$defs": {"t": {**_TREE, "$dynamicAnchor": "node", "properties": {"d": True, "c": {"type": "array", "items": {"$dynamicRef": "#node"}}}}}},
        ['{"d":1,"c":[{"d":2,"c":[]}]}'], ['{"c":[1]}', '{"c":[{"e":1}]}', '{"e":1}'],
    ),
    "a list of one sort": (
        {"$id": "http://x.org/strings", "$ref": "list", "$defs": {"s": {"$dynamicAnchor": "item", "type": "string"},
         "l": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"}, "$defs": {"any": {"$dynamicAnchor": "item"}}}}},
        ["[]", '["a"]'], ["[1]"],
    ),
    "the same list under two scopes": (
        {"$id": "http://x.org/two", "type": "object", "properties": {"n": {"$ref": "numbers"}, "s": {"$ref": "strings"}}, "$defs": {
            "n": {"$id": "numbers", "$ref": "list", "$defs": {"i": {"$dynamicAnchor": "item", "type": "integer"}}},
            "s": {"$id": "strings", "$ref": "list", "$defs": {"i": {"$dynamicAnchor": "item", "type": "string"}}},
            "l": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"}, "$defs": {"any": {"$dynamicAnchor": "item"}}}}},
        ['{"n":[1],"s":["a"]}'], ['{"n":["a"]}', '{"s":[1]}'],
    ),
    "a plain anchor is not dynamic": (
        {"$id": "http://x.org/plain", "$ref": "list", "$defs": {"s": {"$dynamicAnchor": "item", "type": "string"},
         "l": {"$id": "list", "type": "array", "items": {"$dynamicRef": "#item"}, "$defs": {"any": {"$anchor": "item"}}}}},
        ["[1]", '["a"]'], ["{}"],
    ),
    "$recursiveRef": (
        {"$schema": _D2019, "$id": "http://x.org/strict", "$recursiveAnchor": True, "$ref": "tree", "unevaluatedProperties": False,
         "$defs": {"t": {**_TREE, "$recursiveAnchor": True, "properties": {"d": True, "c": {"type": "array", "items": {"$recursiveRef": "#"}}}}}},
        ['{"d":1,"c":[{"d":2}]}'], ['{"c":[{"e":1}]}', '{"c":[1]}'],
    ),
    "$recursiveRef without an anchor is a reference": (
        {"$schema": _D2019, "$id": "http://x.org/strict", "$recursiveAnchor": True, "$ref": "tree",
         "$defs": {"t": {**_TREE, "properties": {"c": {"$recursiveRef": "#"}}, "additionalProperties": False}}, "required": ["c"]},
        ['{"c":{}}'], ["{}", '{"c":{"e":1}}'],
    ),
    "id of draft 4": ({"$schema": _D4, "id": "http://x.org/a", "definitions": {"b": {"id": "b", "type": "null"}}, "items": {"$ref": "b"}, "type": "array"}, ["[null]"], ["[1]"]),
    "a draft of its own": (
        {"$defs": {"old": {"$id": "http://x.org/old", "$schema": _D7, "definitions": {"s": {"type": "string"}}, "properties": {"p": {"$ref": "#/definitions/s", "maxLength": 1}}}},
         "$ref": "http://x.org/old", "type": "object"},
        ['{"p":"abc"}'], ['{"p":1}'],
    ),
    "a pointer into an unknown keyword": ({"x-types": {"n": {"type": "null"}}, "items": {"$ref": "#/x-types/n"}, "type": "array"}, ["[null]"], ["[1]"]),
    "a pointer to a property": ({"type": "object", "properties": {"a": {"type": "null"}, "b": {"$ref": "#/properties/a"}}}, ['{"b":null}'], ['{"b":1}']),
    "names under unknown keywords give way": (
        {"x-other": {"$id": "http://x.org/t", "type": "string"}, "$defs": {"t": {"$id": "http://x.org/t", "type": "null"}}, "$ref": "http://x.org/t"},
        ["null"], ['"a"'],
    ),
    "an $id in an enum is none": ({"enum": [{"$id": "http://x.org/t"}, 1], "anyOf": [{"$ref": "#/$defs/t"}, True], "$defs": {"t": {"$id": "http://x.org/t", "type": "null"}}}, ["1"], ["2"]),
    "nullable adds null to a type": ({"type": "string", "nullable": True}, ["null", '"a"'], ["1"]),
    "nullable adds nothing to an enum": ({"type": "string", "nullable": True, "enum": ["a"]}, ['"a"'], ["null"]),
    "nullable says nothing in JSON Schema": ({"$schema": _D7, "type": "string", "nullable": True}, ['"a"'], ["null"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_reference_leads_where_its_draft_says(name: str):
    schema, passing, failing = CASES[name]
    ok(schema, passing, failing)


def test_references_that_lead_nowhere_name_their_place():
    refused({"items": {"$dynamicRef": "#x"}}, "$dynamicRef", "#/items/$dynamicRef")
    refused({"$recursiveRef": "http://x.org/a"}, "$recursiveRef", "#/$recursiveRef")


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        {"anyOf": [{"type": "null"}, {"not": {"$ref": "#"}}]},
        {"unevaluatedProperties": False, "allOf": [{"$ref": "#"}]},
        {"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]},
    ],
)
def test_a_circle_without_a_value_in_it_is_an_error(schema: Any):
    refused(schema, "$ref", message="refers to itself")
