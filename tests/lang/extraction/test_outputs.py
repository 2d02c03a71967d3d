"""The files a job writes: lines, columns, Parquet, dead letters, and what the closing line says."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from extraction_job import SCHEMA, answer, run_job, write_notes

from radixlm.errors import ConfigError
from radixlm.lang.extract import Progress, extract_files
from radixlm.lang.extraction.documents import Document, Extracted
from radixlm.lang.extraction.outputs import Csv, JsonLines, commonest_reason
from radixlm.lang.extraction.parquet import write_parquet
from radixlm.lang.testing import ScriptedBackend

CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "source": {}, "tags": {"type": "array"}},
    "additionalProperties": False,
}


def line_of(form: Any, value: Any) -> str:
    return form.line(Extracted(Document("a.txt", 3, "text"), value, value)).decode()


def test_a_json_line_has_source_index_and_value_in_that_order() -> None:
    line = line_of(JsonLines(), {"a": "é\n", "b": [1, None]})
    assert line == '{"source":"a.txt","index":3,"value":{"a":"é\\n","b":[1,null]}}\n'
    assert json.loads(line_of(JsonLines(), "\ud800"))["value"] == "\ud800"


def test_a_table_has_a_column_for_each_property() -> None:
    form = Csv(CLOSED)
    assert form.header == b"source,index,name,value.source,tags\n"
    value = {"name": 'say "hi", you', "source": None, "tags": [1, "x"]}
    (cells,) = csv.reader([line_of(form, value)])
    assert cells == ["a.txt", "3", 'say "hi", you', "", '[1,"x"]']


def test_properties_that_the_schema_does_not_declare_are_not_lost() -> None:
    form = Csv({"type": "object", "properties": {"a": {}}})
    assert form.header == b"source,index,a,extra\n"
    (cells,) = csv.reader([line_of(form, {"a": True, "z": 1})])
    assert cells[2:] == ["true", '{"z":1}']
    assert Csv({"type": "array"}).header == b"source,index,value\n"


def test_parquet_has_typed_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "x": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "line": {"$ref": "#/$defs/Line"},
            "any": {},
        },
        "additionalProperties": False,
        "$defs": {"Line": {"type": "array", "items": {"enum": ["a", "b"]}}},
    }
    values = [
        {"n": 1, "x": 2, "line": ["a"], "any": {"k": [1]}},
        {"n": 1.0, "x": None, "line": [], "any": "s"},
    ]
    rows = [{"source": "a", "index": n, "value": value} for n, value in enumerate(values)]
    (tmp_path / "rows").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_parquet(tmp_path / "rows", tmp_path / "out.parquet", schema)
    table = parquet.read_table(tmp_path / "out.parquet")
    kind = "struct<n: int64, x: double, line: list<element: string>, any: string>"
    assert str(table.schema.field("value").type) == kind
    assert table.column("value").to_pylist() == [
        {"n": 1, "x": 2.0, "line": ["a"], "any": '{"k":[1]}'},
        {"n": 1, "x": None, "line": [], "any": "s"},
    ]


def test_values_that_arrow_cannot_hold_are_kept_as_json(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "rows").write_text(json.dumps({"source": "a", "index": 0, "value": {"n": 10**30}}))
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }
    write_parquet(tmp_path / "rows", tmp_path / "out.parquet", schema)
    (value,) = parquet.read_table(tmp_path / "out.parquet").column("value").to_pylist()
    assert json.loads(value) == {"n": 10**30}


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.ndjson"])
def test_jobs_into_every_format_hold_every_row(tmp_path: Path, name: str) -> None:
    write_notes(tmp_path / "notes.jsonl", 20, (4,))
    summary = run_job(tmp_path, output=name)
    assert (summary.job.num_rows, summary.job.num_failed) == (19, 1)
    output = tmp_path / name
    if name.endswith("csv"):
        rows = [
            (int(row["index"]), int(row["number"]), row["word"])
            for row in csv.DictReader(output.read_text().splitlines())
        ]
    elif name.endswith("parquet"):
        found = pytest.importorskip("pyarrow.parquet").read_table(output).to_pylist()
        rows = [(row["index"], row["value"]["number"], row["value"]["word"]) for row in found]
    else:
        found = [json.loads(line) for line in output.read_text().splitlines()]
        rows = [(row["index"], row["value"]["number"], row["value"]["word"]) for row in found]
    assert sorted(rows) == [(n, n, "rain" if n % 2 else "sun") for n in range(20) if n != 4]
    (dead,) = (tmp_path / "out.failed.jsonl").read_text().splitlines()
    letter = json.loads(dead)
    assert (letter["index"], letter["line"], letter["error"], letter["excerpt"]) == (
        4,
        5,
        "PromptError",
        "{broken",
    )
    assert "no JSON" in letter["reason"]
    summary = run_job(tmp_path, output=name, retry_failed=True)
    assert (summary.run.num_failed, summary.job.num_rows) == (1, 19)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_job_without_failures_leaves_its_output_and_journal_only(
    tmp_path: Path, name: str
) -> None:
    write_notes(tmp_path / "notes.jsonl", 2)
    for _ in range(2):
        run_job(tmp_path, output=name)
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"notes.jsonl", name, f"{name}.journal"}


def test_progress_counts_documents_and_bytes_and_the_summary_says_it_in_one_line(
    tmp_path: Path,
) -> None:
    write_notes(tmp_path / "notes.jsonl", 10, (4,))
    seen: list[Progress] = []
    summary = run_job(tmp_path, on_progress=seen.append)
    assert [progress.tally.num_documents for progress in seen] == list(range(1, 11))
    fractions = [progress.fraction for progress in seen]
    assert fractions == sorted(fractions, key=lambda part: part or 0)
    assert fractions[-1] == 1.0
    line = summary.line()
    assert line.startswith("10 documents in ")
    for part in ("9 rows, 1 failed, invalid = 0", "prompt tokens", "cached", "forced"):
        assert part in line
    assert "10 more were done before" in run_job(tmp_path).line()


def test_outputs_that_cannot_be_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 1)
    for name, reason in (("out.xml", "suffix"), ("no/such/out.jsonl", "does not exist")):
        with pytest.raises(ConfigError, match=reason):
            run_job(tmp_path, output=name)


def test_a_folder_may_hold_its_own_output(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"note {number} about rain")
    for _ in range(2):
        backend = ScriptedBackend(default=answer)
        summary = extract_files(tmp_path, SCHEMA, tmp_path / "out.jsonl", backend=backend)
        assert summary.job.num_rows == 3


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.journal", "./out.jsonl"])
def test_failures_cannot_go_into_another_file_of_the_job(tmp_path: Path, name: str) -> None:
    write_notes(tmp_path / "notes.jsonl", 2)
    with pytest.raises(ConfigError, match="a file of the job already"):
        run_job(tmp_path, dead_letter=tmp_path / name)
    assert not (tmp_path / "out.jsonl").exists()


def test_the_commonest_reason_is_counted_whatever_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "out.failed.jsonl"
    assert commonest_reason(path) == ("", 0)
    reasons = ["empty", "has 12 tokens", "has 345 tokens"]
    path.write_text("".join(json.dumps({"reason": reason}) + "\n" for reason in reasons))
    assert commonest_reason(path) == ("has 12 tokens", 2)
    path.write_text("[]\n")
    assert commonest_reason(path) == ("", 0)
