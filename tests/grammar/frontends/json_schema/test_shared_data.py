"""Real schemas and the official test suite, where their files are beside the checkout.

What must hold: no invalid instance is accepted by any schema that compiles. What is counted may only get better: the floors below are
those of the sample each test takes (every n-th row).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from schema_checks import Compiled, compact, grammar_of

from radixlm.errors import GrammarError

_SHARED = Path(__file__).parents[5] / "shared"
_BENCH = _SHARED / "data" / "jsonschemabench_dev.jsonl"
_SUITE = _SHARED / "data" / "jsts_draft2020-12.jsonl"
_CASES = _SHARED / "cases" / "cases.jsonl"
_PROBES = _SHARED / "cases" / "grammar_probes.jsonl"
_MAX_SCHEMA_BYTES = 20_000  # larger ones take seconds to compile


def rows(path: Path, step: int = 1) -> Iterator[dict[str, Any]]:
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with path.open() as lines:
        for index, line in enumerate(lines):
            if index % step == 0:
                yield json.loads(line)


def verdicts(samples: Iterator[dict[str, Any]]) -> tuple[Counter[str], list[str]]:
    """Counts of refused rows, right tests and wrong ones; and the invalid instances that were accepted."""
    counts: Counter[str] = Counter()
    accepted: list[str] = []
    for row in samples:
        num_tests = len(row["valid"]) + len(row["invalid"])
        try:
            compiled = Compiled(row["schema"])
        except GrammarError:
            counts["refused rows"] += 1
            counts["refused"] += num_tests
            continue
        counts["compiled rows"] += 1
        for value in row["valid"]:
            counts["right" if compiled.accepts(compact(value)) else "valid refused"] += 1
        for sample in row["invalid"]:
            if compiled.accepts(compact(sample["data"])):
                accepted.append(f"{row['id']} {sample['why']}: {compact(sample['data'])[:200]}")
            else:
                counts["right"] += 1
    counts["invalid accepted"] = len(accepted)
    return counts, accepted


@pytest.mark.data
@pytest.mark.slow
def test_real_schemas_accept_no_invalid_instance_and_nearly_all_valid_ones():
    small = (r for r in rows(_BENCH, step=25) if len(json.dumps(r["schema"])) <= _MAX_SCHEMA_BYTES)
    counts, accepted = verdicts(small)
    print(dict(counts))
    assert accepted == []
    assert counts["refused rows"] <= 0.08 * (counts["compiled rows"] + counts["refused rows"])
    assert counts["valid refused"] <= 0.04 * counts["right"]


@pytest.mark.data
@pytest.mark.slow
def test_the_official_suite_accepts_no_invalid_instance():
    required = (r for r in rows(_SUITE, step=2) if r["required"] and not r["remote"])
    counts, accepted = verdicts(required)
    print(dict(counts))
    assert accepted == []
    num_tests = counts["right"] + counts["refused"] + counts["valid refused"]
    assert counts["right"] >= 0.66 * num_tests
    assert counts["valid refused"] <= 0.03 * num_tests


@pytest.mark.data
def test_probe_texts_get_the_verdicts_this_front_end_documents():
    exceptions = {  # named neither bad nor ok in the file: our decisions, as in the README
        "order b,a", "extra key first", "missing required", "lone surrogate", "raw newline in string", "integer 1.0", "integer 1e2",
        "integer 01", "integer -0", "\\u0041 printable escape", "enum number 1 as 1.0", "enum string as \\u escape",
        "const object key order", "pattern \\d vs arabic digit", "minLength counts code points", "nullable kw",
        "addlProps schema vs declared late", "false schema property",
    }  # fmt: skip
    refused = {"uniqueItems bad", "$ref self loop", "unsatisfiable"}
    for row in rows(_PROBES):
        if row["name"] in refused:
            with pytest.raises(GrammarError):
                grammar_of(row["schema"])
            continue
        expected = "bad" not in row["name"] and row["name"] not in exceptions
        assert Compiled(row["schema"]).accepts(_without_spaces(row["text"])) == expected, row[
            "name"
        ]


def _without_spaces(text: str) -> str:
    """The text as it is spelled, without the white space between its tokens."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[^\s"]+|\s+', text)
    return "".join(token for token in tokens if not token.isspace())


_OUT_OF_ORDER = {"G051": 1}  # an accepted text whose keys are not in the order of `properties`


def case_rows() -> list[Any]:
    if not _CASES.exists():
        return []
    kinds = ("json_schema", "json_schema_list")
    found = (json.loads(line) for line in _CASES.read_text().splitlines())
    return [r for r in found if r["kind"] == "G" and r["input"]["subkind"] in kinds]


@pytest.mark.data
@pytest.mark.parametrize("row", case_rows(), ids=lambda row: row["id"])
def test_reported_faults_of_other_engines_are_none_here(row: dict[str, Any]):
    given, expect = row["input"], row["expect"]
    if given["subkind"] == "json_schema_list":
        for schema in given.get("schemas", []):
            grammar_of(schema)
        return
    schema = (
        given["schema"]
        if "schema" in given
        else json.loads((_CASES.parent / given["schema_file"]).read_text())
    )
    if expect["compile"] == "error":
        with pytest.raises(GrammarError):
            Compiled(schema)
        return
    try:
        compiled = Compiled(schema)
    except GrammarError:
        assert expect["compile"] == "ok_or_error"
        return
    for index, text in enumerate(given["accept"]):
        if _OUT_OF_ORDER.get(row["id"]) == index:
            continue
        assert compiled.accepts(text) or compiled.accepts(compact(json.loads(text))), text
    for text in given["reject"]:
        assert not compiled.accepts(text), text
        try:
            shorter = compact(json.loads(text))
        except ValueError:
            continue
        assert not compiled.accepts(shorter), text
