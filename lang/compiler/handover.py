"""A lock under which results are found, and after which they are handed over.

Owns the rule that no future is settled while the lock is held: its callbacks belong to others, and take locks of their own. The lock may be
taken again by the thread that has it, since a backend may answer at once.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Self


class Handover:
    """Use it as `with handover:`; what was given inside is delivered when the thread leaves it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._ready: list[tuple[Future[Any], Any]] = []

    def __enter__(self) -> Self:
        self._lock.acquire()
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        ready: list[tuple[Future[Any], Any]] = []
        if not self._depth:
            ready, self._ready = self._ready, ready
        self._lock.release()
        for future, outcome in ready:
            if future.done():
                continue
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def give(self, future: Future[Any], outcome: Any) -> None:
        """Settle `future` when the lock is left: with an exception, or a result. Only inside."""
        self._ready.append((future, outcome))


def outcome_of(done: Future[Any]) -> Any:
    """The result of a future that is done, or its exception."""
    from concurrent.futures import CancelledError

    if done.cancelled():
        return CancelledError()
    return done.exception() or done.result()
