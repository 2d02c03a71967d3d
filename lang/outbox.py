"""The way of one branch's messages to the backend, in order and as few as possible.

Owns what is not sent yet: constants gather until something must see them (one Append), the branch is opened by its first message, and a
branch that only holds text sends nothing. Must not know variables or results.

While the outbox is *held*, work is queued: behind a select its text is unknown, and a forked child must not speak before its Fork.
The caller holds the run's lock in every method.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ..errors import RadixError
from ..runtime.messages import Append, CloseBranch, Fork, Hints, Ids, OpenBranch, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..runtime.messages import Ready, Segment
    from .backend import Backend

_NO_HINTS = Hints()


class Outbox:
    """See the module. `wire_id` names the branch to the backend."""

    def __init__(self, backend: Backend, namespace: str, strict_text: bool) -> None:
        self.backend = backend
        self.namespace = namespace
        self.strict_text = strict_text
        self.wire_id = backend.new_id("branch")
        self.is_held = False
        self.copy_id: str | None = (
            None  # of the branch's copy, on which something is asked beside it
        )
        self._is_open = False
        self._is_empty = True  # nothing was ever added, here or before a fork
        self._is_draining = False
        self._unsent: list[Segment] = []
        self._queue: deque[tuple[Callable[[], object], int]] = (
            deque()
        )  # work, children if it is a fork

    def do(self, work: Callable[[], object], num_forks: int = 0) -> None:
        """Do the work now, or when the outbox is released. Work done meanwhile keeps its order. `num_forks`: it is a fork of so many."""
        if self.is_held:
            self._queue.append((work, num_forks))
        else:
            work()

    def hints(self) -> Hints:
        """What is known of what comes behind the request that is being sent."""
        return Hints(num_forks=self._queue[0][1]) if self._queue else _NO_HINTS

    def add(self, segment: Segment) -> None:
        """A constant, to be sent before whatever needs it."""
        self._unsent.append(segment)
        self._is_empty = False

    def begin(self) -> None:
        """Before a request: a branch without any text gets a start, since a model cannot continue nothing."""
        if self._is_empty:
            self.add(neutral_start(self.backend.facts))

    def release(self) -> None:
        """End the hold and do what was queued, until something holds again."""
        self.is_held = False
        if self._is_draining:
            return  # an answer that came at once, inside the loop below: no recursion
        self._is_draining = True
        try:
            while self._queue and not self.is_held:
                self._queue.popleft()[0]()
        finally:
            self._is_draining = False

    def flush(self) -> None:
        """Send what is unsent, so that the backend's branch is up to date."""
        if not self._is_open:
            self._is_open = True
            self.backend.send(OpenBranch(self.wire_id, self.namespace, self.strict_text))
        if self._unsent:
            self.backend.send(Append(self.wire_id, tuple(self._unsent)))
            self._unsent.clear()

    def fork(self, children: Sequence[Outbox]) -> None:
        """One message makes all children; they may speak after it."""
        self.flush()
        self.backend.send(Fork(self.wire_id, tuple(child.wire_id for child in children)))
        for child in children:
            child._is_open = True
            child._is_empty = self._is_empty

    def open_copy(self) -> str:
        """A copy of the branch, to ask something beside it."""
        self.flush()
        self.copy_id = self.backend.new_id("branch")
        self.backend.send(Fork(self.wire_id, (self.copy_id,)))
        return self.copy_id

    def end_copy(self, is_taken_over: bool) -> None:
        """The copy becomes the branch, or is forgotten."""
        copy_id, self.copy_id = self.copy_id, None
        if copy_id is None:
            return
        if is_taken_over:
            copy_id, self.wire_id = self.wire_id, copy_id
        self._forget(copy_id)

    def reopen(self, segments: Sequence[Segment]) -> None:
        """Go on with a new branch of this text; the old one broke."""
        self.end_copy(is_taken_over=False)
        if self._is_open:
            self._forget(self.wire_id)
        self.wire_id = self.backend.new_id("branch")
        self._is_open = False
        self._is_empty = not segments
        self._unsent = list(segments)

    def close(self) -> None:
        """Drop what is unsent or queued and let the backend forget the branch."""
        self.end_copy(is_taken_over=False)
        self._unsent.clear()
        self._queue.clear()
        if self._is_open:
            self._is_open = False
            self._forget(self.wire_id)

    def _forget(self, wire_id: str) -> None:
        try:
            self.backend.send(CloseBranch(wire_id))
        except RadixError:
            return  # the backend is gone, and the branch with it


def neutral_start(facts: Ready) -> Segment:
    """What stands before a text that begins from nothing: one end-of-text token, or a line break for a model that has none."""
    ends = facts.eos_token_ids[:1]
    return Ids(ends) if ends else Text("\n")
