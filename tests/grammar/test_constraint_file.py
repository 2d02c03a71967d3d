"""Constraints in files: the kind by the ending, options where they belong, errors that name the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from radixlm.errors import ConfigError
from radixlm.grammar.constraint_file import ConstraintOptions, loosened, read_constraint
from radixlm.grammar.spec import Choice, Gbnf, JsonSchema, Lark, Regex, Spec

NONE = ConstraintOptions()


@pytest.mark.parametrize(
    ("name", "text", "options", "spec"),
    [
        ("a.json", "{}", NONE, JsonSchema("{}")),
        ("a.JSON", "\ufeff{}", NONE, JsonSchema("{}")),
        ("a.txt", "a+\n", ConstraintOptions(kind="regex"), Regex("a+")),
        ("a.regex", "a\n\n", NONE, Regex("a\n")),
        ("a.lark", "x: A", ConstraintOptions(start="x"), Lark("x: A", "x")),
        ("a.gbnf", "root ::= x", NONE, Gbnf("root ::= x")),
        ("a.choices", "red\n\ngreen\nred\n", NONE, Choice(("red", "green"))),
        (
            "a.json",
            "{}",
            ConstraintOptions(any_order=True, whitespace="indented", best_effort=True),
            JsonSchema("{}", True, "indented", True),
        ),
    ],
)
def test_a_file_is_read_by_its_kind(
    tmp_path: Path, name: str, text: str, options: ConstraintOptions, spec: Spec
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_constraint(tmp_path / name, options) == spec


def test_a_pattern_stands_in_place_of_a_file() -> None:
    assert read_constraint(None, ConstraintOptions(regex="a")) == Regex("a")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        (None, NONE, "a file or --regex"),
        ("a.json", ConstraintOptions(regex="a"), "a file or --regex"),
        ("a.txt", NONE, "Add --kind"),
        ("a.json", ConstraintOptions(kind="yaml"), "kind='yaml'"),
        ("none.json", NONE, "No such file"),
        ("latin.json", NONE, "not UTF-8"),
        ("a.json", ConstraintOptions(whitespace="wide"), "whitespace='wide'"),
        ("a.txt", ConstraintOptions(kind="regex", any_order=True), "--any-order"),
        ("a.json", ConstraintOptions(start="x"), "--start"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    tmp_path: Path, name: str | None, options: ConstraintOptions, words: str
) -> None:
    for each in ("a.json", "a.txt"):
        (tmp_path / each).write_text("{}")
    (tmp_path / "latin.json").write_bytes(b'"\xff"')
    with pytest.raises(ConfigError) as caught:
        read_constraint(None if name is None else tmp_path / name, options)
    assert words in str(caught.value)


def test_a_loosened_schema_has_every_layout_that_was_not_chosen() -> None:
    spec = JsonSchema("{}")
    assert loosened(spec, NONE) == JsonSchema("{}", True, "flexible")
    strict = ConstraintOptions(any_order=False, whitespace="compact")
    assert loosened(spec, strict) == spec
    assert loosened(Regex("a"), NONE) == Regex("a")
