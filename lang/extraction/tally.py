"""Counts of a job: what was done, what it cost, and how it is said in one line. Must not know where they come from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .documents import Failure, Outcome


@dataclass(frozen=True, slots=True)
class Tally:
    """Documents and tokens."""

    num_rows: int = 0
    num_failed: int = 0
    num_invalid: int = 0
    """Of those failed: complete outputs that broke the schema, which the grammar should not let happen."""
    num_split: int = 0
    """Documents that were read in several parts."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0

    @property
    def num_documents(self) -> int:
        """Rows and failures."""
        return self.num_rows + self.num_failed

    def plus(self, outcome: Outcome) -> Tally:
        """With one more document."""
        is_failure = isinstance(outcome, Failure)
        usage = outcome.usage
        return replace(
            self,
            num_rows=self.num_rows + (not is_failure),
            num_failed=self.num_failed + is_failure,
            num_invalid=self.num_invalid + (is_failure and outcome.is_invalid),
            num_split=self.num_split + (outcome.num_parts > 1),
            prompt_tokens=self.prompt_tokens + usage.prompt_tokens,
            cached_tokens=self.cached_tokens + usage.cached_tokens,
            completion_tokens=self.completion_tokens + usage.completion_tokens,
            forced_tokens=self.forced_tokens + usage.forced_tokens,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """What a progress callback is given, after each document."""

    tally: Tally
    """Of this run."""
    num_skipped: int
    """Documents that an earlier run had finished."""
    num_under_way: int
    """Documents being read."""
    fraction: float | None
    """Of the bytes of all sources; None when their size is not known."""
    elapsed_s: float

    @property
    def documents_per_s(self) -> float:
        """Of this run."""
        return self.tally.num_documents / max(self.elapsed_s, 1e-9)


@dataclass(frozen=True, slots=True)
class Summary:
    """The end of a job: `run` counts this run, `job` counts all runs of it; both are equal unless it was resumed."""

    run: Tally
    job: Tally
    elapsed_s: float
    output: str = ""
    dead_letter: str = ""

    @property
    def documents_per_s(self) -> float:
        """Of this run."""
        return self.run.num_documents / max(self.elapsed_s, 1e-9)

    def line(self) -> str:
        """The closing line."""
        run, job = self.run, self.job
        cached = 100 * run.cached_tokens / max(run.prompt_tokens, 1)
        forced = 100 * run.forced_tokens / max(run.completion_tokens, 1)
        earlier = job.num_documents - run.num_documents
        before = f" ({earlier} more were done before)" if earlier else ""
        return (
            f"{run.num_documents} documents in {self.elapsed_s:.1f} s, {self.documents_per_s:.2f}/s{before}; "
            f"{job.num_rows} rows, {job.num_failed} failed, invalid = {job.num_invalid}; "
            f"{run.prompt_tokens} prompt tokens, {run.cached_tokens} cached ({cached:.0f} %), "
            f"{run.completion_tokens} written, {run.forced_tokens} forced ({forced:.0f} %)"
        )
