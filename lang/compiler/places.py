"""Where the branches of a batch stand: on a wire of their own, or still at a place behind a result that others may continue from too.

Owns seats (a branch as its run sees it), places (a branch of the backend that stands still) and entries (a result and its place). Data and its
small rules only; what is sent is decided in `sharing.py`, which holds its lock in every method.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from ...runtime.messages import Generate, OpenBranch, Segment
    from .history import History


@dataclass(slots=True, eq=False)
class Place:
    """A branch of the backend behind a result."""

    wire: str
    num_users: int = 0  # seats that would start from here
    is_own: bool = False  # no run's branch stands on it any more: it is ours to close
    is_known: bool = True  # a result that is kept leads here


@dataclass(slots=True, eq=False)
class Entry:
    """A result that others may take over."""

    name: str
    """Its variable."""
    key: bytes
    answer: Future[Any]
    place: Place
    followers: list[Follower] = field(default_factory=list["Follower"])


@dataclass(slots=True, eq=False)
class Seat:
    """One branch of a run."""

    name: str
    opening: OpenBranch
    history: History
    is_held: bool = False
    wire: str | None = None
    """The branch of the backend that only this one uses; None before it asked something that nobody had asked."""
    start: Place | None = None
    """Without a wire: where it would be forked from; None is the beginning."""
    behind: Entry | None = None
    """It stands with nothing sent behind this result, whose place is its wire."""
    unsent: list[Segment] = field(default_factory=list["Segment"])
    failure: BaseException | None = None
    queue: deque[Callable[[], None]] = field(default_factory=deque["Callable[[], None]"])

    def do(self, work: Callable[[], None]) -> None:
        """Do the work now, or behind what is held."""
        if self.is_held:
            self.queue.append(work)
        else:
            work()

    def release(self) -> None:
        """End a hold and do what was queued, until something holds again."""
        self.is_held = False
        while self.queue and not self.is_held:
            self.queue.popleft()()

    def leave_start(self) -> Place | None:
        """Give up the place it would start from; that place if nobody uses it any more."""
        place, self.start = self.start, None
        if place is None:
            return None
        place.num_users -= 1
        return place if not place.num_users else None

    def start_from(self, place: Place | None) -> None:
        """Stand at a place, without a wire."""
        self.start = place
        if place is not None:
            place.num_users += 1


@dataclass(slots=True, eq=False)
class Follower:
    """A request that waits for a leader's result."""

    seat: Seat
    message: Generate
    future: Future[Any]
