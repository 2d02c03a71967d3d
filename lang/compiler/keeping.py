"""What a batch keeps for items that come later: results, and the places behind them.

Owns the moves of a branch: to a wire of its own, on from a result, away; and which places stay open. A leader that goes on leaves a copy
behind if its result was taken over, or is expected to be; a place is closed when no result leads to it and no branch would start from it.
Must not know requests' answers or who waits. The caller holds a lock in every method.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from ...errors import RadixError
from ...runtime.messages import Append, CloseBranch, Fork
from .stems import Stems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...runtime.messages import Segment
    from ..backend import Backend
    from .places import Entry, Place, Seat

_MAX_KEPT = 256  # results


class Kept:
    """See the module."""

    def __init__(
        self, backend: Backend, prefix: Sequence[Segment], expected: frozenset[str]
    ) -> None:
        self._backend = backend
        self._expected = expected
        self._stems = Stems(backend, prefix)
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()

    # ------------------------------------------------------------------------------------ results

    def find(self, key: bytes | None) -> Entry | None:
        """The result, there or still to come, that is known by `key`."""
        entry = None if key is None else self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(entry.key)
        return entry

    def keep(self, entry: Entry) -> None:
        """Others may take this result over; the oldest one goes when there are too many."""
        self._entries[entry.key] = entry
        while len(self._entries) > _MAX_KEPT:
            oldest = next(iter(self._entries.values()))
            if not oldest.answer.done():
                return
            self.forget(oldest)

    def forget(self, entry: Entry) -> None:
        """Nobody can take this result over any more."""
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]
            entry.place.is_known = False
            self._close_unused(entry.place)

    def clear(self) -> None:
        """No item comes any more."""
        for entry in list(self._entries.values()):
            self.forget(entry)
        with suppress(RadixError):
            self._stems.close()

    # ------------------------------------------------------------------------------------ moves

    def arrive(self, seat: Seat) -> str:
        """The wire of a branch, with all of its text sent. What the backend raises is the caller's."""
        rest: tuple[Segment, ...] = tuple(seat.unsent)
        if seat.wire is not None:
            if rest:
                self.move_on(seat)
        elif seat.start is not None:
            seat.wire = self._backend.new_id("branch")
            self._backend.send(Fork(seat.start.wire, (seat.wire,)))
            self._close_unused(seat.leave_start())
        else:
            seat.wire = seat.name
            opening = seat.opening
            stem = self._stems.place_for(rest, opening.namespace, opening.strict_text)
            if stem is None:
                self._backend.send(msgspec.structs.replace(opening, branch=seat.wire))
            else:
                self._backend.send(Fork(stem[0], (seat.wire,)))
                rest = stem[1]
        if rest:
            self._backend.send(Append(seat.wire, rest))
        seat.unsent.clear()
        return seat.wire

    def move_on(self, seat: Seat) -> None:
        """Something is sent behind the result at which a branch stands: leave a copy there, or give the result up."""
        entry, seat.behind = seat.behind, None
        if entry is None or seat.wire is None:
            return
        if self._is_wanted(entry):
            entry.place.wire, entry.place.is_own = self._backend.new_id("place"), True
            self._backend.send(Fork(seat.wire, (entry.place.wire,)))
        else:
            self.forget(entry)

    def stand_up(self, seat: Seat) -> None:
        """A branch leaves its wire, or the place it would start from. A wire that is a place stays open."""
        self._close_unused(seat.leave_start())
        entry, seat.behind = seat.behind, None
        wire, seat.wire = seat.wire, None
        if wire is None:
            return
        if entry is not None and self._is_wanted(entry):
            entry.place.is_own = True
            return
        if entry is not None:
            self.forget(entry)
        self._send_quietly(CloseBranch(wire))

    def _is_wanted(self, entry: Entry) -> bool:
        is_expected = entry.name in self._expected and entry.place.is_known
        return is_expected or entry.place.num_users > 0 or bool(entry.followers)

    def _close_unused(self, place: Place | None) -> None:
        if place is not None and place.is_own and not place.is_known and not place.num_users:
            self._send_quietly(CloseBranch(place.wire))

    def _send_quietly(self, message: CloseBranch) -> None:
        with suppress(RadixError):  # the backend is gone, and the branch with it
            self._backend.send(message)
