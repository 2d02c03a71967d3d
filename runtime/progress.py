"""Progress bars on a terminal's stderr. Owns rich; knows nothing of requests. Imported only where a bar is shown."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


class _Shown:
    """A bar that stands on the screen for the length of a `with` block."""

    _bar: Progress

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


class ItemProgress(_Shown):
    """A bar over `num_items` finished requests, with tokens per second and the share of prompt tokens that were cached."""

    def __init__(self, num_items: int, console: Console | None = None) -> None:
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rates]}"),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=num_items, rates="")
        self._began_s = time.monotonic()
        self._num_completion = self._num_prompt = self._num_cached = 0

    def advance(self, num_prompt: int = 0, num_cached: int = 0, num_completion: int = 0) -> None:
        """One more request is over, with these token counts."""
        self._num_prompt += num_prompt
        self._num_cached += num_cached
        self._num_completion += num_completion
        elapsed_s = max(time.monotonic() - self._began_s, 1e-6)
        cached = 100 * self._num_cached / max(self._num_prompt, 1)
        rates = f"{self._num_completion / elapsed_s:.0f} tokens/s, {cached:.0f} % of prompts cached"
        self._bar.update(self._task, advance=1, rates=rates)


class DocumentProgress(_Shown):
    """A bar over a job whose end is known as a share of its input, with a count of documents and a text of rates."""

    def __init__(self, console: Console | None = None) -> None:
        self._bar = Progress(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, counts="")

    def report(
        self, fraction: float | None, num_documents: int, num_failed: int, rates: str
    ) -> None:
        """So much is done; `fraction` None: nobody knows of how much."""
        failed = f", {num_failed} failed" if num_failed else ""
        counts = f"{num_documents} documents{failed}, {rates}"
        total = None if fraction is None else 1.0
        self._bar.update(self._task, completed=fraction or 0.0, total=total, counts=counts)


class TransferProgress(_Shown):
    """A bar over bytes in phases, in the form `model_pull.pull` reports them."""

    def __init__(self, console: Console | None = None) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=console or Console(stderr=True),
        )
        self._tasks: dict[str, object] = {}

    def report(self, phase: str, num_done: int, num_bytes: int) -> None:
        """`num_done` of `num_bytes` (0: not known yet) of a phase are done."""
        if phase not in self._tasks:
            self._tasks[phase] = self._bar.add_task(phase, total=None)
        self._bar.update(self._tasks[phase], completed=num_done, total=num_bytes or None)  # type: ignore[arg-type]
