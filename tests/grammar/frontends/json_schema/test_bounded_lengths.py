"""Languages met with lengths, against the definition; formats beside a `maxLength`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radixlm.grammar.expr import And, Expr, Minus, Repeat, chars, conj, minus, repeat, seq
from radixlm.grammar.frontends.json_schema.bounded_lengths import (
    bounded,
    characters,
    shorter_texts,
)
from radixlm.grammar.frontends.json_schema.code_points import (
    ANY_CHAR,
    accepts,
    text_language,
    within_lengths,
)
from radixlm.grammar.frontends.json_schema.formats import format_named
from radixlm.grammar.frontends.json_schema.lengths import length_range
from radixlm.grammar.frontends.json_schema.pattern_language import search_language

_PATTERNS = (
    r"^a?b?c*$",
    r"^(a|bb)?(c|dd)?a*$",
    r"^a*b*$",
    r"^https?:a*$",
    r"^[ab]+( [ab]+)*$",
    r"^(a*b*)*$",
    r"^(?!b)a*b?$",
    r"^(a?b?){0,3}$",
)
_LENGTHS = st.integers(0, 6), st.one_of(st.none(), st.integers(0, 9))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(_PATTERNS), *_LENGTHS, st.text("abcd :htps", max_size=10))
def test_lengths_are_those_of_the_definition(pattern: str, lo: int, hi: int | None, text: str):
    language = search_language(pattern, "")
    narrowed = bounded(language, lo, hi, within_lengths)
    expected = (
        bool(re.search(pattern, text)) and lo <= len(text) and (hi is None or len(text) <= hi)
    )
    assert accepts(narrowed, text) == expected


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(_PATTERNS), st.integers(0, 30), *_LENGTHS)
def test_texts_of_the_pattern_stay_in(pattern: str, seed: int, lo: int, hi: int | None):
    language = search_language(pattern, "")
    narrowed = bounded(language, lo, hi, within_lengths)
    for text in ("", "a", "abc", "aaaa", "http:", "https:aa", "ab ba b", "bbdda", "aabb", "ababab"):
        inside = lo <= len(text) and (hi is None or len(text) <= hi)
        assert accepts(narrowed, text) == (accepts(language, text) and inside), (text, seed)


def test_a_part_that_only_seems_to_be_optional_stays():
    some = minus(repeat(chars("a"), 0, 3), text_language(""))
    language = seq(some, repeat(chars("b"), 0, None))
    assert length_range(language) == (0, None)
    narrowed = bounded(language, 1, None, within_lengths)
    assert accepts(narrowed, "ab")
    assert not accepts(narrowed, "b")


def test_a_counter_counts_only_characters_that_occur():
    language = search_language(r"^[a-z]+( [a-z]+)*$", "")
    assert characters(language) == chars((0x20, 0x20), (0x61, 0x7A))
    assert characters(conj(ANY_CHAR, chars("x"))) == ANY_CHAR
    narrowed = bounded(language, 0, 500, within_lengths)
    assert isinstance(narrowed, And)
    assert narrowed.items[1] == Repeat(characters(language), 0, 500)


def test_a_short_optional_part_needs_no_counter():
    narrowed = bounded(search_language("^https?://", ""), 1, 2083, within_lengths)
    assert not _has_product(narrowed)
    assert accepts(narrowed, "https://" + "x" * 2075)
    assert not accepts(narrowed, "https://" + "x" * 2076)
    assert accepts(narrowed, "http://" + "x" * 2076)


def _has_product(language: Expr) -> bool:
    match language:
        case And() | Minus():
            return True
        case Repeat(item):
            return _has_product(item)
        case _:
            return any(map(_has_product, getattr(language, "items", ())))


_ADDRESSES = (
    "ann@example.org",
    "first.last+tag@mail.example.co.uk",
    "a@b",
    "x@[127.0.0.1]",
)
_URIS = (
    "https://example.org/a/b.html?q=1&r=%20#top",
    "http://user@[::1]:8080/",
    "urn:isbn:0451450523",
    "mailto:ann@example.org",
    "file:///etc/hosts",
)
_REFERENCES = ("../a/b", "/x/y?z", "//host/path", "#top", "?q", "a")


@pytest.mark.parametrize("most", [64, 100, 255, 2083])
@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("email", _ADDRESSES),
        ("uri", _URIS),
        ("uri-reference", _URIS + _REFERENCES),
        ("iri", (*_URIS, "http://例え.jp/é")),
        ("iri-reference", (*_REFERENCES, "é/ü")),
    ],
)
def test_formats_of_bounded_length_hold_the_usual_texts_and_no_others(
    name: str, texts: tuple[str, ...], most: int
):
    language = _format_language(name)
    for least in (0, 1, 3):
        shorter = shorter_texts(language, least, most, within_lengths)
        assert shorter is not None
        bounds = length_range(shorter)
        assert bounds is not None
        assert bounds[1] is not None
        assert least <= bounds[0]
        assert bounds[1] <= most
        for text in texts:
            if least <= len(text) <= most and (most >= 255 or not set("[%") & set(text)):
                assert accepts(language, text), text
                assert accepts(shorter, text), text


@pytest.mark.parametrize("name", ["email", "uri", "uri-reference", "iri", "iri-reference"])
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_texts_of_formats_of_bounded_length_are_texts_of_the_format(name: str, data: st.DataObject):
    language = _format_language(name)
    shorter = shorter_texts(language, 1, 70, within_lengths)
    assert shorter is not None
    text = data.draw(st.text("ab.@:/?#[]%41-_é", min_size=1, max_size=14))
    text = data.draw(st.sampled_from(["", "a:", "a://", "a@", "//", "a%41"])) + text
    if accepts(shorter, text):
        assert accepts(language, text)


@pytest.mark.parametrize("name", ["email", "uri", "uri-reference", "iri", "iri-reference"])
def test_no_text_of_a_bounded_format_is_too_long(name: str):
    for most in (*range(40, 75), *range(75, 1000, 37), 2083, 65535):
        shorter = shorter_texts(_format_language(name), 0, most, within_lengths)
        assert shorter is not None
        bounds = length_range(shorter)
        assert bounds is not None
        assert bounds[1] is not None
        assert bounds[1] <= most
    assert shorter_texts(_format_language(name), 0, 39, within_lengths) is None


def _format_language(name: str) -> Expr:
    found = format_named(name, "")
    assert found is not None
    assert found.language is not None
    return found.language
