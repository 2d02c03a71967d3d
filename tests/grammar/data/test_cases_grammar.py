"""Faults reported of other engines, and one-line probes: all of them hold here, or are refused as the row allows."""

from __future__ import annotations

import json
import re
import statistics
import time
from typing import Any

import numpy as np
import pytest
from grammar_engine import Constraint, encoded, layouts
from shared_data import CASES, rows_at_collection
from toy_vocabulary import EOS, SPECIAL

from radixlm.errors import GrammarError
from radixlm.grammar.spec import Gbnf, JsonSchema, Regex, Spec
from radixlm.grammar.vocabulary import Vocabulary
from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.tokenizer import load_tokenizer

ROWS = [row for row in rows_at_collection(CASES / "cases.jsonl") if row["kind"] == "G"]
BY_ID = {row["id"]: row for row in ROWS}
pytestmark = pytest.mark.data


def specs_of(given: dict[str, Any]) -> list[Spec]:
    """The constraint of a row in each way of writing it; every one must refuse what the row refuses."""
    kind = given["subkind"]
    if kind == "regex":
        return [Regex(given["pattern"])]
    if kind == "ebnf":
        return [Gbnf(given["grammar"])]
    if kind == "tool_union":
        tools = json.loads((CASES / given["tools_file"]).read_text())
        schema: Any = {"anyOf": [call_schema(tool["function"]) for tool in tools]}
    elif "schema_file" in given:
        schema = json.loads((CASES / given["schema_file"]).read_text())
    else:
        schema = given["schema"]
    text = json.dumps(schema)
    return [
        JsonSchema(text, whitespace="flexible"),
        JsonSchema(text),
        JsonSchema(text, whitespace="flexible", any_order=True),
    ]


def call_schema(function: dict[str, Any]) -> dict[str, Any]:
    """A call of one tool, as an object."""
    return {
        "type": "object",
        "properties": {"name": {"const": function["name"]}, "arguments": function["parameters"]},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def written_ways(text: str, is_json: bool) -> list[str]:
    """The text as the row has it and, if it is JSON, the compact one."""
    if not is_json:
        return [text]
    try:
        return [text, layouts(json.loads(text))["compact"]]
    except ValueError:
        return [text]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_reported_fault_is_none_here(row: dict[str, Any]) -> None:
    given, wanted = row["input"], row["expect"]
    is_json = given["subkind"] not in ("regex", "ebnf")
    started = time.process_time()
    constraints, refusal = compiled(specs_of(given))
    assert time.process_time() - started <= 3 * wanted["compile_limit_s"]
    if refusal is not None:
        assert wanted["compile"] != "ok", refusal
        named = re.search(r'message contains "(.+?)"', wanted.get("notes", ""))
        assert named is None or named[1] in str(refusal)
        return
    assert wanted["compile"] != "error", "compiled"
    for text in given["accept"]:
        ways = written_ways(text, is_json)
        assert any(one.accepts(way) for one in constraints for way in ways), text
    for text in given["reject"]:
        for way in written_ways(text, is_json):
            assert not any(one.accepts(way) for one in constraints), way
    for mask in wanted.get("mask", ()):
        check_mask(constraints[0], mask)


def compiled(specs: list[Spec]) -> tuple[list[Constraint], GrammarError | None]:
    """All the constraints, or the reason why one is refused."""
    try:
        return [Constraint(spec) for spec in specs], None
    except GrammarError as error:
        return [], error


def check_mask(constraint: Constraint, wanted: dict[str, Any]) -> None:
    """What may follow a text, with a vocabulary of single bytes."""
    matcher = constraint.matcher()
    if not matcher.advance_bytes(encoded(wanted["prefix"])):
        assert "must_allow" not in wanted
        assert wanted.get("eos") != "allowed"
        return
    allowed = constraint.allowed(matcher)
    for text in wanted.get("must_allow", ()):
        assert matcher.fork().advance_bytes(encoded(text)), (wanted["prefix"], text)
    for text in wanted.get("must_forbid", ()):
        assert not matcher.fork().advance_bytes(encoded(text)), (wanted["prefix"], text)
    if "eos" in wanted:
        assert (EOS in allowed) == (wanted["eos"] == "allowed"), wanted["prefix"]
    assert SPECIAL not in allowed


@pytest.mark.model
@pytest.mark.parametrize("name", ["G044", "G048"])
def test_a_mask_with_many_counts_behind_it_takes_milliseconds(
    name: str, smollm2_files: ModelFiles
) -> None:
    if name not in BY_ID:
        pytest.skip("the shared cases are not there")
    facts = load_tokenizer(smollm2_files)
    vocabulary = Vocabulary(facts.token_bytes, facts.eos_token_ids)
    row = BY_ID[name]
    constraint = Constraint(specs_of(row["input"])[0], vocabulary)
    for wanted in row["expect"]["mask"]:
        matcher = constraint.matcher()
        assert matcher.advance_bytes(encoded(wanted["prefix"]))
        out = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.uint32)
        times: list[float] = []
        for _ in range(9):
            started = time.process_time()
            matcher.fill_mask(out)
            times.append(1000 * (time.process_time() - started))
        assert statistics.median(times) <= wanted["mask_time_ms_max"]
