"""Explanations: what they show is what the matcher does, and what a schema's front end ignores is listed with its place."""

from __future__ import annotations

import json
import re

import pytest

from radixlm.errors import GrammarError
from radixlm.grammar.explain import explain, loose_objects
from radixlm.grammar.spec import Choice, JsonSchema, Regex
from radixlm.grammar.vocabulary import Vocabulary

EOS = 256
BYTES = Vocabulary([bytes((b,)) for b in range(256)] + [None, b'{"', b"ab", b'":'], (EOS,))


def schema(**keywords: object) -> JsonSchema:
    return JsonSchema(json.dumps(keywords))


def test_a_pattern_is_explained_by_its_beginning_first_tokens_and_shortest_text() -> None:
    found = explain(Regex("xa(b|c)[0-9]+"), BYTES)
    assert found.forced_text == "xa"
    assert (found.num_first_tokens, found.first_tokens) == (1, ("x",))
    assert re.fullmatch("xa(b|c)0", found.shortest)
    assert found.max_tokens_needed == 4
    assert not found.may_be_empty
    assert found.num_states > 3
    assert (found.annotations, found.unknown_formats) == ((), ())


@pytest.mark.parametrize("seed", range(20))
def test_every_sample_is_an_output(seed: int) -> None:
    pattern = r"[a-z]{2,9}(-[A-Z]+)*@(x|yy)"
    assert re.fullmatch(pattern, explain(Regex(pattern), BYTES, seed=seed).sample)
    spec = schema(
        type="object",
        properties={"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "string"}},
        required=["a", "b"],
        additionalProperties=False,
    )
    found = explain(spec, BYTES, seed=seed)
    value = json.loads(found.sample)
    assert list(value) == ["a", "b"]
    assert found.forced_text == '{"a":['
    assert 0 < found.sample_forced_bytes <= len(found.sample.encode())


def test_an_empty_text_is_mentioned_and_a_fixed_one_has_no_sampled_token() -> None:
    assert explain(Regex("(ab)*"), BYTES).may_be_empty
    fixed = explain(Choice(("only",)), BYTES)
    assert (fixed.sample, fixed.sample_tokens, fixed.sample_forced_bytes) == ("only", 0, 4)


def test_no_number_of_tokens_suffices_when_a_byte_has_no_token_of_its_own() -> None:
    vocabulary = Vocabulary([b"ab", b"c", None], (2,))
    assert explain(Regex("(ab)+c"), vocabulary).max_tokens_needed is None


def test_ignored_keywords_and_formats_are_listed_wherever_schemas_stand() -> None:
    spec = schema(
        title="T",
        type="object",
        properties={
            "title": {"type": "string", "format": "zip-code"},
            "x/y": {"anyOf": [{"type": "integer", "description": "d"}, {"const": {"title": "no"}}]},
            "when": {"type": "string", "format": "date"},
        },
        required=["title", "x/y", "when"],
        additionalProperties=False,
        **{"$defs": {"unused": {"type": "array", "items": {"examples": [1]}}}, "x-own": 1},
    )
    found = explain(spec, BYTES)
    assert [(note.place, note.value) for note in found.unknown_formats] == [
        ("#/properties/title/format", "zip-code")
    ]
    assert [note.place for note in found.annotations] == [
        "#/title",
        "#/x-own",
        "#/properties/x~1y/anyOf/0/description",
        "#/$defs/unused/items/examples",
    ]


def test_a_refused_constraint_is_the_compilers_error() -> None:
    with pytest.raises(GrammarError) as caught:
        explain(schema(type="array", items={"minLength": -1}), BYTES)
    assert caught.value.place == "#/items/minLength"


def test_objects_that_may_be_empty_or_fuller_are_named_with_what_to_add() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "integer"}}}
    closed = {"required": ["a"], "additionalProperties": False}
    found = explain(schema(type="object", properties={"a": inner}, **closed), BYTES)
    assert [each.advice() for each in found.loose_objects] == [
        "no property is required and others are allowed at #/properties/a; add required and additionalProperties: false"
    ]
    for keywords, advice in (
        (
            {"required": ["b"]},
            "undeclared properties are allowed at #; add additionalProperties: false",
        ),
        ({"additionalProperties": False}, "no property is required at #; add required"),
    ):
        (loose,) = loose_objects(schema(**{**inner, **keywords}))
        assert loose.advice() == advice
    assert not loose_objects(schema(**inner, **{**closed, "required": ["b"]}))
    assert not loose_objects(schema(type="object"))
    assert not loose_objects(schema(allOf=[inner]))
