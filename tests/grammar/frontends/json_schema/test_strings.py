"""JSON spellings of decoded languages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_recogniser import slow_accepts

from radixlm.grammar.expr import Expr, Grammar, Seq, chars, conj, minus, repeat, star
from radixlm.grammar.frontends.json_schema.code_points import ANY_CHAR, ANY_TEXT, text_language
from radixlm.grammar.frontends.json_schema.pattern_language import search_language
from radixlm.grammar.frontends.json_schema.source import string_text
from radixlm.grammar.frontends.json_schema.strings import (
    StringText,
    any_string,
    are_simple,
    other_strings,
)

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
_specials = st.text(
    st.sampled_from('a"/\\\n\u0000\u001f\u007fé\u07ff\uffff😀\U0010ffff'), max_size=4
)


def in_quotes(language: Expr, text: str) -> bool:
    return slow_accepts(Grammar({"s": StringText().quoted(language)}, "s"), text)


@settings(max_examples=60)
@given(st.one_of(_texts, _specials))
def test_both_ways_of_json_dumps_spell_the_string_and_no_other(text: str):
    for spelling in (json.dumps(text), json.dumps(text, ensure_ascii=False), string_text(text)):
        assert in_quotes(ANY_TEXT, spelling)
        assert in_quotes(text_language(text), spelling)
        assert not in_quotes(minus(ANY_TEXT, text_language(text)), spelling)
        assert not in_quotes(text_language(text + "x"), spelling)


@settings(max_examples=200)
@given(st.text(st.sampled_from('a"\\/bfnrtu0dD83c7\n\t'), max_size=8))
def test_what_is_accepted_is_json_and_counts_its_code_points(body: str):
    spelling = f'"{body}"'
    try:
        value = json.loads(spelling)
    except ValueError:
        assert not in_quotes(ANY_TEXT, spelling)
        return
    if in_quotes(ANY_TEXT, spelling):
        value.encode()  # no half of a pair
        assert in_quotes(repeat(ANY_CHAR, len(value), len(value)), spelling)
        assert not in_quotes(repeat(ANY_CHAR, len(value) + 1, None), spelling)


@given(st.integers(0, 0x10FFFF), st.integers(0, 0x10FFFF), st.integers(0, 0x10FFFF))
def test_ranges_are_spelled_exactly(a: int, b: int, c: int):
    low, high = sorted((a, b))
    language = chars((low, high))
    for code_point in (low, high, c, low - 1, high + 1):
        if 0 <= code_point <= 0x10FFFF and not 0xD800 <= code_point <= 0xDFFF:
            is_in = low <= code_point <= high
            for spelling in (
                json.dumps(chr(code_point)),
                json.dumps(chr(code_point), ensure_ascii=False),
            ):
                assert in_quotes(language, spelling) == is_in


@pytest.mark.parametrize(
    "spelling",
    [
        '"\\ud83d"',
        '"\\ude00"',
        '"\\ud83d\\u0041"',
        '"\\u0041"',
        '"\\u0022"',
        '"\\x"',
        '"\n"',
        '"\x00"',
        '"',
        '""x',
    ],
)
def test_other_spellings_are_out(spelling: str):
    assert not in_quotes(ANY_TEXT, spelling)


def test_intersection_and_difference_hold_of_the_decoded_text():
    vowels = chars("aé")
    language = conj(star(vowels), minus(ANY_TEXT, text_language("é")))
    assert in_quotes(language, '"\\u00e9a"')
    assert not in_quotes(language, '"\\u00e9"')
    assert not in_quotes(language, '"é"')


@given(
    st.lists(st.text("ab ", max_size=3), max_size=5),
    st.one_of(st.text("ab c", max_size=4), _specials),
)
def test_strings_other_than_some_texts(texts: list[str], text: str):
    assert are_simple(texts)
    language = other_strings(texts)
    for spelling in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        assert slow_accepts(Grammar({"s": language}, "s"), spelling) == (text not in texts)
    assert not are_simple(["é"])


@given(st.lists(st.text("ab", max_size=12), max_size=30), st.text("abc", max_size=13))
def test_strings_other_than_many_texts_that_begin_alike(texts: list[str], text: str):
    language = other_strings(texts)
    assert slow_accepts(Grammar({"s": language}, "s"), json.dumps(text)) == (text not in texts)


def test_nested_texts_need_no_recursion():
    texts = ["a" * n for n in range(3000)]
    language = other_strings(texts)
    assert isinstance(language, Seq)


def test_texts_are_remembered_from_schema_to_schema():
    pattern = search_language("^a+[0-9]$", "")
    assert search_language("^a+[0-9]$", "elsewhere") is pattern
    assert StringText().quoted(pattern) is StringText().quoted(pattern)
    assert StringText().quoted(ANY_TEXT) is any_string(0, None)
    assert StringText().quoted(repeat(ANY_CHAR, 2, 9)) is any_string(2, 9)
