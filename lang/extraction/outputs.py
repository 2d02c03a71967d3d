"""The files a job writes: rows as JSON lines or CSV, failures as JSON lines, appended one by one.

Owns the bytes of a line and a file that can be cut back to a size. Must not know journals or schemas beyond the names of columns.
Parquet cannot be appended to: its rows are gathered as JSON lines and turned into Parquet at the end (`parquet.py`).
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from ...errors import ConfigError
from .documents import Extracted, Failure
from .verdict import write_value

FORMATS: Mapping[str, str] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet",
}  # fmt: skip


_MAX_REASONS = 1000
_MAX_REASON_CHARACTERS = 200


class Format(Protocol):
    """How rows become bytes."""

    @property
    def header(self) -> bytes:
        """What an empty file begins with."""
        ...

    def line(self, row: Extracted) -> bytes:
        """One row."""
        ...


class JsonLines:
    """A row is {"source": ..., "index": ..., "value": ...}."""

    header = b""

    def line(self, row: Extracted) -> bytes:
        """One row."""
        source = write_value(row.document.source.encode(errors="replace").decode())
        return (
            f'{{"source":{source},"index":{row.document.index},"value":{write_value(row.value)}}}\n'
        ).encode()


class Csv:
    """Columns source, index, then one for each property of the schema; `extra` for others, `value` if it is no object.

    Texts stand as they are, null is empty, all else is JSON. A property called like another column gets "value." before its name.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        declared: Any = schema.get("properties")
        self._names = list(cast("dict[str, Any]", declared)) if isinstance(declared, dict) else []
        self._is_open = bool(self._names) and schema.get("additionalProperties", True) is not False
        taken = {"source", "index", "extra"}
        columns = [f"value.{name}" if name in taken else name for name in self._names]
        columns += ["extra"] if self._is_open else []
        self.header = _csv_line(["source", "index", *(columns or ["value"])])

    def line(self, row: Extracted) -> bytes:
        """One row."""
        value = row.value
        cells: list[str] = []
        if self._names and isinstance(value, dict):
            fields = dict(cast("dict[str, Any]", value))
            cells = [_cell(fields.pop(name, None)) for name in self._names]
            if self._is_open:
                cells.append(_cell(fields or None))
        else:
            cells = [_cell(value)]
        return _csv_line([row.document.source, str(row.document.index), *cells])


def failure_line(failure: Failure) -> bytes:
    """A line of the dead-letter file."""
    text = json.dumps(failure.as_dict(), ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n".encode(errors="replace")


def commonest_reason(dead_letter: Path) -> tuple[str, int]:
    """The reason that stands most often in a dead-letter file, numbers aside, and how often; ("", 0) if there is none."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    try:
        with dead_letter.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                reason = str(json.loads(line).get("reason", ""))[:_MAX_REASON_CHARACTERS]
                kind = re.sub(r"\d+", "0", reason)
                if kind in counts or len(counts) < _MAX_REASONS:
                    counts[kind] += 1
                    first.setdefault(kind, reason)
    except (OSError, ValueError, AttributeError):
        return "", 0  # the file is for people; who changed it can read it
    return max(
        ((first[kind], num) for kind, num in counts.items()),
        key=lambda each: each[1],
        default=("", 0),
    )


def format_of(output: Path, schema: Mapping[str, Any]) -> Format:
    """The format that an output's suffix asks for; ConfigError for an unknown one."""
    kind = FORMATS.get(output.suffix.lower())
    if kind is None:
        raise ConfigError(
            f"{output} has the unknown suffix {output.suffix!r}",
            place="output",
            hint=f"Known are {' '.join(FORMATS)}",
        )
    return Csv(schema) if kind == "csv" else JsonLines()


class LineFile:
    """A file that grows by whole lines and can be cut back to what is known to be good."""

    def __init__(self, path: Path, num_bytes: int, header: bytes = b"") -> None:
        """Open it cut to `num_bytes`, beginning with `header` if that is 0. ConfigError if it is shorter, or cannot be written."""
        self.path = path
        try:
            self._file = path.open("r+b" if path.exists() else "w+b")
            self.num_bytes = self._file.seek(0, os.SEEK_END)
            if self.num_bytes < num_bytes:
                self._file.close()
                raise ConfigError(
                    f"{path} has {self.num_bytes} bytes, its journal says {num_bytes}: it was changed since",
                    place="output",
                    hint="Begin anew (resume=False)",
                )
            self._file.truncate(num_bytes)
            self._file.seek(num_bytes)
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error}", place="output") from None
        self.num_bytes = num_bytes
        if not num_bytes and header:
            self.append(header)

    def append(self, line: bytes) -> None:
        """Add a line; others can read it at once."""
        self._file.write(line)
        self._file.flush()
        self.num_bytes += len(line)

    def sync(self) -> None:
        """Return when what was appended is on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close it."""
        self._file.close()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else write_value(value)


def _csv_line(cells: list[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode(errors="replace")
