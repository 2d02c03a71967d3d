"""Ctrl-C at every line between a row's writing and its commit: the next run finishes the job with every row once."""

from __future__ import annotations

import json
import shutil
import sys
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from extraction_job import run_job, write_notes

from radixlm.lang.extraction import job, journal, outputs

NUM_DOCUMENTS = 2
FILES = frozenset(str(module.__file__) for module in (job, journal, outputs))
FUNCTIONS = frozenset({"_work", "_append", "append", "note", "commit", "_transaction"})


class InterruptAt:
    """Raises KeyboardInterrupt at the number-th line of those functions, as Ctrl-C may."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> InterruptAt:
        sys.settrace(self._begin)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _begin(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        is_watched = code.co_filename in FILES and code.co_name in FUNCTIONS
        return self._line if is_watched else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._number -= 1
            if self._number == 0:
                raise KeyboardInterrupt
        return self._line


def numbers_of(path: Path) -> list[int]:
    return sorted(json.loads(line)["index"] for line in path.read_text().splitlines())


# Interrupted between the opening of a file and the stack that closes it, the file is closed by the collector:
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_line_loses_no_row_and_writes_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_COMMIT_S", 0.0)  # a commit after every document
    monkeypatch.setattr(job, "_IDLE_COMMIT_S", 0.0)
    write_notes(tmp_path / "notes.jsonl", NUM_DOCUMENTS)
    num_interrupted = 0
    for number in count(1):
        folder = tmp_path / str(number)
        folder.mkdir()
        shutil.copy(tmp_path / "notes.jsonl", folder)
        try:
            with InterruptAt(number):
                run_job(folder)
        except KeyboardInterrupt:
            num_interrupted += 1
        else:
            break
        summary = run_job(folder)
        assert numbers_of(folder / "out.jsonl") == list(range(NUM_DOCUMENTS)), number
        assert summary.job.num_rows == NUM_DOCUMENTS, number
        assert not (folder / "out.failed.jsonl").exists(), number
    assert num_interrupted > 60
