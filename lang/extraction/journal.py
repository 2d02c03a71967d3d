"""What a job has finished, in SQLite beside its output, so that a killed one is continued exactly.

Owns the journal's tables and the promise: *a document is done when, and only when, its line stands in an output file before the byte
that the journal names*. The order of one commit keeps it, whatever moment the process dies at:

    1. lines are appended to the output and dead-letter files, and the files synced
    2. one transaction: numbers of the documents done, sizes of both files, counts

A run that resumes cuts both files to the sizes of the last transaction, and does what is not done. Documents are numbered through all
sources; since at most so many are under way, those done are "all below `low`" and a few above, so the journal does not grow with the job.

Must not know formats or backends. Two processes cannot hold one journal: SQLite's exclusive lock is kept until it is closed, and ends
with its process.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from .tally import Tally

_VERSION = "1"
_HINT = "Continue with what the job began with, or begin anew (resume=False)"
_TABLES = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE source (number INTEGER PRIMARY KEY, name TEXT NOT NULL, num_bytes INTEGER NOT NULL, digest TEXT NOT NULL);
CREATE TABLE failed (number INTEGER PRIMARY KEY, is_open INTEGER NOT NULL);
CREATE TABLE state (
    low INTEGER NOT NULL, above TEXT NOT NULL, output_bytes INTEGER NOT NULL, dead_bytes INTEGER NOT NULL,
    tally TEXT NOT NULL, is_finished INTEGER NOT NULL
);
"""
SourceFact = tuple[str, int, str]  # name, bytes, digest


@dataclass(frozen=True, slots=True)
class Noted:
    """A document that is done: its number, and the sizes of the files and the counts of the job with it."""

    number: int
    is_failure: bool
    output_bytes: int
    dead_bytes: int
    tally: Tally


class DamagedJournal(ConfigError):
    """A file that SQLite, or this version, cannot read."""


