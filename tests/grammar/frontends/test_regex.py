"""The regex front end against Python's own `re.fullmatch`, and what it refuses."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_vocabulary import accepts, allowed, byte_vocabulary, matcher_of

from radixlm.errors import GrammarError
from radixlm.grammar.compiler import compile_spec
from radixlm.grammar.expr import Limits
from radixlm.grammar.matcher import Matcher
from radixlm.grammar.spec import Regex

VOCABULARY = byte_vocabulary()
SHORT = ["".join(text) for size in range(5) for text in product("ab\n ", repeat=size)]


def matcher(pattern: str) -> Matcher:
    return matcher_of(compile_spec(Regex(pattern), VOCABULARY.alphabet), VOCABULARY)


def check(pattern: str, texts: list[str]) -> None:
    wanted = {text for text in texts if re.fullmatch(pattern, text)}
    try:
        start = matcher(pattern)
    except GrammarError as error:
        assert error.keyword == "unsatisfiable"  # noqa: PT017
        assert not wanted, pattern
        return
    for text in texts:
        assert accepts(start, text.encode()) == (text in wanted), (pattern, text)


_atoms = st.sampled_from(
    ["a", "b", "ab", ".", r"\s", r"\w", "[^a]", "[ab]", r"\n", "(?i:A)", "(?s:.)", "(?a:\\w)", " "]
)
_edges = st.sampled_from(
    [
        "^",
        "$",
        r"\A",
        r"\Z",
        r"\b",
        r"\B",
        "(?m:^)",
        "(?m:$)",
        "(?=a)",
        "(?!b)",
        "(?<=a)",
        "(?<!b )",
    ]
)
_counts = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0,2}?"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, _counts).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    )


@given(st.recursive(_atoms, _grown, max_leaves=8))
@settings(max_examples=80, deadline=None)
def test_random_patterns_without_assertions_equal_re(pattern: str) -> None:
    check(pattern, SHORT)


@given(st.recursive(st.one_of(_atoms, _edges), _grown, max_leaves=6))
@settings(max_examples=60, deadline=None)
def test_random_patterns_with_assertions_anywhere_equal_re(pattern: str) -> None:
    check(pattern, SHORT)


@pytest.mark.parametrize(
    "pattern",
    [
        "", "a", "a|b|", "(a)(?P<n>b)", "(?:)", "[]a]", "[^]]", r"[\]a-]", "(?i)straße", "(?i)[k-m]ſ", "(?i)[^a]", "(?ia)k",
        r"\d", r"(?a)\d", r"\D\W\S", r"[\d\s]", r"[^\W\d]", "(?s)a.b", "(?x) a  b # c", r"\x41\u00e9", "é{2,3}", "[à-é]",
        "^a$|b", "a$\n?", "(^a|b)c", "(?m)^a$\n^b$", r"\bab\b", r"a\b b", r"\B", r"(?:\b|%)+", "(?=ab).*b", "(?!a).b", "(a(?=b)|b)*",
        r"(?<=a)b|a(?<!b)", "(?s:.(?!b))*", "(?:(?=a)a|(?!a)b)*",
    ],
)  # fmt: skip
def test_python_syntax_means_what_it_means_in_python(pattern: str) -> None:
    texts = [
        *SHORT,
        "A",
        "é",
        "éé",
        "ééé",
        "É",
        "K",
        "K",
        "k",
        "ß",
        "STRASSE",
        "straße",
        "STRAßE",
        "STRAſſE",
        "lS",
        "ls",
        "Mſ",
    ]
    texts += [
        "]",
        "-",
        "^",
        "٣",
        "5",
        "a-b",
        "_",
        "ab%",
        "%",
        "%a",
        "x\x85",
        "Aé",
        "à",
        "ac",
        "bc",
        "1 -",
        " a",
        "a b",
    ]
    check(pattern, texts)


@pytest.mark.parametrize(
    ("pattern", "name", "place"),
    [
        (r"ab(c)\1", "backreference", "column 6"),
        (r"[\1](?P<x>a)(?P=x)", "backreference", "column 13"),
        (r"(a)?(?(1)b|c)", "conditional", "column 5"),
        (r"a(?>bc)", "atomic", "column 2"),
        (r"[+*+]ab*+", "possessive", "column 8"),
        (r"(?=a(?=b))", "look-around inside a look-around", "column 1"),
        ("[a-z", "not valid", "column 1"),
        ("a)", "not valid", "column 2"),
        ("(?z)a", "not valid", "column 2"),
        ("a{99999999999}", "repeat", ""),
        ("a{2000000}", "limits.repeat_bound=1000000", "column 2"),
        ("(" * 3000 + ")" * 3000, "nested", ""),
    ],
)
def test_what_is_not_supported_is_refused_by_name_with_its_column(
    pattern: str, name: str, place: str
) -> None:
    with pytest.raises(GrammarError, match=re.escape(name)) as caught:
        matcher(pattern)
    assert caught.value.place == place


def test_limits_of_the_front_end_name_themselves() -> None:
    for pattern, limits in (
        ("a" * 50, Limits(spec_bytes=40)),
        ("((((a))))", Limits(depth=2)),
        ("a{9}", Limits(repeat_bound=8)),
    ):
        name = next(
            n for n in Limits.__dataclass_fields__ if getattr(limits, n) != getattr(Limits(), n)
        )
        with pytest.raises(GrammarError, match=f"limits.{name}=") as caught:
            compile_spec(Regex(pattern), VOCABULARY.alphabet, limits)
        assert caught.value.keyword == name


def test_assertions_inside_long_repeats_are_refused_at_once() -> None:
    for pattern in (
        r"(?:(?<=a)|(?s:.)){1000}",
        r"(?:x(?:\b|a){20}){20}",
        r"(?:a\b )*(?:a\b ){0,5000}",
        r"(?:(?:^|b){300}c)*",
    ):
        with pytest.raises(GrammarError, match="inside repeats of more than") as caught:
            matcher(pattern)
        assert caught.value.keyword == "assertion"
    for pattern, text in (
        (r"(?:(?<=a)|(?s:.)){100}", "b" * 3),
        (r"(?:a\b ){0,300}", "a " * 300),
        (r"(?:\b[ab]|c)*", "c" * 30),
    ):
        check(pattern, [text, text + "!"])


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        (r"(a|aa){5,100}", 5, 200),
        (r"[ab]{3,10000}", 3, 10000),
        (r"(aa|a){0,10000}b?", 0, 20000),
        (r"(a{2,5}|b){10,2000}", 20, 10000),
        (r"(b?a?){40}", 0, 40),
    ],
)
def test_long_and_ambiguous_counts_are_counted(pattern: str, least: int, most: int) -> None:
    program = compile_spec(Regex(pattern), VOCABULARY.alphabet)
    assert program.num_bytes < 2000  # not written out
    check(pattern, ["", "a", "aa", "ab", "aab" * 3, "a" * 5, "b" * 10, "abab"])
    start = matcher(pattern)
    for count in {0, 1, max(least - 1, 0), least, least + 1, 39, 41, 199, 200, 201}:
        assert accepts(start, b"a" * count) == (least <= count <= most), count


def test_a_pattern_nothing_can_match_is_refused() -> None:
    for pattern in ("(?!)", "a(?!b)b", r"a\bb", "a^b", "[^\\s\\S]"):
        with pytest.raises(GrammarError, match="no output"):
            matcher(pattern)


def test_pathological_patterns_simply_finish() -> None:
    patterns = [
        "((a{0,100}){0,100}){0,100}", "((a{1,100}b){2,100}){3,100}", "(a*)*b", "(a|a)*b", "(?:a?){500}a{500}", "((((a*)*)*)*)*c",
        "|".join(f"option number {index} of many" for index in range(5000)), "(x+x+)+y", "[a-z]{1,100000}", "(?:(?:a{9}){9}){9}",
    ]  # fmt: skip
    for pattern in patterns:
        start = matcher(pattern)
        assert allowed(start, VOCABULARY)
        assert not accepts(start, b"xxxxxxxxxxxxxxxxxxxxxxxxx!")
