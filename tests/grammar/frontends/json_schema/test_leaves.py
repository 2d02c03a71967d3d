"""What is remembered from one schema to the next, and that it never changes what a schema means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from slow_recogniser import slow_accepts

from radixlm.grammar import frontends
from radixlm.grammar.expr import CONSTANT_RULES, Expr, Grammar, Limits
from radixlm.grammar.frontends.embedding import embed
from radixlm.grammar.frontends.json_schema import build_with_notes
from radixlm.grammar.frontends.json_schema.leaves import key_of
from radixlm.grammar.spec import JsonSchema


def _built(schema: Any, **options: Any) -> Grammar:
    return frontends.build(JsonSchema(json.dumps(schema), **options), Limits())


@pytest.mark.parametrize(
    "schema",
    [
        {"const": ["a"]},
        {"type": "string", "nullable": True},
        {"type": "string", "minLength": 1.5},
        {"type": "integer", "exclusiveMinimum": True},
        {"$ref": "#"},
        {"type": "string", "minlength": 1},
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "array", "items": [{"type": "string"}]},
        {"type": "array", "items": 1},
        {"enum": ["a", 1]},
    ],
)
def test_what_is_no_leaf(schema: Any):
    assert key_of(schema, "flexible") is None


def test_leaves_with_parts_are_of_one_layout():
    array = {"type": "array", "items": {"type": "string"}}
    assert key_of(array, "") is None
    assert key_of(array, "a") != key_of(array, "b")
    plain = {"type": "string", "title": "x"}
    assert key_of(plain, "") == key_of(plain, "b") == key_of({"type": "string"}, "a")
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(6):
        deep = {"items": deep}
    assert key_of(deep, "a") is None


@pytest.mark.parametrize(
    "leaf",
    [
        {"type": "array", "items": {"type": "boolean"}, "minItems": 1},
        {"type": "object", "additionalProperties": {"enum": ["x"]}},
        {"items": {}},
        {},
    ],
)
def test_equal_leaves_in_two_layouts_keep_their_white_space(leaf: Any):
    schema = {"type": "object", "properties": {"a": leaf}, "required": ["a"]}
    values = [[True], [], {"k": "x"}, {"k": 1}, [[1, "x"]], 3]
    for _ in range(2):
        for value in values:
            found = {
                layout: slow_accepts(
                    _built(schema, whitespace=layout),
                    json.dumps(
                        {"a": value},
                        indent=2 if layout == "indented" else None,
                        separators=(",", ":") if layout == "compact" else None,
                    ),
                )
                for layout in ("compact", "single_space", "indented", "flexible")
            }
            assert len(set(found.values())) == 1, (value, found)


def test_an_unknown_format_is_noted_for_every_schema():
    schema = JsonSchema('{"properties": {"a": {"type": "string", "format": "no such one"}}}')
    notes = [build_with_notes(schema, Limits())[1].unasserted for _ in range(3)]
    assert notes == [(("#/properties/a/format", "no such one"),)] * 3


def test_other_limits_are_not_served_from_what_is_remembered():
    schema = JsonSchema('{"properties": {"a": {"type": "number"}}, "required": ["a"]}')
    text = '{"a":123456}'
    assert slow_accepts(frontends.build(schema, Limits()), text)
    assert not slow_accepts(frontends.build(schema, Limits(number_integer_digits=3)), text)


def test_rules_of_the_process_keep_their_names_when_a_grammar_is_embedded():
    rules: dict[str, Expr] = {}
    grammar = _built({"properties": {"a": {"type": "integer"}}}, whitespace="flexible")
    start = embed(grammar, "one ", rules)
    assert set(rules) >= {name for name in grammar.rules if name in CONSTANT_RULES}
    whole = Grammar({**rules, "whole": start}, "whole")
    assert slow_accepts(whole, '{ "a": 1, "b" : [null] }')
    assert not slow_accepts(whole, '{"a": []}')
