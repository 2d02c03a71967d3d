"""Formats: which strings they name."""

from __future__ import annotations

import json

import pytest
from pydantic import UUID4, TypeAdapter
from slow_recogniser import slow_accepts

from radixlm.grammar.expr import Expr, Grammar
from radixlm.grammar.frontends.json_schema.formats import format_named
from radixlm.grammar.frontends.json_schema.strings import StringText


def is_in(name: str, text: str) -> bool:
    found = format_named(name, "")
    assert found is not None
    assert isinstance(found.language, Expr)
    return slow_accepts(Grammar({"s": StringText().quoted(found.language)}, "s"), json.dumps(text))


@pytest.mark.parametrize("text", ["P99999W", "P9999Y9999M999999DT999999H999999M999999S", "PT1M2S"])
def test_every_duration_fits_a_timedelta(text: str) -> None:
    from datetime import timedelta

    assert is_in("duration", text)
    TypeAdapter(timedelta).validate_json(json.dumps(text))


@pytest.mark.parametrize("text", ["P999999W", "P1234567D", "PT1234567S", "PT1H2S", "P", "P1W2D"])
def test_longer_or_gapped_durations_are_none(text: str) -> None:
    assert not is_in("duration", text)


def test_a_uuid_of_a_version_has_it() -> None:
    text = "c0ffee00-1234-4abc-9def-0123456789ab"
    assert is_in("uuid4", text)
    assert not is_in("uuid7", text)
    assert str(TypeAdapter(UUID4).validate_json(json.dumps(text))) == text
