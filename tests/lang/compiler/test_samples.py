"""What is played as a result satisfies its constraint, and two variants differ where they can."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from typing import Any, Literal

import pytest

from radixlm import ScriptedBackend, State, function, gen
from radixlm.grammar.spec import AfterReasoning, Choice, JsonSchema, Lark, Regex
from radixlm.lang.compiler.regex_samples import sample_of_regex
from radixlm.lang.compiler.samples import sample_of
from radixlm.lang.schema import typed_schema
from radixlm.lang.testing import Answer
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


def object_of_itself(num: int, **more: Any) -> dict[str, Any]:
    names = [f"p{i}" for i in range(num)]
    return {"type": "object", "properties": {name: {"$ref": "#"} for name in names}, **more}


def doubling() -> str:
    return "(aa)" + "".join(rf"(\{i}\{i})" for i in range(1, 60))


@pytest.mark.parametrize(
    ("spec", "is_played"),
    [
        (JsonSchema(json.dumps(object_of_itself(11))), True),
        (JsonSchema(json.dumps(object_of_itself(60))), False),
        (JsonSchema(json.dumps(object_of_itself(4, required=["p0", "p1", "p2", "p3"]))), False),
        (JsonSchema('{"type":"array","minItems":1000000}'), False),
        (JsonSchema('{"type":"string","minLength":100000000}'), False),
        (JsonSchema('{"type":"string","pattern":"(?:ab{1000}){1000}"}'), False),
        (Regex("(?:(?:(?:a|b){1000}){1000}){1000}"), False),
        (Regex("(?:){1000000000}x"), True),
        (Regex(doubling()), False),
    ],
)  # fmt: skip
def test_a_large_constraint_costs_no_time_and_the_program_runs_the_same(
    spec: Any, is_played: bool
) -> None:
    @function
    def f(s: State) -> int:
        options = {"json_schema": json.loads(spec.text)} if isinstance(spec, JsonSchema) else {}
        s += "One: " + gen("x", **(options or {"regex": spec.pattern}))
        length = len(s["x"])
        s += "Two: " + gen("y")
        return length

    start = time.process_time()
    compiled = f.compile()
    assert time.process_time() - start < 0.2
    assert (compiled.stopped == "") == is_played
    assert is_played or "not played" in compiled.stopped
    assert len(compiled.plan.graph.asks) == 1 + is_played
    script = {"x": Answer("{}", "length"), "y": "b"}
    runs = [each.run(backend=ScriptedBackend(script)) for each in (f, compiled)]
    assert runs[0].text() == runs[1].text() == "One: {}Two: b"


def test_optional_members_are_played_near_the_top_only() -> None:
    assert sample_of(JsonSchema(json.dumps(object_of_itself(1))), 0) == '{"p0": {"p0": {}}}'
