"""What is played as a result satisfies its constraint, and two variants differ where they can."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Literal

import pytest

from radixlm.grammar.spec import AfterReasoning, Choice, JsonSchema, Lark, Regex
from radixlm.lang.compiler.regex_samples import sample_of_regex
from radixlm.lang.compiler.samples import sample_of
from radixlm.lang.schema import typed_schema
from radixlm.runtime.messages import Output


@pytest.mark.parametrize(
    "pattern",
    [
        r"[0-9]{4}-[01][0-9]", r"(yes|no)\.?", r"-?(?:0|[1-9][0-9]{0,17})", r"[^\d\s,]+", r"(a|b)\1",
        r"\w+@\w+\.(com|org)", r"x{3,}", r"a*", r".", r"[^a-z]", r"\D\W\S\s", r"(?P<q>[\"'])k(?P=q)", r"^ab$",
    ],
)  # fmt: skip
def test_a_sample_of_a_pattern_matches_it(pattern: str) -> None:
    for variant in (0, 1):
        assert re.fullmatch(pattern, sample_of_regex(pattern, variant)), pattern


def test_a_pattern_that_python_cannot_read_gives_some_text() -> None:
    assert sample_of(Regex(r"\p{L}+"), 0) == "x"


@dataclasses.dataclass
class Street:
    name: str
    number: int


@dataclasses.dataclass
class Home:
    street: Street
    rooms: list[int]
    kind: Literal["flat", "house"]
    owner: str | None
    is_old: bool


@pytest.mark.parametrize(
    "python_type", [Home, list[Street], int, bool, Literal["a", 2], str, float]
)
def test_a_sample_of_a_type_is_read_as_its_value(python_type: Any) -> None:
    typed = typed_schema(python_type)
    for variant in (0, 1):
        text = sample_of(typed.spec, variant)
        typed.decode(Output(text, (), "stop", grammar_complete=True))


def test_bounds_and_references_of_a_schema_are_kept() -> None:
    schema = '{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer","minimum":7,"maximum":7}}}'
    assert sample_of(JsonSchema(schema), 1) == "7"
    assert sample_of(JsonSchema('{"type":"string","minLength":3}'), 0) == '"aaa"'


def test_a_schema_that_contains_itself_ends() -> None:
    schema = '{"type":"object","properties":{"next":{"$ref":"#"}}}'
    assert sample_of(JsonSchema(schema), 0).endswith("}")


def test_variants_differ_where_the_constraint_leaves_a_choice() -> None:
    for spec in (Choice(("a", "b")), Regex("[0-9]"), JsonSchema('{"type":"boolean"}')):
        assert sample_of(spec, 0) != sample_of(spec, 1)
    assert sample_of(AfterReasoning(Choice(("a",))), 0) == "...</think>a"
    assert sample_of(Lark("start: /a/"), 0) == "x"
