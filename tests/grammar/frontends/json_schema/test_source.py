"""Schema texts that cannot be used, and values written back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schema_checks import grammar_of, refused

from radixlm.errors import GrammarError
from radixlm.grammar.expr import Limits
from radixlm.grammar.frontends.json_schema import source
from radixlm.grammar.frontends.json_schema.source import parse, value_key, value_text

_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_json)
def test_values_are_written_compactly_and_read_back(value: Any):
    try:
        tree = parse(json.dumps(value), Limits())
    except GrammarError as error:
        assert "surrogate" in error.message  # noqa: PT017
        return
    assert json.loads(value_text(tree)) == value
    assert value_text(tree) == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_numbers_keep_their_spelling():
    assert (
        value_text(parse("[1.50,1e3,-0.0,10000000000000000000000]", Limits()))
        == "[1.50,1e3,-0.0,10000000000000000000000]"
    )


def test_equal_values_have_equal_keys():
    same = ['{"a":1,"b":[true]}', '{"b":[true],"a":1.0}']
    other = [
        '{"a":1,"b":[1]}',
        '{"a":true,"b":[true]}',
        '{"a":"1","b":[true]}',
        "[]",
        "null",
        "false",
        "0",
    ]
    keys = [value_key(parse(text, Limits())) for text in same + other]
    assert keys[0] == keys[1]
    assert len(set(keys)) == len(keys) - 1


def test_broken_json_is_refused_with_its_line_and_column():
    refused('{"type":\n  "string",}', place="2:12", message="not JSON")
    refused("", message="not JSON")
    refused('{"minimum": NaN}', message="NaN")


def test_a_repeated_key_is_refused_with_its_pointer():
    refused(
        '{"properties":{"a":{"type":"null","type":"string"}}}',
        place="#/properties/a",
        message="'type'",
    )


def test_a_schema_is_an_object_or_a_boolean():
    refused("[]", place="#", message="object, true or false")
    refused("3", place="#")


@pytest.mark.parametrize(
    "text",
    [
        '{"not":' * 10_000 + "{}" + "}" * 10_000,
        "[" * 10_000,
        '{"enum":[' + "[" * 500 + "]" * 500 + "]}",
    ],
)
def test_a_depth_bomb_is_refused_at_once(text: str):
    refused(text, message="depth=200")


def test_brackets_inside_strings_are_no_depth():
    grammar_of({"const": "[" * 1000})


def test_endless_numbers_are_refused():
    refused('{"minimum": ' + "9" * 5000 + "}", message="digits")
    refused('{"minimum": 1e999999999}', message="exponent")


@pytest.mark.parametrize("place", [0, 1, 386, 387, 388, 401, 777])
def test_a_number_that_is_just_too_long_is_found_wherever_it_stands(place: int):
    text = '{"title": "' + "x" * place + '", "minimum": %s}'
    refused(text % ("9" * 401), message="401 digits")
    assert parse(text % ("9" * 400), Limits())["minimum"] == int("9" * 400)


def test_half_of_a_surrogate_pair_is_refused_with_its_pointer():
    refused('{"enum":["a","\\ud83d"]}', place="#/enum/1", message="surrogate")


def test_limits_are_named():
    with pytest.raises(GrammarError, match="choices=3"):
        grammar_of({"enum": [1, 2, 3, 4]}, Limits(choices=3))
    with pytest.raises(GrammarError, match="spec_bytes=20"):
        grammar_of({"description": "x" * 30}, Limits(spec_bytes=20))


def test_a_huge_enum_is_only_work():
    grammar_of({"enum": [f"value {i}" for i in range(5000)]})


_pieces = st.sampled_from(
    ['"a":1', '"a" :1', '"":[', "{", "}", "[", "]", ",", ":", '"x"', '"\\":"', '":"', "-0", "1.50", "2e5", "1e999", "NaN", " ", "\n", "\x01", '"é"',
     '"\\ud800"', '"\\ud83d\\ude00"', '"\ud800"', "9" * 401, "9" * 30, "tru", "null"]
)  # fmt: skip


@given(
    st.one_of(
        st.lists(_pieces, max_size=8).map("".join),
        st.lists(st.tuples(st.text('ab:"\\', max_size=2), _json), max_size=4).map(
            lambda members: (
                "{" + ",".join(f"{json.dumps(k)}:{json.dumps(v)}" for k, v in members) + "}"
            )
        ),
    )
)
def test_the_quick_reading_never_differs_from_the_careful_one(text: str):
    def outcome(read: Any) -> object:
        try:
            return spelled(read())
        except GrammarError as error:
            return (error.message, error.place)

    def spelled(tree: Any) -> object:
        if isinstance(tree, dict):
            return [(key, spelled(value)) for key, value in tree.items()]
        if isinstance(tree, list):
            return [spelled(value) for value in tree]
        return (type(tree).__name__, getattr(tree, "text", tree))

    with pytest.MonkeyPatch.context() as patch:
        quick = outcome(lambda: parse(text, Limits()))
        patch.setattr(source, "_SPACED_COLON", re.compile(""))  # found everywhere: never sure
        assert outcome(lambda: parse(text, Limits())) == quick


def test_an_ordinary_schema_is_read_quickly(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(source, "_carefully", lambda *_: pytest.fail("read twice"))
    text = '{"a": {"b": [1, -0, 2.50, "x:\\"y"]}, "c": "\\u00e9"}'
    tree = parse(text, Limits())
    assert value_text(tree) == '{"a":{"b":[1,0,2.50,"x:\\"y"]},"c":"é"}'
