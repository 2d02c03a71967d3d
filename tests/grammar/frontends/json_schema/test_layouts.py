"""White space and the order of keys: what each choice of `JsonSchema` accepts, beside an independent validator."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schema_checks import LAYOUTS, Compiled, grammar_of, laid_out, ok, refused
from schema_strategies import documents, gapped, object_schemas, orders, values
from slow_recogniser import slow_accepts

from radixlm.errors import GrammarError
from radixlm.grammar.expr import Grammar
from radixlm.grammar.frontends.json_schema.layout import (
    MAX_BLANKS,
    MAX_LEVELS,
    MAX_SPACES,
    MAX_TABS,
)

_SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))
ANY = {"a": [], "b": {}, "c": [1, {"d": [None]}, []], "e": "x, y: z"}


def _valid(schema: Any, value: Any) -> bool:
    try:
        return Draft202012Validator(schema).is_valid(value)
    except RecursionError:
        assume(False)  # a reference circle: the validator has no answer
        raise


def _grammar(schema: Any, **options: Any) -> Grammar | None:
    """The grammar; None when no value is valid; other refusals are no test."""
    try:
        return grammar_of(schema, **options)
    except GrammarError as error:
        assume("no value satisfies" in error.message)
        return None


# ---------------------------------------------------------------------------------------------- by tables


@pytest.mark.parametrize("whitespace", LAYOUTS)
def test_a_layout_is_what_the_standard_library_writes_and_nothing_else(whitespace: str):
    text = laid_out(ANY, whitespace)
    others = [laid_out(ANY, other) for other in LAYOUTS if other != whitespace]
    wrong = [f" {text}", f"{text}\n", text.replace("[]", "[ ]"), text.replace("}", " }", 1)]
    ok({}, [text, "{}", "[]", "1"], [*others, *wrong], whitespace=whitespace)
    ok({"const": ANY}, [text], [*others, *wrong], whitespace=whitespace)


def test_flexible_takes_every_usual_layout():
    usual = [laid_out(ANY, other) for other in LAYOUTS]
    usual += [json.dumps(ANY, indent=4), json.dumps(ANY, indent="\t")]
    usual += [text.replace("\n", "\r\n") for text in usual]
    usual += ["\n{ }", "[ ]", ' {\t"a" : 1 , "b":[ ]}', '{\n\n  "a": 1}']
    wrong = ["1 ", "1\n", "{ \f}", "[1\u00a0]", '"\n"', "[1 1]", "nu ll", '{"a" "b"}', "[,]"]
    ok({}, usual, wrong, whitespace="flexible")
    gapped_constant = '{ "a":[ ], "b" :{} , "c":[1,{"d":[\nnull\n]},[]],"e":"x, y: z" }'
    ok({"const": ANY}, [*usual[:5], gapped_constant], [json.dumps({})], whitespace="flexible")


def test_a_gap_is_bounded():
    fits = [" " * MAX_BLANKS, "\n" + " " * MAX_SPACES, "\r\n\n" + "\t" * MAX_TABS, " \n  "]
    too_long = [" " * (MAX_BLANKS + 1), "\n" * 3, "\n" + " " * (MAX_SPACES + 1)]
    too_long += ["\n" + "\t" * (MAX_TABS + 1), "\r", "\n \n"]
    for before, after in (("[", "1]"), ("[1", ",2]"), ('{"a"', ":1}"), ('{"a":', "1}"), ("", "{}")):
        ok({}, [before + g + after for g in fits], [before + g + after for g in too_long], whitespace="flexible")  # fmt: skip


def test_deep_recursion_is_bounded_only_where_levels_matter():
    schema = {"type": "array", "items": {"$ref": "#"}}

    def nested(depth: int) -> Any:
        return [nested(depth - 1)] if depth else []

    deep, too_deep = (laid_out(nested(depth), "indented") for depth in (MAX_LEVELS, MAX_LEVELS + 1))
    ok(schema, [deep], [too_deep], whitespace="indented")
    ok(schema, [laid_out(nested(MAX_LEVELS + 5), "single_space")], [], whitespace="single_space")
    needed: Any = {"const": 1}
    for _ in range(MAX_LEVELS + 1):
        needed = {"type": "array", "items": needed, "minItems": 1}
    refused(needed, "whitespace", message=f"{MAX_LEVELS} levels", whitespace="indented")
    grammar_of(needed, whitespace="flexible")


def test_constant_objects_have_any_order_where_keys_have_any_order():
    schema = {"enum": [{"a": 1, "b": {"c": [{"x": 1, "y": 2}], "d": 2}}, [], {}]}
    written = '{"a":1,"b":{"c":[{"x":1,"y":2}],"d":2}}'
    turned = '{"b":{"d":2,"c":[{"y":2,"x":1}]},"a":1}'
    wrong = ['{"a":1}', written.replace('"a":1', '"a":1,"a":1'), "[{}]"]
    ok(schema, [written, "[]", "{}"], [turned, *wrong])
    ok(schema, [written, turned, "[]", "{}"], wrong, any_order=True)


def test_any_order_repeats_no_name_and_puts_additional_properties_anywhere():
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "type": "object", "required": ["b", "r"]}  # fmt: skip
    passing = ['{"b":"","r":1}', '{"x":0,"r":1,"y":0,"a":1,"b":"","x":1}', '{"r":1,"b":"","a":2}']
    failing = ['{"b":""}', '{"r":1,"a":2}', '{"a":1,"r":1,"b":"","a":1}', '{"r":1,"b":"","r":1}']
    failing += ['{"r":1,"b":1}', "{}", '{"r":1,"b":"",}', '{"r":1,"b":"","\\u0061":1}']
    ok(schema, passing, failing, any_order=True)


# ---------------------------------------------------------------------------------------------- random schemas


@settings(_SETTINGS, max_examples=60)
@given(documents, st.lists(values(), min_size=6, max_size=10))
def test_in_any_order_every_order_of_a_valid_value_is_an_output(schema: Any, samples: list[Any]):
    assume("patternProperties" not in json.dumps(schema) or "not" not in json.dumps(schema))
    grammar = _grammar(schema, any_order=True)
    for value in samples:
        expected = _valid(schema, value)
        for order in orders(value):
            text = laid_out(order, "compact")
            is_output = grammar is not None and slow_accepts(grammar, text)
            assert is_output == expected, (schema, text)


@settings(_SETTINGS, max_examples=60)
@given(documents, st.lists(values(), min_size=6, max_size=10), st.booleans(), st.data())
def test_layouts_hold_the_same_values(
    schema: Any, samples: list[Any], any_order: bool, data: st.DataObject
):
    compact = _grammar(schema, any_order=any_order)
    others = {w: _grammar(schema, any_order=any_order, whitespace=w) for w in (*LAYOUTS, "flexible")}  # fmt: skip
    for value in samples:
        expected = compact is not None and slow_accepts(compact, laid_out(value, "compact"))
        texts = {w: laid_out(value, w) for w in LAYOUTS}
        texts["flexible"] = data.draw(gapped(value))
        for whitespace, text in texts.items():
            grammar = others[whitespace]
            is_output = grammar is not None and slow_accepts(grammar, text)
            assert is_output == expected, (schema, whitespace, text)


@settings(_SETTINGS, max_examples=100)
@given(object_schemas, st.lists(values(1), min_size=8, max_size=14), st.booleans())
def test_conditions_on_presence_and_counts_are_exact(
    schema: Any, samples: list[Any], any_order: bool
):
    grammar = _grammar(schema, any_order=any_order)
    for value in [{}, *samples]:
        texts = [laid_out(order, "compact") for order in orders(value)]
        hits = [grammar is not None and slow_accepts(grammar, text) for text in texts]
        expected = _valid(schema, value)
        assert (all(hits) if any_order and expected else any(hits)) == expected, (schema, value)


@settings(_SETTINGS, max_examples=15)
@given(object_schemas, st.lists(values(1), min_size=6), st.booleans(), st.sampled_from([*LAYOUTS, "flexible"]))  # fmt: skip
def test_the_compiled_program_agrees_with_its_grammar_in_every_layout(
    schema: Any, samples: list[Any], any_order: bool, whitespace: str
):
    options: dict[str, Any] = {"any_order": any_order, "whitespace": whitespace}
    assume(_grammar(schema, **options) is not None)
    compiled = Compiled(schema, **options)
    for value in samples:
        text = laid_out(value, "single_space" if whitespace == "flexible" else whitespace)
        assert compiled.accepts(text) == slow_accepts(compiled.grammar, text), (schema, text)
