"""Partial values of a JSON text only grow, wherever it is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixlm.lang.schema import partial_values, whole_value

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def is_beginning(part: Any, whole: Any) -> bool:
    """Whether `part` is `whole` cut short: strings and lists at their end, objects in their last field."""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(is_beginning, part, whole))
    if isinstance(part, dict) and isinstance(whole, dict):
        same_order = list(part) == list(whole)[: len(part)]
        return same_order and all(is_beginning(part[key], whole[key]) for key in part)
    return type(part) is type(whole) and part == whole


@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_every_beginning_of_a_json_text_has_a_value_that_only_grows(
    value: Any, is_ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    before: list[Any] = []
    for cut in range(len(text)):
        values = partial_values(text[:cut])
        assert len(values) >= len(before), "what was there stays there"
        for each in values:
            assert is_beginning(each, value)
        for early, late in zip(before, values, strict=False):
            assert is_beginning(early, late)
        before = values
    assert whole_value(text) == value


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("12", []),
        ('{"a": 12', [{}]),
        ('{"a": 12,', [{"a": 12}]),
        ('{"a": "x 12', [{"a": "x 12"}]),
        ('["a\\"1', [['a"1']]),
        ('{"a": tru', [{}]),
        ('{"a": [{"b": "c', [{"a": [{"b": "c"}]}]),
        ('"\\ud83d', [""]),
    ],
)
def test_how_far_a_value_goes(text: str, values: list[Any]) -> None:
    assert partial_values(text) == values
