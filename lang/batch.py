"""A batch of runs: its options, the order of its results, and what is shown of its progress.

Owns the meaning of run_batch's own arguments. Must not know greenlets, messages, terminals or rich: a backend that has a progress bar gives
one (`HasProgress`), else one line of text is rewritten on stderr.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sized
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from ..errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Self, TextIO

    from .interpreter import Call
    from .state import State

_MAX_LIVE = 256  # enough to keep any batch full; more would only queue in the engine
_REDRAW_S = 0.1


class BatchProgress(Protocol):
    """Something that shows how far a batch is. Entered when it begins, left when it ends."""

    def __enter__(self) -> Any: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def advance(self, num_prompt: int = 0, num_cached: int = 0, num_completion: int = 0) -> None:
        """One more run is over, with these token counts."""
        ...


@runtime_checkable
class HasProgress(Protocol):
    """A backend that can show the progress of a batch."""

    def progress(self, num_items: int) -> BatchProgress:
        """A bar over so many runs."""
        ...


def states(
    calls: Iterable[Call], max_live: int, progress: AbstractContextManager[BatchProgress | None]
) -> Generator[State]:
    """The states of all calls as their runs end."""
    from .crew import Crew

    with progress as bar:
        for state in Crew(calls, max_live).states():
            _advance(bar, state)
            yield state


async def arrivals(
    calls: Iterable[Call], max_live: int, progress: AbstractContextManager[BatchProgress | None]
) -> AsyncGenerator[State]:
    """As `states`, on the running loop."""
    from .crew import Crew

    with progress as bar:
        crew = Crew(calls, max_live).arrivals()
        try:
            async for state in crew:
                _advance(bar, state)
                yield state
        finally:
            await crew.aclose()


async def in_order_async(arriving: AsyncGenerator[State]) -> list[State]:
    """All of them, in the order of the batch."""
    return in_order([state async for state in arriving])


def in_order(finished: Iterable[State]) -> list[State]:
    """All of them, in the order of the batch."""
    return sorted(finished, key=lambda state: state.index or 0)


def max_live_of(num_threads: int | str) -> int:
    """How many programs are live at once. ProgramError for what is no positive number."""
    max_live = _MAX_LIVE if num_threads == "auto" else num_threads
    if not isinstance(max_live, int) or isinstance(max_live, bool) or max_live < 1:
        raise ProgramError(
            f"num_threads={num_threads!r} is not a positive number", place="num_threads"
        )
    return max_live


def progress_of(
    backend: object, batch: object, wanted: bool | BatchProgress | None
) -> AbstractContextManager[BatchProgress | None]:
    """What shows the batch: `wanted` itself, the backend's bar, a line of text, or nothing. None: where stderr is a terminal."""
    if wanted is not None and not isinstance(wanted, bool):
        if not callable(getattr(wanted, "advance", None)):
            raise ProgramError(
                f"progress_bar={wanted!r:.80} is not True, False, None or an object with `advance`",
                place="progress_bar",
            )
        return wanted
    num_items = len(batch) if isinstance(batch, Sized) else 0
    if wanted is False or (wanted is None and not (num_items > 1 and sys.stderr.isatty())):
        return nullcontext()
    if num_items and isinstance(backend, HasProgress):
        return backend.progress(num_items)
    return cast("AbstractContextManager[BatchProgress]", ProgressLine(num_items, sys.stderr))


class ProgressLine:
    """One line of text that is rewritten: runs done, tokens a second, the share of prompt tokens that were cached."""

    def __init__(self, num_items: int, stream: TextIO) -> None:
        """`num_items` 0: their number is not known."""
        self._num_items = num_items
        self._stream = stream
        self._num_done = self._num_prompt = self._num_cached = self._num_completion = 0
        self._began_s = self._drawn_s = 0.0

    def __enter__(self) -> Self:
        self._began_s = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._draw()
        self._stream.write("\n")
        self._stream.flush()

    def advance(self, num_prompt: int = 0, num_cached: int = 0, num_completion: int = 0) -> None:
        """One more run is over, with these token counts."""
        self._num_done += 1
        self._num_prompt += num_prompt
        self._num_cached += num_cached
        self._num_completion += num_completion
        if time.monotonic() - self._drawn_s > _REDRAW_S:
            self._draw()

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        elapsed_s = max(self._drawn_s - self._began_s, 1e-6)
        of = f"/{self._num_items}" if self._num_items else ""
        cached = 100 * self._num_cached / max(self._num_prompt, 1)
        rate = f"{self._num_completion / elapsed_s:.0f} tokens/s"
        self._stream.write(
            f"\r{self._num_done}{of} runs, {rate}, {cached:.0f} % of prompts cached\033[K"
        )
        self._stream.flush()


def _advance(bar: BatchProgress | None, state: State) -> None:
    if bar is not None:
        usage = state.usage()
        bar.advance(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
