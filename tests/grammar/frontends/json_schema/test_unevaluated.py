"""unevaluatedProperties and unevaluatedItems: tables, and random schemas against independent validators."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schema_checks import compact, grammar_of, ok
from schema_strategies import orders
from slow_recogniser import slow_accepts

from radixlm.errors import GrammarError

_D2019 = "https://json-schema.org/draft/2019-09/schema"

CASES = {
    "beside properties": ({"type": "object", "properties": {"a": {"type": "integer"}}, "patternProperties": {"^x": {}}, "unevaluatedProperties": False}, ["{}", '{"a":1}', '{"a":1,"xy":2}'], ['{"b":1}', '{"a":"s"}']),
    "through allOf and $ref": ({"type": "object", "$defs": {"d": {"properties": {"b": {}}}}, "allOf": [{"properties": {"a": {}}}, {"$ref": "#/$defs/d"}], "unevaluatedProperties": {"type": "null"}}, ['{"a":1,"b":2}', '{"a":1,"z":null}'], ['{"z":1}']),
    "by the branches of anyOf that hold": ({"type": "object", "properties": {"k": {}}, "anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"b": {"const": 2}}, "required": ["b"]}], "unevaluatedProperties": False}, ['{"a":1}', '{"b":2}', '{"a":1,"b":2}', '{"k":0,"b":2}'], ['{"a":1,"b":3}', "{}", '{"a":1,"c":1}']),
    "by the branch of oneOf that holds": ({"type": "object", "oneOf": [{"properties": {"t": {"const": "x"}, "a": {}}, "required": ["t"]}, {"properties": {"t": {"const": "y"}, "b": {}}, "required": ["t"]}], "unevaluatedProperties": False}, ['{"t":"x","a":1}', '{"t":"y","b":1}'], ['{"t":"x","b":1}', '{"t":"z"}']),
    "by a condition and its consequence": ({"type": "object", "if": {"properties": {"t": {"const": 1}}, "required": ["t"]}, "then": {"properties": {"a": {}}}, "else": {"properties": {"b": {}}}, "unevaluatedProperties": False}, ['{"t":1,"a":0}', '{"b":0}'], ['{"t":1,"b":0}', '{"t":2,"b":0}', '{"a":0}']),
    "by a dependent schema": ({"type": "object", "properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {}}}}, "unevaluatedProperties": False}, ['{"a":1,"b":2}', "{}"], ['{"b":2}']),
    "not by what stands under not": ({"type": "object", "not": {"not": {"properties": {"a": {"const": 1}}, "required": ["a"]}}, "unevaluatedProperties": {"type": "integer"}}, ['{"a":1}'], ['{"a":1,"b":"s"}', '{"a":"s"}']),
    "not by cousins": ({"type": "object", "allOf": [{"properties": {"a": {}}}, {"unevaluatedProperties": False}]}, ["{}"], ['{"a":1}']),
    "by an inner one": ({"type": "object", "allOf": [{"unevaluatedProperties": {"type": "integer"}}], "unevaluatedProperties": False}, ['{"a":1}'], ['{"a":"s"}']),
    "failing": ({"type": "object", "not": {"properties": {"a": {}}, "unevaluatedProperties": False}}, ['{"b":1}', '{"a":1,"b":1}'], ["{}", '{"a":1}']),
    "items behind a prefix": ({"type": "array", "prefixItems": [{"type": "string"}], "unevaluatedItems": False}, ["[]", '["a"]'], ["[1]", '["a",1]']),
    "items by the longest prefix that holds": ({"type": "array", "prefixItems": [{"const": 1}], "anyOf": [{"prefixItems": [True, {"const": 2}]}, {"prefixItems": [True, True, {"const": 3}]}], "unevaluatedItems": False}, ["[1]", "[1,2]", "[1,9]", "[1,2,3]", "[1,9,3]"], ["[1,9,4]", "[1,2,4]", "[1,2,3,4]"]),
    "items that contains has met": ({"type": "array", "contains": {"const": "a"}, "unevaluatedItems": {"type": "integer"}}, ['["a"]', '[1,"a",2]'], ['["a","b"]', "[1]"]),
    "contains evaluates nothing in 2019-09": ({"$schema": _D2019, "type": "array", "contains": {"const": "a"}, "unevaluatedItems": {"type": "integer"}, "minItems": 1}, [], ['["a"]', '[1,"a"]']),
    "all items": ({"type": "array", "allOf": [{"items": True}], "unevaluatedItems": False}, ["[]", "[1,2]"], ["{}"]),
    "other kinds of value": ({"unevaluatedProperties": False, "unevaluatedItems": False}, ["1", '"s"', "{}", "[]", "null"], ['{"a":1}', "[1]"]),
}  # fmt: skip
_UNSATISFIABLE = {"contains evaluates nothing in 2019-09"}


@pytest.mark.parametrize("name", CASES)
def test_what_counts_as_evaluated(name: str):
    schema, passing, failing = CASES[name]
    if name in _UNSATISFIABLE:
        with pytest.raises(GrammarError, match="no value satisfies"):
            grammar_of(schema)
        return
    ok(schema, passing, failing)


_leaves = st.sampled_from(
    [True, False, {}, {"type": "integer"}, {"const": 1}, {"type": ["null", "string"]}]
)
_names = st.sampled_from(["a", "b", "c"])


def _schemas(depth: int) -> st.SearchStrategy[Any]:
    inner = st.one_of(_leaves, _schemas(depth - 1)) if depth else _leaves
    some = st.lists(inner, min_size=1, max_size=2)
    own: dict[str, st.SearchStrategy[Any]] = {
        "properties": st.dictionaries(_names, _leaves, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), _leaves, max_size=1),
        "required": st.lists(_names, max_size=1),
        "prefixItems": st.lists(_leaves, min_size=1, max_size=2),
        "contains": _leaves,
        "unevaluatedProperties": _leaves,
        "unevaluatedItems": _leaves,
    }
    if depth:
        own |= {
            "anyOf": some,
            "allOf": some,
            "oneOf": some,
            "if": inner,
            "then": inner,
            "not": inner,
            "dependentSchemas": st.dictionaries(_names, inner, max_size=1),
        }
    keywords = st.lists(st.sampled_from(sorted(own)), max_size=5, unique=True)
    return keywords.flatmap(lambda found: st.fixed_dictionaries({k: own[k] for k in found}))


_scalars = st.sampled_from([None, 1, 2, "x", True])
_values = st.one_of(
    _scalars,
    st.lists(_scalars, max_size=3),
    st.dictionaries(st.sampled_from(["a", "b", "c", "z", "ab"]), _scalars, max_size=3),
)


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
@given(_schemas(2), st.lists(_values, min_size=8, max_size=12))
def test_a_value_is_an_output_exactly_when_two_validators_take_it(schema: Any, samples: list[Any]):
    try:
        grammar = grammar_of(schema)
    except GrammarError as error:
        assume("no value satisfies" in error.message)
        grammar = None
    first, second = Draft202012Validator(schema), jsonschema_rs.Draft202012Validator(schema)
    for value in samples:
        expected = first.is_valid(value)
        if expected != second.is_valid(value):
            continue  # validators differ on a few corners
        texts = [compact(order) for order in orders(value)]
        is_output = grammar is not None and any(slow_accepts(grammar, text) for text in texts)
        assert is_output == expected, (compact(schema), compact(value))


@pytest.mark.parametrize(
    ("branch", "place"),
    [
        ({"allOf": [0]}, "/allOf"),
        ({"anyOf": 0}, "/anyOf"),
        ({"if": 0}, "/if"),
        ({"dependentSchemas": {"a": 7}}, "/dependentSchemas"),
        ({"$ref": 3}, "/$ref"),
    ],
)
def test_a_wrong_value_below_is_an_error_at_its_place_though_it_is_looked_at_before_it_is_read(
    branch: Any, place: str
) -> None:
    with pytest.raises(GrammarError) as refused:
        grammar_of({"anyOf": [branch], "unevaluatedProperties": {"type": "null"}})
    assert refused.value.place == f"#/anyOf/0{place}"
