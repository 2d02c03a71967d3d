"""Where documents come from: files, folders, or any iterable of Python values.

Owns the list of files behind the caller's paths, and which reader serves which file. A file is a *source*; each of its documents has a
number in it. Nothing is read before it is asked for, and never more than one document of a file at a time.

    .jsonl .ndjson    one document a line           .csv .tsv    one a record, the first line names the columns
    everything else   the whole file is one document

Must not know schemas or backends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ...errors import ConfigError, PromptError
from .documents import Document, Failure
from .records import checked, read_csv, read_json_lines, read_whole, text_of_record

SUFFIXES = frozenset(
    {".txt", ".text", ".md", ".markdown", ".rst", ".jsonl", ".ndjson", ".csv", ".tsv"}
)
MAX_DOCUMENT_BYTES = 64 << 20
_HASH_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """A file: `name` is how rows call it, the path as the caller wrote it."""

    name: str
    path: Path

    @property
    def num_bytes(self) -> int:
        """Its size now."""
        return self.path.stat().st_size

    def digest(self) -> str:
        """Of its content; two files with the same digest are the same."""
        digest = hashlib.blake2b(digest_size=16)
        with self.path.open("rb") as file:
            while block := file.read(_HASH_BLOCK_BYTES):
                digest.update(block)
        return digest.hexdigest()

    def read(
        self, field: str | None = None, max_bytes: int = MAX_DOCUMENT_BYTES
    ) -> Iterator[Document | Failure]:
        """Its documents, in order. One that cannot be read is a Failure, and the next one follows.

        `field` names the text in a record: a key, a column, or a dotted path. Without it a record's "text" is taken if it has one, else
        the whole record as "name: value" lines. ConfigError if a table has no such column.
        """
        suffix = self.path.suffix.lower()
        if suffix in {".jsonl", ".ndjson"}:
            yield from read_json_lines(self.path, self.name, field, max_bytes)
        elif suffix in {".csv", ".tsv"}:
            yield from read_csv(self.path, self.name, field, max_bytes)
        else:
            yield read_whole(self.path, self.name, max_bytes)


def find_sources(
    paths: Iterable[str | Path] | str | Path, exclude: Iterable[Path] = ()
) -> list[Source]:
    """The files behind `paths`: a folder stands for the files of known suffixes in it and below, in the order of their names.

    `exclude` are files that the job itself writes. ConfigError for a path that is not there, given twice, or a folder without documents.
    """
    written = {path.resolve() for path in exclude}
    found: dict[Path, Source] = {}
    for given in [paths] if isinstance(paths, str | Path) else paths:
        path = Path(given)
        for file in _files_of(path, written):
            resolved = file.resolve()
            if resolved in written:
                raise ConfigError(f"{file} is written by this job", place="sources")
            if resolved in found:
                raise ConfigError(
                    f"{file} is given twice: it is {found[resolved].name} too", place="sources"
                )
            found[resolved] = Source(str(file), file)
    if not found:
        raise ConfigError("there are no documents to read", place="sources")
    return list(found.values())


def read_items(items: Iterable[Any], field: str | None = None) -> Iterator[Document | Failure]:
    """The documents of any iterable: a str is a text, a Path a file or folder, a Mapping a record, a Document itself.

    Texts and records have the source "input" and their number in the iterable. ConfigError for anything else.
    """
    for index, item in enumerate(items):
        if isinstance(item, Failure):
            yield item
        elif isinstance(item, Document):
            yield checked(item)
        elif isinstance(item, Path):
            for source in find_sources(item):
                yield from source.read(field)
        elif isinstance(item, str):
            yield checked(Document("input", index, item))
        elif isinstance(item, Mapping):
            yield _record(index, cast("Mapping[str, Any]", item), field)
        else:
            raise ConfigError(
                f"item {index} is {item!r:.80}",
                place="sources",
                hint="A document is a text, a pathlib.Path or a dict; a str is always taken for the text itself",
            )


def _record(index: int, record: Mapping[str, Any], field: str | None) -> Document | Failure:
    try:
        return checked(Document("input", index, text_of_record(record, field)))
    except PromptError as error:
        return Failure(Document("input", index, ""), error)


def _files_of(path: Path, written: set[Path]) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        inside = (file for file in path.rglob("*") if _is_document(file.relative_to(path), file))
        files = sorted(file for file in inside if file.resolve() not in written)
        if not files:
            raise ConfigError(
                f"the folder {path} holds no documents",
                place="sources",
                hint=f"Known suffixes are {' '.join(sorted(SUFFIXES))}; other text files can be named one by one",
            )
        yield from files
    else:
        raise ConfigError(f"{path} does not exist", place="sources")


def _is_document(inner: Path, file: Path) -> bool:
    is_hidden = any(part.startswith(".") for part in inner.parts)
    return not is_hidden and file.suffix.lower() in SUFFIXES and file.is_file()
