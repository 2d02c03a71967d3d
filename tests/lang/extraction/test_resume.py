"""A job that was killed or interrupted goes on exactly where it stopped, and refuses to go on as another job."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from extraction_job import SCHEMA, answer, run_job, write_notes

from radixlm.errors import ConfigError, GrammarError, SamplingError
from radixlm.lang.extract import check_job, extract_files
from radixlm.lang.extraction.job import Standing
from radixlm.lang.extraction.journal import Journal
from radixlm.lang.testing import Request, ScriptedBackend

CHILD = Path(__file__).parents[2] / "support" / "extraction_job.py"
BROKEN = (3, 40, 77)


def kill_runs(folder: Path, mode: str, number: int) -> int:
    """How many runs of the job in `folder` were really killed."""
    command = [sys.executable, str(CHILD), str(folder), mode, str(number)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


def numbers_of(folder: Path) -> list[int]:
    rows = rows_of(folder)
    assert all(row["index"] == row["value"]["number"] for row in rows)
    return sorted(row["index"] for row in rows)


def failed_of(folder: Path) -> list[int]:
    lines = (folder / "out.failed.jsonl").read_text().splitlines()
    return sorted(json.loads(line)["index"] for line in lines)


def check_complete(folder: Path, num: int) -> None:
    """Every document has one row or one dead letter, and the bytes are those of a run that nobody disturbed, up to the order of lines."""
    assert numbers_of(folder) == [n for n in range(num) if n not in BROKEN]
    assert failed_of(folder) == list(BROKEN)
    calm = folder / "calm"
    calm.mkdir()
    shutil.copy(folder / "notes.jsonl", calm)
    run_job(calm, num_under_way=1)
    for name in ("out.jsonl", "out.failed.jsonl"):
        lines, calm_lines = (folder / name).read_bytes(), (calm / name).read_bytes()
        expected = calm_lines.replace(str(calm).encode(), str(folder).encode())
        assert sorted(lines.splitlines()) == sorted(expected.splitlines())


def test_kills_at_random_moments_lose_no_row_and_write_none_twice(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 1000, BROKEN)
    assert kill_runs(tmp_path, "random", 7) >= 2
    check_complete(tmp_path, 1000)


def test_a_kill_before_any_write_sync_or_transaction_is_made_good(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 300, BROKEN)
    assert kill_runs(tmp_path, "calls", 30) >= 20
    run_job(tmp_path)
    check_complete(tmp_path, 300)


def test_an_interrupt_keeps_what_was_finished(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 50)

    def interrupted(request: Request) -> str:
        if len(backend.requests) > 20:
            raise KeyboardInterrupt
        return answer(request)

    backend = ScriptedBackend(default=interrupted)
    output = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        extract_files(tmp_path / "notes.jsonl", SCHEMA, output, backend=backend, num_under_way=4)
    num_before = len(output.read_text().splitlines())
    assert num_before > 0
    summary = run_job(tmp_path)
    assert summary.run.num_rows == 50 - num_before
    assert summary.job.num_rows == 50
    assert numbers_of(tmp_path) == list(range(50))


def test_a_finished_job_asks_the_model_nothing_more(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 10)
    run_job(tmp_path)
    before = (tmp_path / "out.jsonl").read_bytes()
    backend = ScriptedBackend()
    summary = extract_files(
        tmp_path / "notes.jsonl", SCHEMA, tmp_path / "out.jsonl", backend=backend
    )
    assert not backend.requests
    assert (summary.run.num_documents, summary.job.num_rows) == (0, 10)
    assert (tmp_path / "out.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"schema": {"type": "object", "properties": {"number": {"type": "integer"}}}}, "schema"),
        ({"instructions": "Read it twice."}, "instructions"),
        ({"max_tokens": 9}, "sampling"),
        ({"chunk_chars": 200}, "parts"),
        ({"merge": "first"}, "merge"),
        ({"field": "text"}, "field"),
    ],
)
def test_another_job_does_not_go_on_with_this_ones_journal(
    tmp_path: Path, change: dict[str, Any], place: str
) -> None:
    write_notes(tmp_path / "notes.jsonl", 3)
    run_job(tmp_path)
    options: dict[str, Any] = {
        "schema": SCHEMA,
        "backend": ScriptedBackend(default=answer),
        **change,
    }
    with pytest.raises(ConfigError, match="resume=False") as caught:
        extract_files(
            tmp_path / "notes.jsonl", options.pop("schema"), tmp_path / "out.jsonl", **options
        )
    assert caught.value.place == place


def test_a_changed_source_is_noticed_whatever_its_size(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 3)
    run_job(tmp_path)
    text = (tmp_path / "notes.jsonl").read_text()
    (tmp_path / "notes.jsonl").write_text(text.replace("note 1", "note 7"))
    with pytest.raises(ConfigError, match="has changed"):
        run_job(tmp_path)
    summary = run_job(tmp_path, resume=False)
    assert summary.job.num_rows == 3
    assert sorted(row["value"]["number"] for row in rows_of(tmp_path)) == [0, 2, 7]


def test_a_new_or_missing_source_is_noticed(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("note 1 about rain")

    def run(*names: str) -> None:
        backend = ScriptedBackend(default=answer)
        extract_files(
            [tmp_path / name for name in names], SCHEMA, tmp_path / "out.jsonl", backend=backend
        )

    run("a.txt")
    with pytest.raises(ConfigError, match=r"b\.txt was not among"):
        run("a.txt", "b.txt")
    with pytest.raises(ConfigError, match=r"a\.txt is missing"):
        run("b.txt")


def test_a_foreign_output_is_not_overwritten(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 3)
    (tmp_path / "out.jsonl").write_text("precious\n")
    with pytest.raises(ConfigError, match="is there already"):
        run_job(tmp_path)
    assert (tmp_path / "out.jsonl").read_text() == "precious\n"
    assert not (tmp_path / "out.jsonl.journal").exists()


def test_an_output_that_lost_rows_is_not_taken_for_whole(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 9)
    with pytest.raises(KeyboardInterrupt):
        run_job(tmp_path, stop_after(4), num_under_way=1)
    os.truncate(tmp_path / "out.jsonl", 10)
    with pytest.raises(ConfigError, match="was changed since"):
        run_job(tmp_path)


def test_two_runs_cannot_write_one_output(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 3)

    def run_again(request: Request) -> str:
        with pytest.raises(ConfigError, match="Another run"):
            run_job(tmp_path)
        return answer(request)

    assert run_job(tmp_path, run_again).job.num_rows == 3


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 3)
    run_job(tmp_path)
    (tmp_path / "out.jsonl.journal").write_bytes(b"not a database, by no means" * 100)
    with pytest.raises(ConfigError, match="no journal that can be read"):
        run_job(tmp_path)
    assert run_job(tmp_path, resume=False).job.num_rows == 3


def test_failures_are_tried_again_on_request(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 9)

    def moody(request: Request) -> str:
        text = answer(request)
        return text if json.loads(text)["number"] % 3 else text.replace('"word"', '"other"')

    first = run_job(tmp_path, moody)
    assert (first.job.num_rows, first.job.num_failed, first.job.num_invalid) == (6, 3, 3)
    assert failed_of(tmp_path) == [0, 3, 6]
    assert run_job(tmp_path).run.num_documents == 0
    again = run_job(tmp_path, retry_failed=True)
    assert (again.run.num_rows, again.job.num_rows, again.job.num_failed) == (3, 9, 0)
    assert numbers_of(tmp_path) == list(range(9))
    assert not (tmp_path / "out.failed.jsonl").exists()
    assert run_job(tmp_path, retry_failed=True).run.num_documents == 0


def test_the_journal_does_not_grow_with_the_job(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 1500)
    run_job(tmp_path)
    with sqlite3.connect(tmp_path / "out.jsonl.journal") as journal:
        low, above = journal.execute("SELECT low, above FROM state").fetchone()
    journal.close()
    assert (low, above) == (1500, "[]")
    assert (tmp_path / "out.jsonl.journal").stat().st_size < 100_000


def test_rows_in_order_make_the_same_file_after_an_interrupt(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 200, BROKEN)
    with pytest.raises(KeyboardInterrupt):
        run_job(tmp_path, stop_after(90), ordered=True)
    run_job(tmp_path, ordered=True)
    assert [row["index"] for row in rows_of(tmp_path)] == [n for n in range(200) if n not in BROKEN]


def stop_after(num: int) -> Any:
    """A scripted model that is interrupted at its num-th answer."""
    num_left = num

    def stopping(request: Request) -> str:
        nonlocal num_left
        num_left -= 1
        if num_left < 0:
            raise KeyboardInterrupt
        return answer(request)

    return stopping


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_a_job_that_ended_before_any_document_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    write_notes(tmp_path / "notes.jsonl", 3)
    output = f"out{suffix}"

    def refuse(_: Request) -> str:
        raise GrammarError("no such keyword")

    with pytest.raises(GrammarError):
        run_job(tmp_path, refuse, output=output)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.jsonl"]
    assert run_job(tmp_path, output=output, max_tokens=9).job.num_rows == 3


def test_a_job_that_was_killed_before_any_document_gives_way_to_another(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 3)
    with Journal(tmp_path / "out.jsonl.journal") as journal:
        journal.begin({"schema": "another"}, [])
    (tmp_path / "out.jsonl").write_text('{"half a li')
    assert run_job(tmp_path).job.num_rows == 3
    assert numbers_of(tmp_path) == [0, 1, 2]


def test_a_job_can_be_looked_at_before_there_is_a_backend(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes.jsonl", 9, (4,))
    notes, output = tmp_path / "notes.jsonl", tmp_path / "out.jsonl"

    def look(schema: Any = SCHEMA, **options: Any) -> Standing:
        return check_job(notes, schema, output, **{"model": "scripted", **options})[1]

    assert not look().is_finished
    assert not output.exists()
    with pytest.raises(KeyboardInterrupt):
        run_job(tmp_path, stop_after(3), num_under_way=1)
    before = look()
    assert (before.summary.job.num_rows, before.is_finished) == (3, False)
    run_job(tmp_path)
    assert look().is_finished
    assert look().summary.job.num_rows == 8
    assert not look(retry_failed=True).is_finished
    assert not look(resume=False).is_finished
    with pytest.raises(ConfigError, match="another model"):
        look(model="other")
    with pytest.raises(ConfigError, match="another schema"):
        look({"type": "object"})
    with pytest.raises(SamplingError, match="temperature"):
        look(temperature=-1.0)
    with pytest.raises(ConfigError, match="unknown suffix"):
        check_job(notes, SCHEMA, tmp_path / "out.xls", model="scripted")
    assert check_job(notes, SCHEMA, output, model="scripted", chunk_tokens=50, resume=False)
