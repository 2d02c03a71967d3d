"""Grammars of random schemas against an independent validator, both ways."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schema_checks import Compiled, compact, grammar_of
from schema_strategies import documents, orders, values
from slow_recogniser import slow_accepts

from radixlm.errors import GrammarError
from radixlm.grammar.expr import Grammar

_SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck))


def _is_valid(schema: Any, value: Any) -> bool:
    try:
        return Draft202012Validator(schema).is_valid(value)
    except RecursionError:
        assume(False)  # a reference circle: the validator has no answer
        raise


def _grammar(schema: Any) -> Grammar | None:
    """The grammar; None when no value is valid; other refusals are no test."""
    try:
        return grammar_of(schema)
    except GrammarError as error:
        assume("no value satisfies" in error.message)
        return None


@settings(_SETTINGS, max_examples=80)
@given(documents, st.lists(values(), min_size=8, max_size=14))
def test_a_value_is_an_output_in_some_key_order_exactly_when_it_is_valid(
    schema: Any, samples: list[Any]
):
    grammar = _grammar(schema)
    for value in samples:
        texts = [compact(order) for order in orders(value)]
        is_output = grammar is not None and any(slow_accepts(grammar, text) for text in texts)
        assert is_output == _is_valid(schema, value), (compact(schema), compact(value))


@settings(_SETTINGS, max_examples=10)
@given(documents, st.lists(values(), min_size=6, max_size=10))
def test_the_compiled_program_agrees_with_its_grammar(schema: Any, samples: list[Any]):
    assume(_grammar(schema) is not None)
    try:
        compiled = Compiled(schema)
    except GrammarError as error:
        # rules are pruned without looking into intersections: emptiness there is the compiler's to find
        assert error.keyword == "unsatisfiable"  # noqa: PT017
        assert not any(_is_valid(schema, value) for value in samples)
        return
    for value in samples:
        for order in orders(value):
            text = compact(order)
            assert compiled.accepts(text) == slow_accepts(compiled.grammar, text), text
            assert json.loads(text) == value
