"""Objects by conditions and counts, arrays of distinct items: tables, limits, and random schemas beside an independent validator."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schema_checks import Compiled, compact, grammar_of, ok, refused
from schema_strategies import orders, property_rules, unique_arrays
from slow_recogniser import slow_accepts

from radixlm.errors import GrammarError
from radixlm.grammar.expr import Alt, Expr, Grammar, Limits, Members, Repeat, Seq
from radixlm.grammar.frontends.json_schema import build_with_notes
from radixlm.grammar.spec import JsonSchema

_SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))


def _closed(names: str, **keywords: Any) -> dict[str, Any]:
    """An object of one-letter properties, and no others."""
    properties = {name: {"const": 1} for name in names}
    return {"type": "object", "properties": properties, "additionalProperties": False, **keywords}


def _text(names: str) -> str:
    return compact(dict.fromkeys(names, 1))


def _sets(grammar: Grammar) -> list[Members]:
    """Every set of members in a grammar."""
    found: list[Members] = []
    pending: list[Expr] = list(grammar.rules.values())
    while pending:
        part = pending.pop()
        if isinstance(part, Members):
            found.append(part)
        elif isinstance(part, (Seq, Alt)):
            pending.extend(part.items)
        elif isinstance(part, Repeat):
            pending.append(part.item)
    return found


CASES: dict[str, tuple[Any, list[str], list[str]]] = {
    "many properties, counted": (_closed("abcdefghijklmnopqrstuvwxyz", minProperties=9, maxProperties=10), [_text("abcdefghi"), _text("acegikmoqz"), _text("qrstuvwxyz")], [_text("abcdefgh"), _text("abcdefghijk"), _text("bacdefghi")]),
    "one of several": (_closed("kabc", anyOf=[{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]), [_text("ka"), _text("b"), _text("kabc")], [_text("k"), "{}", _text("ak")]),
    "exactly one of several": (_closed("abc", oneOf=[{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]), [_text("a"), _text("c")], [_text("ab"), "{}", _text("abc")]),
    "dependencies both ways": (_closed("abcd", dependentRequired={"a": ["b"], "b": ["a"], "c": ["a", "d"]}), ["{}", _text("ab"), _text("d"), _text("abcd")], [_text("a"), _text("b"), _text("abc"), _text("cd")]),
    "undeclared required ones in any order, others among them": ({"type": "object", "properties": {"a": {}}, "required": ["p", "q", "r", "s"], "additionalProperties": {"const": 1}}, [_text("pqrs"), _text("srqp"), '{"a":null,"s":1,"x":1,"r":1,"y":1,"q":1,"p":1,"z":1}'], [_text("pqr"), '{"s":1,"a":1,"r":1,"q":1,"p":1}', _text("pqrs").replace("s", "p"), '{"p":1,"q":1,"r":1,"s":0}']),
    "conditions on undeclared names": ({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 1}}, "additionalProperties": {"const": 1}, "anyOf": [{"required": ["p", "q"]}, {"required": ["r"]}, {"required": ["a"]}]}, [_text("a"), _text("aqp"), _text("xr"), _text("qxp"), _text("ax")], [_text("p"), "{}", _text("xpy"), _text("ra"), _text("qq"), _text("b"), _text("bx"), _text("bp")]),
    "a name that must not come": ({"type": "object", "not": {"required": ["x"]}, "additionalProperties": {"const": 1}}, ["{}", _text("yz")], [_text("x"), _text("yx"), '{"\\u0078":1}']),
    "finite names come once": ({"type": "object", "propertyNames": {"enum": ["a", "b", "c"]}, "additionalProperties": {"const": 1}, "minProperties": 2}, [_text("ab"), _text("cb"), _text("bca")], [_text("a"), '{"a":1,"a":1}', _text("abd")]),
    "finite names beside declared ones": ({"type": "object", "properties": {"b": {"const": 2}}, "required": ["c"], "propertyNames": {"enum": ["a", "b", "c"]}, "additionalProperties": {"const": 1}}, [_text("c"), '{"b":2,"c":1,"a":1}', _text("ac")], [_text("ab"), '{"c":1,"b":2}', _text("cd")]),
    "a counted map with a required name": ({"type": "object", "required": ["r"], "additionalProperties": {"const": 1}, "minProperties": 2, "maxProperties": 3}, [_text("ra"), _text("xr"), _text("xry")], [_text("r"), _text("ab"), _text("rabc"), '{"r":1,"r":1}']),
    "distinct values of every sort": ({"type": "array", "items": {"enum": [1, "1", None, [1], {"a": [1]}]}, "uniqueItems": True, "minItems": 2, "maxItems": 3}, ['[1,"1"]', '[{"a":[1]},[1],null]'], ["[1]", "[1,1]", '[1,"1",null,[1]]', "[[1],[1]]"]),
    "distinct booleans and integers": ({"type": "array", "items": {"type": ["boolean", "integer", "null"], "minimum": -1, "maximum": 1}, "uniqueItems": True}, ["[]", "[1,-1,0]", "[true,1,false,0,null,-1]"], ["[0,0]", "[2]", "[true,true]"]),
    "distinct integers of a large range": ({"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 1000}, "uniqueItems": True, "maxItems": 4}, ["[]", "[1000,1,10]", "[11,1,111,1000]"], ["[1,11,1]", "[0]", "[1001]", "[1,2,3,4,5]"]),
    "distinct behind a prefix": ({"type": "array", "prefixItems": [{"enum": ["a", "b"]}, {"type": "string", "minLength": 3}], "items": {"enum": ["a", "b", 1]}, "uniqueItems": True}, ["[]", '["a"]', '["a","abc",1,"b"]', '["b","bbb","a"]'], ['["a","abc","a"]', '["a","abc",1,1]', '["c"]']),
    "distinct by position": ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False, "uniqueItems": True, "minItems": 1}, ['["x"]', '["x",1]'], ["[]", "[1]", '["x",1,2]']),
    "distinct and containing": ({"type": "array", "items": {"enum": [1, 2, 3, "a", "b"]}, "contains": {"type": "integer"}, "minContains": 2, "maxContains": 2, "uniqueItems": True}, ['[1,"a",3]', "[2,1]", '["b","a",2,3]'], ["[1]", "[1,2,3]", "[1,1]", '["a","b",1]']),
    "some item of a long array": ({"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 5}, "minItems": 3, "maxItems": 5000}, ["[1,2,5]", "[7,7,1,1,9]"], ["[5]", "[1,2,3]", "[]", '[1,2,"5",6]']),
    "at most one item is always distinct": ({"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 1}, ["[]", '["x"]'], ['["x","y"]', "[1]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_container_accepts_and_refuses_what_it_should(name: str):
    schema, passing, failing = CASES[name]
    ok(schema, passing, failing)


def test_shapes_that_differ_in_presence_only_become_one_set():
    schema = _closed("abcdefgh", anyOf=[{"required": [name]} for name in "abcdefgh"])
    (members,) = _sets(grammar_of(schema))
    assert len(members.clauses) == 8
    assert members.is_ordered
    assert not _sets(grammar_of(_closed("abcdefgh", required=["a", "c"])))
    assert not _sets(grammar_of({"type": "object", "properties": {"a": {}}, "required": ["r"]}))


REFUSALS: dict[str, tuple[Any, str]] = {
    "distinct strings": ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems"),
    "distinct numbers": ({"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "uniqueItems": True}, "uniqueItems"),
    "positions that share values": ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}], "items": False, "uniqueItems": True}, "uniqueItems"),
    "a range beyond the limit": ({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 1000}, "uniqueItems": True}, "uniqueItems"),
    "too many choices": ({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 30}, "contains": {"minimum": 0}, "minContains": 9, "uniqueItems": True}, "uniqueItems"),
    "additional keys that might be one": ({"type": "object", "required": ["a"], "minProperties": 3}, "minProperties"),
    "an asked-for additional property and another": ({"type": "object", "minProperties": 2, "not": {"additionalProperties": {"const": 1}}}, "minProperties"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_exact_is_refused(name: str):
    schema, keyword = REFUSALS[name]
    refused({"properties": {"p": schema}}, keyword, "#/properties/p" + ("/uniqueItems" if keyword == "uniqueItems" else ""))  # fmt: skip


@settings(_SETTINGS, max_examples=100)
@given(unique_arrays, st.data())
def test_arrays_of_distinct_items_are_exact(schema: Any, data: st.DataObject):
    validator = Draft202012Validator(schema)
    try:
        grammar = grammar_of(schema)
    except GrammarError as error:
        assume("no value satisfies" in error.message)
        grammar = None
    items = st.sampled_from([None, True, False, 0, 1, 2, 3, "a", "b", "cc", [1], {"a": 1}])
    for value in data.draw(st.lists(st.lists(items, max_size=4), min_size=20, max_size=30)):
        is_output = grammar is not None and slow_accepts(grammar, compact(value))
        assert is_output == validator.is_valid(value), (schema, value)


_small_objects = st.dictionaries(
    st.sampled_from(["a", "b", "ab", "z", "q"]), st.sampled_from([0, "x", None]), max_size=3
)


@settings(_SETTINGS, max_examples=60)
@given(property_rules, st.lists(property_rules, min_size=1, max_size=2), st.booleans(), st.lists(_small_objects, min_size=12))  # fmt: skip
def test_broken_rules_on_properties_are_never_kept(
    rules: Any, broken: list[Any], any_order: bool, samples: list[Any]
):
    schema = {"type": "object", **rules, "allOf": [{"not": rule} for rule in broken]}
    validator = Draft202012Validator(schema)
    try:
        grammar = grammar_of(schema, any_order=any_order)
    except GrammarError as error:
        assume("no value satisfies" in error.message)
        grammar = None
    for value in [{}, *samples]:
        texts = [compact(order) for order in orders(value)]
        is_output = grammar is not None and any(slow_accepts(grammar, text) for text in texts)
        is_valid = validator.is_valid(value)
        assert is_valid or not is_output, (schema, value)
        if len(broken) == 1:
            assert is_output == is_valid, (schema, value)


TWO_BROKEN: Any = {
    "type": "object",
    "additionalProperties": {"enum": [0, 1, "A"]},
    "allOf": [
        {"not": {"patternProperties": {"a": {"not": {"const": 0}}}}},
        {"not": {"patternProperties": {"b": {"not": {"const": 1}}}}},
    ],
}


def test_two_broken_rules_are_one_property_or_two_of_different_sorts():
    passing = ['{"a":0,"b":1}', '{"ab":0,"b":1}', '{"b":1,"a":0}', '{"q":"A","a":0,"xab":1}']
    failing = ["{}", '{"a":0}', '{"b":1}', '{"ab":0}', '{"a":1,"b":0}', '{"ab":0,"ab":1}']
    ok(TWO_BROKEN, passing, failing)
    three = {"allOf": [*TWO_BROKEN["allOf"], {"not": {"patternProperties": {"c": False}}}]}
    refused({"type": "object", **three}, "not", "#")


def test_best_effort_leaves_out_and_notes_what_is_refused_otherwise():
    schemas: list[tuple[Any, str, str]] = [
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems", '["a","a"]'),
        ({"type": "object", "minProperties": 2}, "minProperties", '{"a":1,"b":2}'),
        ({"type": "array", "contains": {"const": 1}, "minContains": 900, "maxItems": 1000}, "contains", "[2]"),
        ({"type": "object", "patternProperties": {f"^{c}": {"type": "null"} for c in "abcdefg"}}, "patternProperties", '{"a":1}'),
    ]  # fmt: skip
    for schema, keyword, wider in schemas:
        refused({"properties": {"p": schema}}, keyword)
        spec = JsonSchema(json.dumps({"properties": {"p": schema}}), best_effort=True)
        grammar, notes = build_with_notes(spec, Limits())
        ((place, left_out, reason),) = notes.left_out
        assert place.startswith("#/properties/p")
        assert (left_out, bool(reason)) == (keyword, True)
        assert slow_accepts(grammar, f'{{"p":{wider}}}')


@pytest.mark.parametrize("any_order", [False, True])
def test_every_order_of_a_few_properties(any_order: bool):
    schema = _closed("abc", required=["b"], dependentRequired={"c": ["a"]})
    compiled = Compiled(schema, any_order=any_order)
    for count in range(4):
        for names in permutations("abc", count):
            valid = "b" in names and ("c" not in names or "a" in names)
            expected = valid and (any_order or list(names) == sorted(names))
            assert compiled.accepts(_text("".join(names))) == expected, names
