"""Constraints of each kind on every backend: kept, or refused by name before anything is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from backend_subjects import Subject

from radixlm import GrammarError, assistant, function, gen, gen_int, gen_string, user


@dataclass
class City:
    name: str
    size: int


SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"enum": ["x", "y"]}, "maxItems": 2},
    },
    "required": ["kind", "tags"],
    "additionalProperties": False,
}
KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], bool]]] = {
    "regex": (lambda: gen("x", regex=r"[0-9]{3}-[ab]+", max_tokens=30), lambda v: bool(re.fullmatch(r"[0-9]{3}-[ab]+", v)) or len(v) > 8),
    "choices": (lambda: gen("x", choices=["left", "right"], max_tokens=20), lambda v: v in ("left", "right")),
    "json_schema": (lambda: gen("x", json_schema=SCHEMA, max_tokens=60), lambda v: json.loads(v)["kind"] in ("a", "b")),
    "schema": (lambda: gen("x", schema=City, max_tokens=80), lambda v: isinstance(v, City)),
    "int": (lambda: gen_int("x", minimum=3, maximum=12, max_tokens=20), lambda v: 3 <= v <= 12),
    "string": (lambda: gen_string("x", max_length=5, max_tokens=30), lambda v: isinstance(v, str) and len(v) <= 5),
    "list": (lambda: gen("x", schema=list[bool], max_tokens=40), lambda v: all(isinstance(i, bool) for i in v)),
    "lark": (lambda: gen("x", grammar='start: "yes" | "no"', max_tokens=10), lambda v: v in ("yes", "no")),
    "gbnf": (lambda: gen("x", grammar='root ::= "yes" | "no"', max_tokens=10), lambda v: v in ("yes", "no")),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_constraint_is_kept_in_a_chat(subject: Subject, kind: str) -> None:
    make, holds = KINDS[kind]

    @function
    def asked(s: Any) -> None:
        s += user("Write.") + assistant(make())

    def work(backend: Any) -> Any:
        if kind in subject.cannot:
            with pytest.raises(GrammarError, match="cannot enforce grammar") as raised:
                asked.run(backend=backend)
            assert raised.value.place == "grammar"
            return None
        state = asked.run(backend=backend)
        assert holds(state["x"])
        return state["x"]

    subject.check(work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constraint_is_kept_in_plain_text(subject: Subject, kind: str) -> None:
    make, holds = KINDS[kind]

    @function
    def asked(s: Any) -> None:
        s += "Written: " + make()

    def work(backend: Any) -> Any:
        if kind in subject.cannot or subject.name == "openai":  # whose text completions take none
            with pytest.raises(GrammarError, match="cannot enforce"):
                asked.run(backend=backend)
            return None
        state = asked.run(backend=backend)
        assert holds(state["x"])
        return state["x"]

    subject.check(work)


def test_an_output_that_was_cut_is_told_as_cut(subject: Subject) -> None:
    if subject.name == "scripted":
        pytest.skip("a script says so itself")

    @function
    def cut(s: Any) -> None:
        s += user("Long.") + assistant(gen("x", regex="(alpha |beta ){30}", max_tokens=3))

    def work(backend: Any) -> Any:
        meta = cut.run(backend=backend).get_meta("x")
        assert meta.finish_reason == "length"
        assert meta.outputs[0].grammar_complete is False
        return meta.outputs[0].text

    subject.check(work)
