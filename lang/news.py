"""What a live run has to tell to those who watch it: new text, finished results, and a bell for "look again".

Owns the list of events in the order they happened, and the bell. Events come on the backend's thread, watchers sit on their own; nothing
here waits. Must not know branches, bodies or messages.

    seen = news.num_rung       what a watcher has looked at
    ... look ...
    bell = news.bell(seen)     None: something came meanwhile, look again; else a future that is done when something comes
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .variable import Meta


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """New text of one gen or select, in whatever branch."""

    name: str
    """The variable."""
    path: tuple[int, ...]
    """Where: () for the program's own branch, then (fork number, child number) pairs down to a forked child."""
    text: str
    """The new text, perhaps "" with the last event; joined, the result's text (of the first output if n > 1)."""
    meta: Meta | None = None
    """With the last event of a result: how it ended. None before."""


class News:
    """See the module. Every method may be called from any thread."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []
        self.num_rung = 0
        self._lock = threading.Lock()
        self._bell: Future[None] | None = None

    def add(self, event: StreamEvent) -> None:
        """Something happened."""
        self.events.append(event)
        self.ring()

    def ring(self, _: object = None) -> None:
        """Have everybody look again."""
        with self._lock:
            self.num_rung += 1
            bell, self._bell = self._bell, None
        if bell is not None:
            bell.set_result(None)

    def bell(self, num_seen: int) -> Future[None] | None:
        """A future that is done with the next ring; None if it has rung since it had rung `num_seen` times."""
        with self._lock:
            if self.num_rung != num_seen:
                return None
            if self._bell is None:
                self._bell = Future()
            return self._bell
