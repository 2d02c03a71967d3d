"""Random schemas, sound and complete at every token: after any allowed token the shortest completion is valid, and each layout of a valid value is allowed token by token."""

from __future__ import annotations

import json
from typing import Any

from fuzz_checks import VOCABULARY, checked_mask, judged
from grammar_engine import Constraint, layouts
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from schema_strategies import documents, orders, values
from toy_vocabulary import EOS

from radixlm.errors import GrammarError
from radixlm.grammar.spec import JsonSchema, Whitespace

_SETTINGS = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)
_LAYOUT_OPTIONS: dict[str, list[Whitespace]] = {
    "compact": ["compact", "flexible"],
    "single_space": ["single_space", "flexible"],
    "indented": ["indented", "flexible"],
}
_whitespace = st.sampled_from(["compact", "single_space", "indented", "flexible"])
_TOKENS = sorted(
    ((data, token) for token, data in enumerate(VOCABULARY.token_bytes) if data),
    key=lambda pair: -len(pair[0]),
)


def constraint_of(schema: Any, **options: Any) -> Constraint:
    """The constraint; a refused schema is no test."""
    try:
        return Constraint(JsonSchema(json.dumps(schema), **options), VOCABULARY)
    except GrammarError:
        assume(False)
        raise


def is_allowed_token_by_token(constraint: Constraint, text: str) -> bool:
    """Whether every token of the text, split greedily into the longest, is in the mask, and EOS after the last."""
    matcher = constraint.matcher()
    rest = text.encode()
    while rest:
        data, token = next(pair for pair in _TOKENS if rest.startswith(pair[0]))
        if token not in constraint.allowed(matcher) or not matcher.advance(token):
            return False
        rest = rest[len(data) :]
    return EOS in constraint.allowed(matcher)


@settings(_SETTINGS, max_examples=30)
@given(documents, _whitespace, st.booleans(), st.randoms(use_true_random=False))
def test_after_any_allowed_token_the_shortest_completion_is_valid(
    schema: Any, whitespace: Whitespace, any_order: bool, rng: Any
) -> None:
    constraint = constraint_of(schema, whitespace=whitespace, any_order=any_order)
    spec = JsonSchema(json.dumps(schema))
    matcher = constraint.matcher()
    text = b""
    for _ in range(6):
        allowed = sorted(checked_mask(constraint, matcher, rng) - {EOS})
        if not allowed:
            break
        for token in rng.sample(allowed, min(len(allowed), 8)):
            fork = matcher.fork()
            assert fork.advance(token)
            whole = text + (VOCABULARY.token_bytes[token] or b"") + fork.shortest_completion()
            assert judged(spec, whole.decode()) is not False, whole
        token = rng.choice(allowed)
        assert matcher.advance(token)
        text += VOCABULARY.token_bytes[token] or b""


@settings(_SETTINGS, max_examples=25)
@given(documents, st.lists(values(), min_size=6, max_size=10))
def test_every_layout_of_a_valid_value_is_allowed_token_by_token_in_any_order(
    schema: Any, samples: list[Any]
) -> None:
    try:
        valid = [value for value in samples if Draft202012Validator(schema).is_valid(value)]
    except RecursionError:  # a reference circle: the validator has no answer
        valid = []
    assume(valid)
    any_order = {
        whitespace: constraint_of(schema, whitespace=whitespace, any_order=True)
        for options in _LAYOUT_OPTIONS.values()
        for whitespace in options
    }
    for value in valid:
        for order in orders(value)[:6]:
            for layout, text in layouts(order).items():
                for whitespace in _LAYOUT_OPTIONS[layout]:
                    assert is_allowed_token_by_token(any_order[whitespace], text), (whitespace, text)  # fmt: skip
