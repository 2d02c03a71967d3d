"""Readers of text files, JSON lines and tables, one document at a time.

Owns the step from bytes to a document's text: encoding, lines, records, the field that holds the text, and the bound of one document's
size. What cannot be read becomes a Failure with its line and the reading goes on. Must not know folders or schemas.

Bytes that are no UTF-8 are carried along as lone surrogates (PEP 383) until the record they belong to is known.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from ...errors import ConfigError, PromptError
from .documents import Document, Failure

_ESCAPED = re.compile("[\udc80-\udcff]")
_LONE = re.compile("[\ud800-\udfff]")
_DELIMITERS = ",;\t"


def read_whole(path: Path, name: str, max_bytes: int) -> Document | Failure:
    """A text file as one document."""
    num_bytes = path.stat().st_size
    if num_bytes > max_bytes:
        return _failure(Document(name, 0, "", 0, num_bytes), _too_long(num_bytes, max_bytes))
    text = path.read_bytes().decode(errors="surrogateescape").removeprefix("\ufeff")
    return checked(Document(name, 0, text.replace("\r\n", "\n"), 0, num_bytes))


def read_json_lines(
    path: Path, name: str, field: str | None, max_bytes: int
) -> Iterator[Document | Failure]:
    """A document for each line that is not blank: a JSON object, or a JSON string that is the text itself."""
    index = 0
    with path.open("rb") as file:
        for number, line, num_bytes in _lines(file, max_bytes):
            if line is not None and not line.strip():
                continue
            place = Document(name, index, "", number, num_bytes)
            index += 1
            if line is None:
                yield _failure(place, _too_long(num_bytes, max_bytes))
                continue
            yield _json_document(place, line.rstrip("\r\n"), field)


def read_csv(
    path: Path, name: str, field: str | None, max_bytes: int
) -> Iterator[Document | Failure]:
    """A document for each record. The delimiter is the one of comma, semicolon and tab that the first line has most of."""
    with path.open("rb") as file:
        feed = _TextLines(file, max_bytes)
        try:
            first = next(feed, "")
        except csv.Error as error:
            yield _failure(Document(name, 0, "", 1), PromptError(f"this is no table: {error}"))
            return
        delimiter = "\t" if path.suffix.lower() == ".tsv" else max(_DELIMITERS, key=first.count)
        feed.push_back(first)
        reader = csv.reader(feed, delimiter=delimiter, strict=True)
        columns = _next_values(reader, max_bytes) or []
        if field is not None and field not in columns:
            raise ConfigError(
                f"{name} has no column {field!r}",
                place="field",
                hint=f"Its columns are {', '.join(map(repr, columns))}",
            )
        index = 0
        while True:
            line = feed.num_lines + 1
            try:
                values = _next_values(reader, max_bytes)
            except csv.Error as error:
                place = Document(name, index, "", line, feed.take_num_bytes())
                yield _failure(place, PromptError(f"this is no record of a table: {error}"))
                index += 1
                continue
            if values is None:
                return
            if values:
                place = Document(name, index, "", line, feed.take_num_bytes())
                yield _table_document(place, columns, values, field)
                index += 1


def _next_values(reader: Iterator[list[str]], max_bytes: int) -> list[str] | None:
    """The next record, whose fields may have `max_bytes`. The limit belongs to the whole process, so it holds for this call only."""
    limit = csv.field_size_limit(max_bytes)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(limit)


def text_of_record(record: Mapping[str, Any], field: str | None) -> str:
    """The text of a record. PromptError if `field` is not in it, or is null."""
    value: Any = record
    if field is not None:
        value = _find(record, field)
    elif isinstance(record.get("text"), str):
        value = record["text"]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value)
        return "\n".join(f"{key}: {_as_text(part)}" for key, part in pairs.items())
    return _as_text(value)


def _find(record: Mapping[str, Any], field: str) -> Any:
    value: Any = record
    for part in [field] if field in record else field.split("."):
        if not isinstance(value, Mapping) or part not in value:
            names = ", ".join(map(repr, list(record)[:20]))
            raise PromptError(
                f"the record has no field {field!r}", place="field", hint=f"It has {names}"
            )
        value = cast("Mapping[str, Any]", value)[part]
    if value is None:
        raise PromptError(f"the field {field!r} of the record is null", place="field")
    return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _json_document(place: Document, line: str, field: str | None) -> Document | Failure:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _failure(_with_text(place, line), PromptError(f"the line is no JSON: {error}"))
    if isinstance(record, str):
        return checked(_with_text(place, record))
    if not isinstance(record, dict):
        error = PromptError(f"the line is {record!r:.60}, neither an object nor a string")
        return _failure(_with_text(place, line), error)
    try:
        return checked(_with_text(place, text_of_record(cast("dict[str, Any]", record), field)))
    except PromptError as error:
        return _failure(_with_text(place, line), error)


def _table_document(
    place: Document, columns: list[str], values: list[str], field: str | None
) -> Document | Failure:
    if len(values) > len(columns):
        error = PromptError(f"the record has {len(values)} values for {len(columns)} columns")
        return _failure(place, error)
    record = dict(zip(columns, values, strict=False))
    try:
        return checked(_with_text(place, text_of_record(record, field)))
    except PromptError as error:
        return _failure(place, error)


def checked(document: Document) -> Document | Failure:
    """The document, or a Failure if its text is empty or cannot be sent to a model."""
    wrong = _LONE.search(document.text)
    if wrong is not None:
        number = ord(wrong.group())
        is_byte = _ESCAPED.match(wrong.group()) is not None
        kind = (
            f"the byte 0x{number - 0xDC00:02X} is no UTF-8" if is_byte else "it is half a character"
        )
        return _failure(
            document,
            PromptError(
                f"character {wrong.start()} cannot be read: {kind}",
                hint="Convert the document to UTF-8 text first",
            ),
        )
    if "\x00" in document.text:
        return _failure(
            document,
            PromptError(
                f"character {document.text.index(chr(0))} is NUL: the document is no text",
                hint="Convert it to text first",
            ),
        )
    if not document.text.strip():
        return _failure(document, PromptError("the document is empty"))
    return document


def _with_text(place: Document, text: str) -> Document:
    return Document(place.source, place.index, text, place.line, place.num_bytes)


def _failure(document: Document, error: PromptError) -> Failure:
    """A failure of reading; what it keeps of the text can be written down again."""
    text = document.text[:400].encode(errors="replace").decode()
    return Failure(_with_text(document, text), error)


def _too_long(num_bytes: int, max_bytes: int) -> PromptError:
    return PromptError(
        f"the document has {num_bytes} bytes or more, at most {max_bytes} are read at once",
        hint="Cut it into several documents",
    )


def _lines(file: BinaryIO, max_bytes: int) -> Iterator[tuple[int, str | None, int]]:
    """(number from 1 on, text, bytes) of each line; the text of one that is too long is None."""
    number = 0
    while raw := file.readline(max_bytes + 1):
        number += 1
        num_bytes = len(raw)
        is_too_long = num_bytes > max_bytes
        while is_too_long and not raw.endswith(b"\n") and (raw := file.readline(max_bytes)):
            num_bytes += len(raw)
        text = None if is_too_long else raw.decode(errors="surrogateescape")
        yield number, text.removeprefix("\ufeff") if text and number == 1 else text, num_bytes


class _TextLines:
    """The lines of a file for csv.reader, which may take several for one record."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self._lines = _lines(file, max_bytes)
        self._held: list[str] = []
        self._num_bytes = 0
        self._max_bytes = max_bytes
        self.num_lines = 0

    def __iter__(self) -> _TextLines:
        return self

    def __next__(self) -> str:
        self.num_lines += 1
        if self._held:
            return self._held.pop()
        _, text, num_bytes = next(self._lines)
        self._num_bytes += num_bytes
        if text is None or self._num_bytes > self._max_bytes:
            raise csv.Error(f"it has more than {self._max_bytes} bytes")
        return text

    def push_back(self, line: str) -> None:
        """Give a line again."""
        self._held.append(line)
        self.num_lines -= 1

    def take_num_bytes(self) -> int:
        """Bytes read since this was asked last."""
        num_bytes, self._num_bytes = self._num_bytes, 0
        return num_bytes
