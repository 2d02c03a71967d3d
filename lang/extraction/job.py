"""A job over files: read, extract, append, remember; begin anew or go on where an earlier run was stopped or killed.

Owns the files of a job and the moments of a commit (see `journal.py` for what a commit promises). Must not know how documents are read
or answered.

    out.jsonl    the rows          out.failed.jsonl    the dead letters          out.jsonl.journal    what is done
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import ConfigError
from .documents import Extracted, Failure, Outcome
from .journal import DamagedJournal, Journal, Noted, SourceFact
from .outputs import LineFile, failure_line, format_of
from .parquet import require_pyarrow, write_parquet
from .pipeline import Numbered, Pipeline
from .recipe import Recipe
from .sources import Source
from .tally import Progress, Summary, Tally

OnProgress = Callable[[Progress], None]
_COMMIT_S = 0.1  # the longest that a line waits for its commit while others follow
_IDLE_COMMIT_S = 0.02  # the same while nothing follows


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The paths of a job."""

    output: Path
    dead_letter: Path

    @staticmethod
    def beside(output: str | Path, dead_letter: str | Path | None) -> JobFiles:
        """With the dead letters in `out.failed.jsonl` beside `out.jsonl`, unless they are given a place."""
        path = Path(output)
        named = path.with_name(f"{path.stem}.failed.jsonl") if dead_letter is None else dead_letter
        files = JobFiles(path, Path(named))
        if files.dead_letter.resolve() in {each.resolve() for each in files.all_but_dead_letter()}:
            raise ConfigError(
                f"{files.dead_letter} is a file of the job already", place="dead_letter"
            )
        return files

    @property
    def is_parquet(self) -> bool:
        """Rows are gathered first, and become Parquet at the end."""
        return self.output.suffix.lower() == ".parquet"

    @property
    def rows(self) -> Path:
        """Where rows are appended."""
        if self.is_parquet:
            return self.output.with_name(f"{self.output.name}.rows.jsonl")
        return self.output

    @property
    def journal(self) -> Path:
        """The journal."""
        return self.output.with_name(f"{self.output.name}.journal")

    @property
    def of_journal(self) -> list[Path]:
        """The journal and what SQLite keeps beside it."""
        return [self.journal, self.journal.with_name(f"{self.journal.name}-wal")]

    def all(self) -> list[Path]:
        """Every file that the job writes: none of them is a document."""
        return [*self.all_but_dead_letter(), self.dead_letter]

    def all_but_dead_letter(self) -> list[Path]:
        """Every other file that the job writes."""
        return [self.output, self.rows, *self.of_journal]


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a job came before a run: what earlier runs did, and whether that is all."""

    summary: Summary
    is_finished: bool


class Job:
    """One run of a job. `run` returns at its end; whatever ends it earlier, what was finished stays finished."""

    def __init__(
        self,
        sources: list[Source],
        files: JobFiles,
        recipe: Recipe,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._sources = sources
        self._files = files
        self._recipe = recipe
        self._format = format_of(files.output, recipe.target.schema)
        self._on_progress = on_progress
        self._run = Tally()
        self._began_s = self._committed_s = time.monotonic()
        self._num_bytes_done = self._num_skipped = 0
        self._has_begun = False  # a new job, in this run
        self._owns_lines = False  # what stands in the files was written by the job
        if files.is_parquet:
            require_pyarrow()

    def run(self, *, resume: bool = True, retry_failed: bool = False) -> Summary:
        """Do what is not done. `resume=False` begins anew, over what is there; `retry_failed` tries failures of earlier runs again.

        ConfigError if the output belongs to something else, or the job was begun otherwise. A run that ends before any document did
        leaves nothing.
        """
        if resume and not self._files.journal.exists():
            self._refuse_foreign_output()
        with self._open_journal(resume) as journal:
            try:
                self._begin(journal, resume)
                if retry_failed:
                    journal.retry_failed()
                earlier = journal.tally
                if not journal.is_finished:
                    self._work(journal, earlier)
                self._clear_up(journal)
            except BaseException:
                if self._has_begun and journal.is_empty:
                    self._leave_nothing()
                raise
        return self._summary(earlier)

    def look(self, *, resume: bool = True, retry_failed: bool = False) -> Standing:
        """Raise what `run` would of the files that are there; else where the job stands. Changes nothing."""
        nothing = Standing(self._summary(Tally()), is_finished=False)
        if not resume:
            return nothing
        if not self._files.journal.exists():
            self._refuse_foreign_output()
            return nothing
        with self._open_journal(resume) as journal:
            if journal.is_empty:
                return nothing
            journal.resume(self._facts(), self._source_facts())
            is_finished = journal.is_finished and not (retry_failed and journal.tally.num_failed)
            if is_finished:
                self._refuse_lost_output()
            return Standing(self._summary(journal.tally), is_finished)

    def _summary(self, earlier: Tally) -> Summary:
        return Summary(
            self._run,
            _together(earlier, self._run),
            time.monotonic() - self._began_s,
            str(self._files.output),
            str(self._files.dead_letter),
        )

    # ------------------------------------------------------------------------------------ the beginning

    def _open_journal(self, resume: bool) -> Journal:
        folder = self._files.output.parent
        if not folder.is_dir():
            raise ConfigError(f"the folder {folder} does not exist", place="output")
        try:
            return Journal(self._files.journal)
        except DamagedJournal:
            if resume:
                raise
        for path in self._files.of_journal:
            path.unlink(missing_ok=True)
        return Journal(self._files.journal)

    def _begin(self, journal: Journal, resume: bool) -> None:
        if resume and not journal.is_empty:
            journal.resume(self._facts(), self._source_facts())
            return
        if resume and journal.is_new:
            self._refuse_foreign_output()
        journal.begin(self._facts(), self._source_facts())
        self._has_begun = True

    def _facts(self) -> dict[str, str]:
        return {**self._recipe.facts, "dead_letter": str(self._files.dead_letter)}

    def _refuse_foreign_output(self) -> None:
        """Lines without a journal are somebody else's, or of a job whose journal was deleted."""
        for path in (self._files.output, self._files.rows, self._files.dead_letter):
            if path.exists() and path.stat().st_size:
                raise ConfigError(
                    f"{path} is there already, and no journal says that this job wrote it",
                    place="output",
                    hint="Choose another output, or overwrite it (resume=False)",
                )

    def _source_facts(self) -> Iterator[SourceFact]:
        for source in self._sources:
            try:
                yield source.name, source.num_bytes, source.digest()
            except OSError as error:
                raise ConfigError(
                    f"{source.name} cannot be read: {error}", place="sources"
                ) from None

    # ------------------------------------------------------------------------------------ the work

    def _work(self, journal: Journal, earlier: Tally) -> None:
        pipeline = Pipeline(self._recipe)
        num_bytes = sum(source.num_bytes for source in self._sources)
        with ExitStack() as stack:
            rows = LineFile(self._files.rows, journal.output_bytes, self._format.header)
            stack.callback(rows.close)
            dead = LineFile(self._files.dead_letter, journal.dead_bytes)
            stack.callback(dead.close)
            self._owns_lines = True

            def commit() -> None:
                rows.sync()
                dead.sync()
                journal.commit()
                self._committed_s = time.monotonic()

            stack.callback(commit)  # also when an error or an interrupt ends the run
            outcomes = pipeline.run(self._open_documents(journal))
            stack.callback(outcomes.close)
            for number, outcome in outcomes:
                self._append(outcome, rows, dead)
                run = self._run.plus(outcome)
                sizes = rows.num_bytes, dead.num_bytes
                is_failure = isinstance(outcome, Failure)
                journal.note(Noted(number, is_failure, *sizes, _together(earlier, run)))
                self._run = run
                self._num_bytes_done += outcome.document.num_bytes
                waited_s = time.monotonic() - self._committed_s
                if waited_s > (_COMMIT_S if pipeline.has_more else _IDLE_COMMIT_S):
                    commit()
                self._report(pipeline.num_under_way, num_bytes)

    def _open_documents(self, journal: Journal) -> Iterator[Numbered]:
        """What is not done, numbered through all sources."""
        number = 0
        for source in self._sources:
            for document in source.read(self._recipe.field):
                if not journal.is_done(number):
                    yield number, document
                else:
                    inner = document.document if isinstance(document, Failure) else document
                    self._num_bytes_done += inner.num_bytes
                    self._num_skipped += 1
                number += 1

    def _append(self, outcome: Outcome, rows: LineFile, dead: LineFile) -> None:
        if isinstance(outcome, Extracted):
            rows.append(self._format.line(outcome))
        else:
            dead.append(failure_line(outcome))

    def _report(self, num_under_way: int, num_bytes: int) -> None:
        if self._on_progress is not None:
            fraction = min(self._num_bytes_done / num_bytes, 1.0) if num_bytes else None
            elapsed_s = time.monotonic() - self._began_s
            self._on_progress(
                Progress(self._run, self._num_skipped, num_under_way, fraction, elapsed_s)
            )

    # ------------------------------------------------------------------------------------ the end

    def _refuse_lost_output(self) -> None:
        if not self._files.output.exists():
            raise ConfigError(
                f"the job is finished, but {self._files.output} is gone",
                place="output",
                hint="Begin anew (resume=False)",
            )

    def _leave_nothing(self) -> None:
        """After a job that ended before any document did: its files would only be in the way of the next try."""
        files = self._files
        with suppress(OSError):  # what made the job fail may be the place it writes to
            for path, num_bytes in ((files.rows, len(self._format.header)), (files.dead_letter, 0)):
                if path.is_file() and (self._owns_lines or path.stat().st_size <= num_bytes):
                    path.unlink()
            for path in files.of_journal:  # last: lines without a journal would be in the way
                path.unlink(missing_ok=True)

    def _clear_up(self, journal: Journal) -> None:
        """All is done: the Parquet file, then the journal's last word, then what is not needed any more."""
        files = self._files
        if not journal.is_finished:
            if files.is_parquet:
                write_parquet(files.rows, files.output, self._recipe.target.schema)
            journal.finish()
        else:
            self._refuse_lost_output()
        if not journal.dead_bytes:
            files.dead_letter.unlink(missing_ok=True)
            if files.is_parquet:  # with failures its rows are kept: `retry_failed` adds to them
                files.rows.unlink(missing_ok=True)


def _together(earlier: Tally, run: Tally) -> Tally:
    fields = Tally.__dataclass_fields__
    return replace(
        earlier, **{name: getattr(earlier, name) + getattr(run, name) for name in fields}
    )
