"""Explanations: what they show is what the matcher does, what became of each keyword, why a constraint is refused, and how it is told."""

from __future__ import annotations

import json
import re

import pytest

from radixlm.errors import GrammarError
from radixlm.grammar.explain import explain, loose_objects, refusal
from radixlm.grammar.explain.wording import explanation_lines, refusal_lines
from radixlm.grammar.expr import Limits
from radixlm.grammar.spec import Choice, JsonSchema, Lark, Regex, Spec
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
    assert (found.keywords, found.limits_near) == ((), ())


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


def test_every_keyword_is_listed_with_what_became_of_it() -> None:
    spec = schema(
        title="T",
        type="object",
        properties={
            "title": {"type": "string", "format": "zip-code"},
            "x/y": {"anyOf": [{"type": "integer", "description": "d"}, {"const": {"title": "no"}}]},
            "when": {"$ref": "#/$defs/date", "description": "d"},
        },
        required=["title"],
        additionalProperties=False,
        then={"minProperties": 1},
        **{
            "$defs": {
                "date": {"type": "string", "format": "date"},
                "unused": {"type": "array", "items": {"examples": [1]}},
            },
            "x-own": 1,
        },
    )
    found = explain(spec, BYTES)
    told = {each.place: each.how for each in found.keywords if each.how != "enforced"}
    assert told == {
        "#/title": "annotation",
        "#/x-own": "annotation",
        "#/then": "not used",
        "#/then/minProperties": "not used",
        "#/properties/title/format": "not asserted",
        "#/properties/x~1y/anyOf/0/description": "annotation",
        "#/properties/when/description": "annotation",
        "#/$defs/unused/type": "not used",
        "#/$defs/unused/items": "not used",
        "#/$defs/unused/items/examples": "annotation",
    }
    enforced = {each.place: each.value for each in found.keywords if each.how == "enforced"}
    assert enforced == {
        "#/type": '"object"',
        "#/properties": "title, x/y, when",
        "#/required": '["title"]',
        "#/additionalProperties": "false",
        "#/properties/title/type": '"string"',
        "#/properties/x~1y/anyOf": "2 schemas",
        "#/properties/x~1y/anyOf/0/type": '"integer"',
        "#/properties/x~1y/anyOf/1/const": '{"title":"no"}',
        "#/properties/when/$ref": '"#/$defs/date"',
        "#/$defs/date/type": '"string"',
        "#/$defs/date/format": '"date"',
    }


def test_keywords_beside_a_reference_do_not_count_in_old_drafts() -> None:
    below = {"$ref": "#/definitions/a", "minimum": 3}
    spec = schema(
        type="array",
        items=below,
        definitions={"a": {"type": "integer"}},
        **{"$schema": "http://json-schema.org/draft-07/schema#"},
    )
    told = {each.place: (each.how, each.reason) for each in explain(spec, BYTES).keywords}
    assert told["#/items/$ref"] == ("enforced", "")
    assert told["#/items/minimum"][0] == "not used"
    assert "beside $ref" in told["#/items/minimum"][1]


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


def refusal_of(spec: Spec) -> list[str]:
    with pytest.raises(GrammarError) as caught:
        explain(spec)
    return list(refusal_lines(refusal(spec, caught.value)))


def test_a_refusal_shows_the_line_of_the_schema() -> None:
    text = """{
  "type": "object",
  "properties": {"a": {"type": "strng"}}
}"""
    assert refusal_of(JsonSchema(text)) == [
        "refused: type must be one of array, boolean, integer, null, number, object, string, or a list of these, not 'strng' (at #/properties/a/type)",
        '    3:   "properties": {"a": {"type": "strng"}}',
        "                              ^",
    ]


def test_a_refusal_shows_where_a_schema_is_no_json() -> None:
    lines = refusal_of(JsonSchema('{"type":\n  }'))
    assert lines[1:] == ["    2:   }", "         ^"]


def test_a_refusal_shows_the_column_of_a_pattern() -> None:
    assert refusal_of(Regex(r"(a)\1")) == [
        "refused: a backreference cannot be part of a constraint (at column 4)",
        r"    1: (a)\1",
        "          ^",
    ]


def test_a_refusal_of_a_grammar_shows_its_line_once() -> None:
    lines = refusal_of(Lark('start: "a" b'))
    assert lines[0].startswith("refused: ")
    assert "(at 1:12)" in lines[0]
    assert lines[1].split("\n") == ['    start: "a" b', "               ^"]


def test_a_refusal_lists_what_best_effort_would_leave_out() -> None:
    lines = refusal_of(schema(type="string", pattern=r"(a)\1"))
    at = lines.index("--best-effort would leave out:")
    assert lines[at + 1].startswith("  #/pattern  pattern  ")


def test_limits_that_are_half_used_are_named() -> None:
    found = explain(Regex("a{60}"), limits=Limits(spec_bytes=8))
    assert [(use.name, use.used, use.limit) for use in found.limits_near] == [("spec_bytes", 5, 8)]


@pytest.mark.parametrize("pattern", ["(ab)*", "(-[0-9]{4})+", "[a-c]{2}(-[a-c]{2}){0,3}", "x?"])
def test_a_text_that_may_end_or_go_on_for_several_tokens_has_a_sample(pattern: str) -> None:
    for seed in range(8):
        assert re.fullmatch(pattern, explain(Regex(pattern), BYTES, seed=seed).sample)


def test_an_explanation_is_told_in_lines() -> None:
    spec = schema(
        title="T",
        type="object",
        properties={"a": {"enum": ["x", "yz"]}},
        required=["a"],
    )
    lines = list(explanation_lines(explain(spec), unit="bytes"))
    assert re.fullmatch(
        r"compiled             [\d,]+ states, [\d,]+ edges, [\d,]+ regions, [\d,]+ bytes, \d+ ms",
        lines[0],
    )
    assert lines[1:5] == [
        """always begins with   {"a":\"""",
        "first bytes          1: `{`",
        """shortest             {"a":"x"}""",
        "bytes needed         9 suffice for the shortest",
    ]
    assert lines[7:] == [
        "loose                undeclared properties are allowed at #; add additionalProperties: false",
        "keywords             4 enforced, 1 annotation",
        """  #/title              "T"         annotation""",
        """  #/type               "object"    enforced""",
        """  #/properties         a           enforced""",
        """  #/required           ["a"]       enforced""",
        """  #/properties/a/enum  ["x","yz"]  enforced""",
    ]
