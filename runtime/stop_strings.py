"""Stop strings, decided on the bytes of tokens, so that token boundaries never matter. Owns one incremental search.

Rule: the match that completes first wins (smallest end; among equal ends the longest, that is the smallest start). It is
what a reader of the bytes one by one would see, so the answer is the same however the bytes were cut into tokens.
Knows nothing of text encoding or of what the caller does with the cut.

The search keeps the last `longest - 1` bytes only: a match that completes now cannot start earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StopMatch:
    """One completed stop string. Offsets are bytes from the start of the output."""

    stop: bytes
    start: int
    end: int


class StopStrings:
    """Incremental search for any of `stops` (non-empty byte strings) in a growing output."""

    __slots__ = ("_num_bytes", "_stops", "_tail", "_tail_length")

    def __init__(self, stops: Sequence[bytes]) -> None:
        self._stops = tuple(stops)
        self._tail_length = max(map(len, self._stops)) - 1
        self._tail = b""
        self._num_bytes = 0

    def push(self, data: bytes) -> StopMatch | None:
        """Add the bytes of one token; the first match that completes inside them, or None.

        O(len(data) + longest stop) per stop string.
        """
        window = self._tail + data
        window_start = self._num_bytes - len(self._tail)
        best: StopMatch | None = None
        for stop in self._stops:
            # The tail is too short to hold the longest stop, but may hold a shorter one that was passed over before.
            found = window.find(stop, max(0, len(self._tail) - len(stop) + 1))
            if found < 0:
                continue
            start = window_start + found
            end = start + len(stop)
            if best is None or (end, start) < (best.end, best.start):
                best = StopMatch(stop, start, end)
        self._num_bytes += len(data)
        self._tail = window[-self._tail_length :] if self._tail_length else b""
        return best

    def copy(self) -> StopStrings:
        """An independent search at the same place."""
        twin = StopStrings(self._stops)
        twin._tail, twin._num_bytes = self._tail, self._num_bytes
        return twin
