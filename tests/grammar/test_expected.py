"""What may come next, in words: sets of characters by name, words whole."""

from __future__ import annotations

import json

import pytest

from radixlm.grammar.explain.byte_reading import byte_matcher, read
from radixlm.grammar.explain.expected import expected_next, shown
from radixlm.grammar.spec import JsonSchema, Regex


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("foo|bar", ("`bar`", "`foo`")),
        (r"[0-9]x", ("a digit",)),
        (r"[2-7]x", ("a digit 2 to 7",)),
        ("[0-9a-fA-F]{4}", ("a digit", "a letter a to f", "a letter A to F")),
        ("[a-z_]+", ("`_`", "a small letter")),
        ("[A-Z][a-z]*", ("a capital letter",)),
        ("a?", ("`a`", "the end of the text")),
        ("", ("the end of the text",)),
        ("[ \t]x", ("white space",)),
        ("\nx?", ("a line break",)),
        (r"[^\n]*", ("any character", "the end of the text")),
        ("[ -~]", ("any ASCII character",)),
        ("[ !#-~]", ('any ASCII character but `"`',)),
        ("[éß]", ("`ß`", "`é`")),
        ("[α-ω]", ("some characters beyond ASCII",)),
        (r"[^\x00-\x7f]", ("a character beyond ASCII",)),
        ("x[ab]{9}", ("`x`",)),
    ],
)
def test_sets_have_names_and_words_stand_whole(pattern: str, words: tuple[str, ...]) -> None:
    assert expected_next(byte_matcher(Regex(pattern))) == words


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("", ("`{`",)),
        ("{", ('`"kin":`', '`"kind":`', '`"name":`', "`}`")),
        ('{"k', ('`"kin":`', '`"kind":`')),
        ('{"kind":', ("`true`",)),
        ('{"kind":true', ('`,"kin":`', '`,"name":`', "`}`")),
        ('{"name":', ('`"`',)),
        ('{"kin":1', ('`,"name":`', "`}`", "more of the number")),
    ],
)
def test_json_is_summed_up_word_by_word(before: str, words: tuple[str, ...]) -> None:
    properties = {"kind": {"const": True}, "kin": {"type": "number"}, "name": {"type": "string"}}
    spec = JsonSchema(
        json.dumps({"type": "object", "properties": properties, "additionalProperties": False})
    )
    matcher = byte_matcher(spec)
    assert read(matcher, before) == len(before)
    so_far = before[before.rfind('"') :] if before.count('"') % 2 else ""
    assert expected_next(matcher, is_json=True, string_so_far=so_far) == words


def test_short_texts_are_shown_in_backquotes_and_blanks_by_name() -> None:
    assert shown("a b") == "`a b`"
    assert shown("\n") == "a line break"
    assert shown("a\tb") == "`a\\tb`"
    assert shown("x" * 100) == f"`{'x' * 60}...`"
