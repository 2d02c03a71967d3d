"""Formats: which strings they name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import UUID4, TypeAdapter
from slow_recogniser import slow_accepts

from radixlm.grammar.expr import Expr, Grammar
from radixlm.grammar.frontends.json_schema.code_points import accepts
from radixlm.grammar.frontends.json_schema.formats import format_named
from radixlm.grammar.frontends.json_schema.pattern import parse
from radixlm.grammar.frontends.json_schema.strings import StringText

_SUITE = Path(__file__).parents[5] / "shared" / "data" / "jsts_draft2020-12.jsonl"


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


def is_named(name: str, text: str) -> bool:
    """The same of the decoded text alone, without a JSON spelling."""
    found = format_named(name, "")
    assert found is not None
    assert found.language is not None
    return accepts(found.language, text)


@pytest.mark.parametrize(
    ("name", "passing", "failing"),
    [
        ("hostname", ["a", "a-b.c1", "ab.com", "a--b.com", "abc--d.e", "a" * 63], ["-a", "a-", "a_b", "", "xn--a", "ab--cd", "a" * 64]),
        ("hostname", ["x" * 63 + ".com", ".".join(["abcdefg"] * 30)], ["a..b", "a.", ".a", ".".join(["abcdefgh"] * 30)]),
        ("idn-hostname", ["bücher.example", "例え", "host"], ["\u0301a", "a\u00b7l", "xn--x", "ü" * 60]),
        ("idn-email", ["ü@example.com", "a@bücher.example", "a@b.c"], ["a＠b.c", "a", "a@"]),
        ("iri", ["http://ƒøø.ßår/?q=\ue000", "urn:x"], ["http://a/\ue000", "/a", "http://a/\ufffe", "x:\U0001ffff"]),
        ("uri-template", ["a'b/{x}", "😀{?x,y*}"], ["{", "a b", "{}"]),
        ("byte", ["", "QQ==", "QUI=", "QUJD"], ["Q", "QQ=", "QQ===", "Q-=="]),
        ("json-pointer", ["", "/a~1b/~0", "//"], ["a", "/~", "/~2"]),
        ("relative-json-pointer", ["0", "1/a", "0#"], ["01", "-1", "#", "0##"]),
        ("time", ["23:59:60Z", "00:00:00+23:59", "08:30:06.283185z"], ["24:00:00Z", "00:00:60Z", "08:30:06", "00:00:00+24:00"]),
        ("date", ["2024-02-29", "2000-02-29", "1999-04-30", "0001-01-01", "0010-12-31", "0400-02-29", "9999-12-31"],
         ["2023-02-29", "1900-02-29", "1999-04-31", "99-01-01", "0000-01-01", "0000-02-29"]),
    ],
)  # fmt: skip
def test_what_a_format_names(name: str, passing: list[str], failing: list[str]) -> None:
    assert [text for text in passing if not is_named(name, text)] == []
    assert [text for text in failing if is_named(name, text)] == []


@pytest.mark.parametrize("name", ["float", "double", "password", "zipcode"])
def test_other_names_are_annotations(name: str) -> None:
    assert format_named(name, "") is None


@pytest.mark.parametrize(
    "text",
    ["", "^[a-z0-9_.-]+$", r"(\d{3}|x{2,}){1,2}?$", r"a(?=b)(?!c)|(?:d|)", r"[^\]\-\w\u00e9]*", r"\x41\/\.", "((((a))))", "(((((a)))))", "é+😀"],
)  # fmt: skip
def test_regular_expressions(text: str) -> None:
    assert is_in("regex", text)
    re.compile(text)
    parse(text, "")


@pytest.mark.parametrize(
    "text",
    ["(", ")", "[a", "[z-a]", "[]", "*a", "a**", "a{2,1}", "a{,2}", "(?P<n>a)", "(?i)a", r"\Z", r"\a", r"\1", "\\", "a{2", "]", r"\u12", r"\ud800", "(?=a)*"],
)  # fmt: skip
def test_what_is_no_regular_expression(text: str) -> None:
    assert not is_in("regex", text)


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab01,|()[]{}?*+^$\\.-:=!dwbux"), max_size=9))
def test_a_text_of_the_format_regex_is_one_everywhere(text: str) -> None:
    if is_named("regex", text):
        re.compile(text)
        parse(text, "")


@pytest.mark.data
def test_no_invalid_text_of_the_official_suite_is_named() -> None:
    if not _SUITE.exists():
        pytest.skip(f"{_SUITE} is not there")
    seen: set[str] = set()
    wrong: list[tuple[str, str]] = []
    for row in map(json.loads, _SUITE.read_text().split("\n")[:-1]):
        name = row["schema"].get("format") if isinstance(row["schema"], dict) else None
        if row["required"] or name is None or format_named(name, "") is None:
            continue
        seen.add(name)
        texts = [v["data"] for v in row["invalid"] if isinstance(v["data"], str)]
        wrong += [(name, text) for text in texts if is_named(name, text)]
    assert wrong == []
    assert len(seen) >= 19