class Journal:
    """The journal of one job. Use it in a `with` block."""

    def __init__(self, path: Path) -> None:
        """Open or create it. DamagedJournal, or ConfigError if another process holds it."""
        self.path = path
        self.low = 0
        self.above: set[int] = set()
        self.open_again: set[int] = set()  # failures of an earlier run that are tried again
        self.output_bytes = 0
        self.dead_bytes = 0
        self.tally = Tally()
        self.is_finished = False
        self._noted: list[Noted] = []
        self._connection = self._connect()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @property
    def is_new(self) -> bool:
        """Whether no job was begun with it."""
        found = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'state'")
        return found.fetchone() is None

    @property
    def is_empty(self) -> bool:
        """Whether no document is done: there is nothing to go on from."""
        if self.is_new:
            return True
        with self._refusing_damage():
            low, above = self._connection.execute("SELECT low, above FROM state").fetchone()
        return not low and above == "[]"

    def begin(self, facts: Mapping[str, str], sources: Iterable[SourceFact]) -> None:
        """Write down a new job, in place of what was there."""
        with self._transaction() as run:
            for table in ("fact", "source", "failed", "state"):
                run(f"DROP TABLE IF EXISTS {table}")
            for statement in filter(str.strip, _TABLES.split(";")):
                run(statement)
            named = {**facts, "version": _VERSION}
            for item in named.items():
                run("INSERT INTO fact VALUES (?, ?)", item)
            for number, source in enumerate(sources):
                run("INSERT INTO source VALUES (?, ?, ?, ?)", (number, *source))
            run("INSERT INTO state VALUES (0, '[]', 0, 0, '{}', 0)")

    def resume(self, facts: Mapping[str, str], sources: Iterable[SourceFact]) -> None:
        """Read where the job stands. ConfigError if it was begun with other facts or sources."""
        with self._refusing_damage():
            self._compare_facts({**facts, "version": _VERSION})
            self._compare_sources(sources)
            row = self._connection.execute("SELECT * FROM state").fetchone()
            self.low, self.output_bytes, self.dead_bytes = row[0], row[2], row[3]
            self.above = set(json.loads(row[1]))
            self.tally = Tally(**json.loads(row[4]))
            self.is_finished = bool(row[5])
            again = self._connection.execute("SELECT number FROM failed WHERE is_open")
            self.open_again = {number for (number,) in again}

    def retry_failed(self) -> int:
        """Open the documents that failed again, and empty the dead-letter file; returns how many there are."""
        with self._transaction() as run:
            run("UPDATE failed SET is_open = 1")
            self.open_again = {number for (number,) in run("SELECT number FROM failed")}
            if self.open_again:
                self.dead_bytes = 0
                self.is_finished = False
                self.tally = replace(self.tally, num_failed=0, num_invalid=0)
                self._write_state(run)
        return len(self.open_again)

    def is_done(self, number: int) -> bool:
        """Whether a document has its line."""
        return number not in self.open_again and (number < self.low or number in self.above)

    def note(self, noted: Noted) -> None:
        """A document is done; on disk from the next `commit` on. One step, so that an interrupt comes before or after it."""
        self._noted.append(noted)

    def commit(self) -> None:
        """Make what was noted true. Its lines must be in the files, and synced; lines of what was not noted are none of the job's."""
        noted = list(self._noted)
        numbers = {each.number for each in noted}
        self.above |= numbers - self.open_again
        while self.low in self.above:
            self.above.discard(self.low)
            self.low += 1
        if noted:
            last = noted[-1]
            self.output_bytes, self.dead_bytes = last.output_bytes, last.dead_bytes
            self.tally = last.tally
        with self._transaction() as run:
            for each in noted:
                if each.is_failure:
                    run("INSERT OR REPLACE INTO failed VALUES (?, 0)", (each.number,))
                elif each.number in self.open_again:
                    run("DELETE FROM failed WHERE number = ?", (each.number,))
            self._write_state(run)
        self.open_again -= numbers
        del self._noted[: len(noted)]

    def finish(self) -> None:
        """All documents are done, and the output is what was asked for."""
        self.is_finished = True
        with self._transaction() as run:
            self._write_state(run)

    # ------------------------------------------------------------------------------------ SQLite

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=0.0, isolation_level=None)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")  # takes the lock, which is kept from here on
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            connection.close()
            raise ConfigError(
                f"the journal {self.path} cannot be used: {error}",
                place="output",
                hint="Another run may be writing this output",
            ) from None
        except sqlite3.DatabaseError as error:
            connection.close()
            raise _damaged(self.path, error) from None
        return connection

    @contextlib.contextmanager
    def _transaction(self) -> Any:
        with self._refusing_damage():
            if self._connection.in_transaction:  # an interrupt came between the two lines below
                self._connection.execute("ROLLBACK")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.execute
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextlib.contextmanager
    def _refusing_damage(self) -> Any:
        try:
            yield
        except (sqlite3.DatabaseError, TypeError, ValueError) as error:
            raise _damaged(self.path, error) from error

    def _write_state(self, run: Any) -> None:
        run(
            "UPDATE state SET low = ?, above = ?, output_bytes = ?, dead_bytes = ?, tally = ?, is_finished = ?",
            (
                self.low,
                json.dumps(sorted(self.above)),
                self.output_bytes,
                self.dead_bytes,
                json.dumps(asdict(self.tally)),
                self.is_finished,
            ),
        )

    def _compare_facts(self, facts: Mapping[str, str]) -> None:
        begun = dict(self._connection.execute("SELECT name, value FROM fact").fetchall())
        for name in dict.fromkeys([*facts, *begun]):
            if begun.get(name) != facts.get(name):
                raise ConfigError(
                    f"the job of {self.path} was begun with another {name}", place=name, hint=_HINT
                )

    def _compare_sources(self, sources: Iterable[SourceFact]) -> None:
        begun = self._connection.execute(
            "SELECT name, num_bytes, digest FROM source ORDER BY number"
        )
        for source in sources:
            before = begun.fetchone()
            if before is None:
                raise _other_sources(f"{source[0]} was not among the sources")
            if before[0] != source[0]:
                raise _other_sources(f"the source {before[0]} is missing, or {source[0]} is new")
            if before != source:
                raise _other_sources(f"{source[0]} has changed")
        missing = begun.fetchone()
        if missing is not None:
            raise _other_sources(f"the source {missing[0]} is missing")


def _other_sources(reason: str) -> ConfigError:
    return ConfigError(
        f"the sources are not those the job was begun with: {reason}", place="sources", hint=_HINT
    )


def _damaged(path: Path, error: Exception) -> DamagedJournal:
    return DamagedJournal(
        f"{path} is no journal that can be read: {error}",
        place="output",
        hint="Begin anew (resume=False)",
    )
