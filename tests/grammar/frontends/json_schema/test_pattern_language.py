"""Patterns against Python's `re` where the two dialects agree, and against tables where they do not."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from radixlm.errors import GrammarError
from radixlm.grammar.frontends.json_schema.code_points import (
    accepts,
    within_lengths,
)
from radixlm.grammar.frontends.json_schema.lengths import length_range
from radixlm.grammar.frontends.json_schema.pattern_language import search_language

ALPHABET = "ab-"
TEXTS = ["".join(t) for size in range(5) for t in product(ALPHABET, repeat=size)]

_atoms = st.sampled_from(
    ["a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\W", r"\s", r"\d", "(?:)", "(ab|)"]
)
_edges = st.sampled_from(["^", "$", r"\b", r"\B"])


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"({p[0]}|{p[1]})"),
        st.tuples(
            inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "*?", "{1,}"])
        ).map(lambda p: f"(?:{p[0]}){p[1]}"),
        inner.map(lambda p: f"(?={p})"),
        inner.map(lambda p: f"(?!{p})"),
    )


_patterns = st.recursive(st.one_of(_atoms, _edges), _grow, max_leaves=6)


@settings(max_examples=80, deadline=None)
@given(_patterns)
def test_a_pattern_is_found_where_re_finds_it(pattern: str):
    try:
        compiled = re.compile(pattern, re.ASCII)
        language = search_language(pattern, "#")
    except (re.error, GrammarError):
        assume(False)
        return
    # before Python 3.14 \\B is not found in the empty string, where ECMA-262 finds it
    for text in TEXTS[1:] if r"\B" in pattern else TEXTS:
        assert accepts(language, text) == (compiled.search(text) is not None), (pattern, text)


@settings(max_examples=30, deadline=None)
@given(_patterns, st.integers(0, 3), st.one_of(st.none(), st.integers(0, 4)))
def test_a_range_of_lengths_leaves_exactly_the_strings_inside_it(
    pattern: str, low: int, high: int | None
):
    try:
        language = search_language(pattern, "#")
    except GrammarError:
        assume(False)
        return
    assume(high is None or low <= high)
    narrowed = within_lengths(language, low, high)
    bounds = length_range(language)
    for text in TEXTS:
        is_inside = accepts(language, text)
        assert accepts(narrowed, text) == (
            is_inside and low <= len(text) and (high is None or len(text) <= high)
        )
        assert not is_inside or (bounds is not None and bounds[0] <= len(text))


TABLE = [
    (r"^\d$", ["7"], ["٣", "77", "", "7\n"]),
    (r"^.$", ["a", "😀"], ["\n", "\r", "\u2028", "ab"]),
    (r"^\s$", [" ", "\t", "\u00a0", "\ufeff", "\u3000"], ["a", "\u200b"]),
    (r"^[^]$", ["a", "\n"], ["", "ab"]),
    (r"^[\w.-]+$", ["a.b-c_9"], ["a b", ""]),
    (r"^\u00e9\x41\u{1F600}\cJ\0$", ["éA😀\n\0"], ["e"]),
    (r"^\ud83d\ude00$", ["😀"], ["\U0001f601"]),
    (r"^\/\-\.\@$", ["/-.@"], ["\\/"]),
    (r"^(?<year>\d{4})-(?:0[1-9]|1[0-2])$", ["2026-11"], ["2026-13"]),
    (r"^\p{Lu}\P{L}$", ["É1", "A-"], ["é1", "AB"]),
    (r"^a{2}b{1,}c{0,1}d{$", ["aabd{", "aabbcd{"], ["abd{"]),
    (r"^(?!\.)(?!.*\.\.)[a-z.]+$", ["a.b", "ab."], [".a", "a..b"]),
    (r"\bfoo\b", ["foo", "a foo", "foo-"], ["food", "a_foo"]),
    (r"^[a-z]+\b-\b[a-z]+$", ["ab-c"], ["-c", "ab-"]),
    (r"^[a-\d]$", ["a", "-", "5"], ["b"]),
    (r"[]", [], ["", "a"]),
    (r"^$", [""], ["a"]),
    (r"a$b", [], ["a", "ab", "b"]),
    (r"^(a|b$)", ["a", "ax", "b"], ["bx", "xa"]),
]


@pytest.mark.parametrize(("pattern", "found", "missed"), TABLE)
def test_ecma_syntax_means_what_ecma_says(pattern: str, found: list[str], missed: list[str]):
    language = search_language(pattern, "#")
    assert [t for t in found if not accepts(language, t)] == []
    assert [t for t in missed if accepts(language, t)] == []


REFUSED = {
    r"(a)\1": "backreference",
    r"(?<n>a)\k<n>": "backreference",
    r"(?<=a)b": "lookbehind",
    r"(?i)a": "(?i",
    r"(?P<n>a)": "(?P",
    r"(?>a)": "(?>",
    r"a++": "possessive",
    r"a**": "quantifier",
    r"*a": "nothing to repeat",
    r"a{3,2}": "wrong order",
    r"[b-a]": "wrong order",
    r"(a": "not closed",
    r"a)": "unmatched",
    r"[a": "not closed",
    "a\\": "backslash",
    r"\Aa\Z": "\\A",
    r"a{,3}": "{,n}",
    r"\u12": "hexadecimal",
    r"\p{Klingon}": "Klingon",
    r"(?:(?=a)b)*": "inside a repeat",
    "(" * 70 + ")" * 70: "nest deeper",
    r"a{1,99999999999}": "digits",
    "a" * 30_000: "longer than",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_not_a_regular_ecma_pattern_is_refused_by_name(pattern: str):
    with pytest.raises(GrammarError, match=re.escape(REFUSED[pattern])) as info:
        search_language(pattern, "#/pattern")
    assert (info.value.place, info.value.keyword) == ("#/pattern", "pattern")
