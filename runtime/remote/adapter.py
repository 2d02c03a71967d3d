"""What a wire protocol must do to be a backend, and nothing more.

Owns the `Adapter` Protocol and the two questions it is asked. Branches, order, threads, aborts and time limits are `backend.py`'s, so an
adapter only turns one question into HTTP requests and their answers into one answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .. import messages as m
from .prompts import Piece

OnDelta = Callable[[m.Delta], None]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Ask:
    """Continue `pieces`: the message says how. `has_forks`: other branches share this beginning. `wants_tokens`: tell the tokens, if you can."""

    pieces: tuple[Piece, ...]
    message: m.Generate
    namespace: str = ""
    strict_text: bool = False
    has_forks: bool = False
    wants_tokens: bool = False


@dataclass(frozen=True, slots=True)
class Choose:
    """Judge the choices of `message` as continuations of `pieces`."""

    pieces: tuple[Piece, ...]
    message: m.Score
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """The answer to an Ask, and how the branch goes on: the segments of its first output (None: its text)."""

    finished: m.Finished
    segments: tuple[m.Segment, ...] | None = None
    tokens: tuple[str, ...] | None = None  # of the first output, where the server tells them


class Adapter(Protocol):
    """One server, spoken to in its own way. Everything but `name`, `facts` and `speculates` runs on the backend's loop."""

    @property
    def name(self) -> str:
        """What errors call the server."""
        ...

    @property
    def facts(self) -> m.Ready:
        """Facts of the model; zeros where the server does not tell."""
        ...

    async def generate(self, ask: Ask, on_delta: OnDelta | None) -> Told:
        """Continue. Raises an error of `errors.py`; what the server cannot do is refused by name before anything is sent."""
        ...

    async def score(self, choose: Choose) -> m.Scored:
        """Judge choices; where the server gives no log-probabilities the one it takes gets 0.0 and the others minus infinity."""
        ...

    def speculates(self, ask: Ask) -> bool:
        """May text beyond the end of this result be kept for the next one on the branch?"""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


async def all_of(calls: Sequence[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    """The answers of calls that run at once. The first that fails ends the others, and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        first = failed.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise first
