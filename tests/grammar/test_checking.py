"""Checked texts: the verdict, the place, what was expected there, and how it is told, line by line."""

from __future__ import annotations

import json

import pytest

from radixlm.errors import GrammarError
from radixlm.grammar.explain import check_text
from radixlm.grammar.explain.wording import verdict_lines
from radixlm.grammar.spec import Choice, JsonSchema, Regex, Spec

PERSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "age": {"type": "integer", "minimum": 0},
            "colour": {"enum": ["red", "green", "blue"]},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    }
)
LOOSE = JsonSchema(PERSON, any_order=True, whitespace="flexible")
STRICT = JsonSchema(PERSON)


def told(spec: Spec, text: str) -> str:
    return "\n".join(verdict_lines(check_text(spec, text)))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            '{"age": 3, "nom": "x"}',
            """1:14: not an output
    {"age": 3, "nom": "x"}
                 ^
found `"nom"`, expected `"name"`
shortest way to an output from here: `ame":""}`""",
        ),
        (
            '{\n "name": "x"\n}\n',
            """3:1: not an output
    }
    ^
found `}`, expected `,` or white space
The object at # still needs "age".
shortest way to an output from here: `,"age":0}`""",
        ),
        (
            '{"name": "x", "when": "2024-02-30"}',
            """1:32: not an output, in the value at #/when
    {"name": "x", "when": "2024-02-30"}
                                   ^
found `"2024-02-30"`, expected a digit 0 to 2
shortest way to an output from here: `01","age":0}`""",
        ),
        (
            '{"age": 3, "colour": "',
            """1:23: incomplete, in the value at #/colour
    {"age": 3, "colour": "
                          ^
expected `"blue"`, `"green"` or `"red"`
shortest way to an output from here: `red","name":""}`""",
        ),
        (
            '{"name": "日本語", "age": 1.0}',
            """1:25: not an output, in the value at #/age
    {"name": "日本語", "age": 1.0}
                               ^
found `.0`, expected `,`, `}`, a digit or white space
The value is valid, but this spelling of it is never written (numbers, escapes, long white space).
shortest way to an output from here: `}`""",
        ),
        (
            "",
            """1:1: incomplete
expected `{` or white space
shortest way to an output from here: `{"age":0,"name":""}`""",
        ),
    ],
)
def test_a_refused_text_is_shown_with_its_place_and_what_was_expected(
    text: str, lines: str
) -> None:
    assert told(LOOSE, text) == lines


def test_an_accepted_text_is_told_apart_from_what_an_engine_writes() -> None:
    assert told(LOOSE, '{"name":"x","age":3}') == "accepted"
    assert check_text(LOOSE, '{"name": "x", "age": 3}\n').differs_in == ("white space",)
    assert check_text(LOOSE, '{"age":3,"name":"x"}').differs_in == ("order of properties",)
    assert told(LOOSE, '{ "age":3,"name":"x"}') == (
        "accepted\nIt differs from compact text in declared order in white space and order of properties."
    )


@pytest.mark.parametrize(
    ("text", "differs_in"),
    [
        ('{"name": "x","age":3}', ("white space",)),
        ('{"age":3,"name":"x"}', ("order of properties",)),
        ('{"age": 3,"name":"x"}', ("white space", "order of properties")),
        ('{"age": 3,"nom":"x"}', ()),
    ],
)
def test_a_strict_check_says_when_only_layout_is_wrong(
    text: str, differs_in: tuple[str, ...]
) -> None:
    verdict = check_text(STRICT, text)
    assert (verdict.outcome, verdict.differs_in) == ("refused", differs_in)
    assert ("see --whitespace" in told(STRICT, text)) == bool(differs_in)


def test_an_array_that_ends_too_early_names_what_is_missing() -> None:
    spec = JsonSchema('{"type":"array","items":{"type":"boolean"},"minItems":3}')
    assert check_text(spec, "[true]").note == "the array at # still needs 2 more items"


def test_a_text_that_is_no_json_is_called_so_where_that_is_news() -> None:
    verdict = check_text(LOOSE, '{"name": 1, "age": 2,}')
    assert verdict.pointer == "#/name"
    assert verdict.note.startswith("the text is not JSON (")
    assert verdict.note.endswith(" at 1:22)") or verdict.note.endswith(" at 1:21)")


def test_other_constraints_have_texts_without_pointers() -> None:
    spec = Regex("[a-c]+(-(foo|bar|baz))+")
    assert told(spec, "abc-") == (
        "1:5: incomplete\n    abc-\n        ^\nexpected `bar`, `baz` or `foo`\nshortest way to an output from here: `bar`"
    )
    assert told(spec, "abc-foo!") == (
        "1:8: not an output\n    abc-foo!\n           ^\nfound `!`, expected `-bar`, `-baz`, `-foo` or the end of the text"
    )
    assert check_text(Choice(("red", "green")), "gre").expected == ("`en`",)


def test_one_line_break_at_the_end_is_left_out_unless_it_belongs_to_the_text() -> None:
    assert check_text(Regex("ab"), "ab\n").outcome == "accepted"
    assert check_text(Regex("ab"), "ab\r\n").outcome == "accepted"
    assert check_text(Regex("ab"), "ab\n\n").outcome == "refused"
    assert check_text(Regex("ab\n"), "ab\n").outcome == "accepted"
    assert check_text(Regex("ab\n"), "ab").outcome == "incomplete"


def test_a_place_is_counted_in_code_points_of_long_and_wide_texts() -> None:
    verdict = check_text(Regex("[^x]*"), "é" * 5000 + "\n" + "語" * 4000 + "x")
    assert (verdict.line, verdict.column, verdict.position) == (2, 4001, 9001)
    shown, caret = list(verdict_lines(verdict))[1:3]
    assert shown.startswith("    ...語")
    assert shown.endswith("語x")
    assert len(caret) == len("    ...") + 2 * 60 + 1


def test_a_refused_constraint_is_an_error() -> None:
    with pytest.raises(GrammarError):
        check_text(Regex(r"(a)\1"), "aa")
