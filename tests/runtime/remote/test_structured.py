"""Constraints as other servers take them: never wider than asked, and the way back from the JSON."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from radixlm.errors import GrammarError, OutputError
from radixlm.grammar.spec import AfterReasoning, Choice, Gbnf, JsonSchema, Lark, Regex
from radixlm.runtime.remote.dialect import all_dialects, dialect_of, dialect_of_owner
from radixlm.runtime.remote.structured import (
    Wrapped,
    alternatives,
    cannot_enforce,
    closed,
    gbnf_of,
    object_schema,
)


def test_a_choice_and_a_pattern_are_the_one_property_of_an_object() -> None:
    schema, wrapped = object_schema(Choice(("a", "b")), "it")
    assert schema["properties"]["answer"]["enum"] == ["a", "b"]
    assert wrapped is not None
    assert wrapped.whole('{"answer": "b"}', "it") == "b"
    schema, wrapped = object_schema(Regex("a|b"), "it")
    assert schema["properties"]["answer"]["pattern"] == "^(?:a|b)$"
    assert wrapped is not None
    assert wrapped.whole('{"answer":"a"}', "it") == "a"


def test_a_schema_of_an_object_goes_as_it_is_and_others_are_wrapped() -> None:
    own = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    assert object_schema(JsonSchema(json.dumps(own)), "it") == (own, None)
    schema, wrapped = object_schema(JsonSchema('{"type":"array","items":{"$ref":"#/$defs/I"},"$defs":{"I":{"type":"integer"}}}'), "it")  # fmt: skip
    jsonschema.validate({"answer": [1, 2]}, schema)
    assert wrapped is not None
    assert wrapped.whole('{ "answer" : [1, 2] }', "it") == "[1,2]"


@pytest.mark.parametrize(
    "spec", [Lark('start: "a"'), Gbnf('root ::= "a"'), AfterReasoning(Regex("a"))]
)
def test_what_no_schema_says_is_refused_by_name(spec: Any) -> None:
    with pytest.raises(GrammarError, match="it cannot enforce") as raised:
        object_schema(spec, "it")
    assert raised.value.place == (
        "AfterReasoning" if isinstance(spec, AfterReasoning) else "grammar"
    )
    assert str(cannot_enforce(spec, "it", "Try other")).endswith("Try other")


@pytest.mark.parametrize("text", ["no JSON", "{}", '{"answer": ', "[]"])
def test_an_answer_that_broke_its_schema_is_an_output_error(text: str) -> None:
    with pytest.raises(OutputError, match="did not keep to the schema"):
        Wrapped("text").whole(text, "it")


def test_a_pattern_is_looked_at_again() -> None:
    with pytest.raises(OutputError, match="did not keep to the pattern"):
        Wrapped("text", "[0-9]+").whole('{"answer": "x"}', "it")
    assert Wrapped("text", r"\p{L}+").whole('{"answer": "x"}', "it") == "x"  # Python cannot read it


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("text", '{"answer": "hal', "hal"), ("text", '{"answer":"a\\n\\u00e', "a\n"), ("text", '{"answer": "', ""),
        ("text", '{"ans', ""), ("value", '{"answer": [1, 2', "[1, 2"), ("value", "{", ""),
    ],
)  # fmt: skip
def test_a_cut_answer_gives_what_is_there(kind: Any, text: str, expected: str) -> None:
    assert Wrapped(kind).partial(text) == expected


def test_closing_a_schema_only_narrows_it() -> None:
    inner = {"type": "object", "properties": {"z": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"$ref": "#/$defs/B"},
            "c": {"type": "array", "items": inner},
        },
        "required": ["a"],
        "$defs": {"B": {"anyOf": [inner, {"type": "null"}]}},
    }
    before = json.dumps(schema)
    strict = closed(schema, "it", all_required=True)
    assert json.dumps(schema) == before
    assert strict["required"] == ["a", "b", "c"]
    assert strict["$defs"]["B"]["anyOf"][0] == {
        **inner,
        "additionalProperties": False,
        "required": ["z"],
    }
    assert strict["properties"]["c"]["items"]["additionalProperties"] is False
    good = {"a": 1, "b": None, "c": [{"z": "q"}]}
    jsonschema.validate(good, strict)
    jsonschema.validate(good, schema)
    loose = closed(schema, "it", all_required=False)
    assert loose["required"] == ["a"]


def test_an_object_without_listed_properties_is_refused_at_its_place() -> None:
    schema = {
        "type": "object",
        "properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}},
    }
    with pytest.raises(GrammarError) as raised:
        closed(schema, "it", all_required=True)
    assert raised.value.place == "#/properties/m"


@pytest.mark.parametrize("keyword", ["not", "if"])
def test_a_keyword_under_which_narrowing_widens_is_refused_at_its_place(keyword: str) -> None:
    turned = {"properties": {"a": {"const": 1}}}
    inner = {"type": "object", "properties": {"a": {}, keyword: {}}, keyword: turned}
    schema = {"type": "object", "properties": {"x": inner}}
    with pytest.raises(GrammarError, match=f"with '{keyword}' cannot be closed") as raised:
        closed(schema, "it", all_required=False)
    assert raised.value.place == f"#/properties/x/{keyword}"
    del inner[keyword]
    assert keyword in closed(schema, "it", all_required=True)["properties"]["x"]["required"]


@pytest.mark.parametrize("name", ["vllm", "vllm-guided", "sglang", "llama.cpp", "openai"])
def test_a_lookaround_is_refused_by_name(name: str) -> None:
    constrain = dialect_of(name).constrain
    for pattern in ("(?!no)a*", "a(?=b)b", "(?<=a)b", "a(?<!b)", r"[\]](?=b)b", r"\\(?=b)b"):
        with pytest.raises(GrammarError, match="does not enforce lookarounds") as raised:
            constrain(Regex(pattern), True)
        assert (raised.value.place, raised.value.keyword) == ("regex", "lookaround")
    for pattern in ("(?:a|b)", r"\(?=", "[(?=]", r"[\](?=]", "[](?!]"):
        assert constrain(Regex(pattern), True).fields


def test_a_lookaround_reaches_our_own_server() -> None:
    assert dialect_of("radixlm").constrain(Regex("a(?=b)b"), True).fields == {"regex": "a(?=b)b"}


def test_choices_as_a_pattern_and_as_gbnf_hold_special_characters() -> None:
    import re

    choice = Choice(("a.b", "(c)", 'say "x"', "1+1", "a b"))
    for text in choice.options:
        assert re.fullmatch(alternatives(choice), text)
    assert re.fullmatch(alternatives(choice), "aXb") is None
    assert gbnf_of(Choice(("a", 'b"'))) == 'root ::= "a" | "b\\""'


# ---------------------------------------------------------------------------------------------- dialects


def test_dialects_are_found_by_name_and_by_owner() -> None:
    known = all_dialects()
    assert {"openai", "vllm", "vllm-guided", "sglang", "llama.cpp", "radixlm"} == set(known)
    assert dialect_of_owner("vllm").name == "vllm"
    assert dialect_of_owner("llamacpp").name == "llama.cpp"
    assert dialect_of_owner("somebody").name == "openai"
    with pytest.raises(Exception, match=r"there is no dialect 'vlm'.*Known: auto, "):
        dialect_of("vlm")


CASES: list[tuple[str, Any, bool, Any]] = [
    ("vllm", Regex("a"), True, {"structured_outputs": {"regex": "a"}}),
    ("vllm", Choice(("a",)), True, {"structured_outputs": {"choice": ["a"]}}),
    ("vllm", Lark("start: x"), False, {"structured_outputs": {"grammar": "start: x"}}),
    ("vllm-guided", JsonSchema('{"type":"integer"}'), False, {"guided_json": {"type": "integer"}}),
    ("sglang", Regex("a"), True, {"regex": "a"}),
    ("sglang", Choice(("a.", "b")), True, {"regex": r"(a\.|b)"}),
    ("sglang", Gbnf("root ::= x"), True, {"ebnf": "root ::= x"}),
    ("sglang", JsonSchema("{}"), False, {"json_schema": "{}"}),
    ("sglang", Lark("start: x"), True, None),
    ("llama.cpp", Choice(("a",)), True, {"grammar": 'root ::= "a"'}),
    ("llama.cpp", JsonSchema('{"type":"integer"}'), True, {"json_schema": {"type": "integer"}}),
    ("llama.cpp", Lark("start: x"), True, None),
    ("openai", Regex("a"), False, None),
    ("openai", Gbnf("root ::= x"), True, None),
    ("radixlm", Choice(("a",)), False, {"choices": ["a"]}),
    ("radixlm", AfterReasoning(Regex("a")), False, None),
]


@pytest.mark.parametrize(("name", "spec", "is_chat", "fields"), CASES)
def test_each_dialect_says_a_constraint_in_its_own_fields(name: str, spec: Any, is_chat: bool, fields: Any) -> None:  # fmt: skip
    if fields is None:
        with pytest.raises(GrammarError, match="cannot enforce"):
            dialect_of(name).constrain(spec, is_chat)
        return
    assert dialect_of(name).constrain(spec, is_chat).fields == fields
