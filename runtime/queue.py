"""The waiting order: longest cached prefix first, with aging folded into a fixed key. Owns the requests that hold no pages.

A request that arrived at step t and finds m tokens of its prompt in the cache has the rank

    aging * t - m        (smaller runs earlier; then higher priority; then first come)

Time passes for all alike, so the order never has to be recomputed as requests grow older: a step of waiting is worth
`aging` tokens of cached prefix. Since m is at most the context length C, nobody who arrives more than C / aging steps after
a request can overtake it: nobody starves, at any queue length. Every operation is O(log n).

m is a measurement that grows old as the cache changes. The scheduler measures again what it is about to admit, and a few
others each step in rotation (`next_stale`); an outdated m only costs order, never a result. Knows nothing of the cache.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from .request import Request

_Rank = tuple[float, int, int]


@dataclass(slots=True)
class _Entry:
    request: Request
    rank: _Rank
    num_matched: int


class WaitQueue:
    """Requests by rank, with removal and re-ranking. A heap with outdated entries left in place until they surface."""

    def __init__(self, aging_tokens_per_step: float) -> None:
        self._aging = aging_tokens_per_step
        self._live: OrderedDict[int, _Entry] = OrderedDict()  # by request key, in rotation order
        self._heap: list[tuple[_Rank, int]] = []

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, request: Request) -> bool:
        return request.key in self._live

    def requests(self) -> list[Request]:
        """All waiting requests, in no order."""
        return [entry.request for entry in self._live.values()]

    def push(self, request: Request, num_matched: int) -> None:
        """Add a request, or rank it again, by the `num_matched` tokens the cache holds of it now."""
        priority = request.submission.message.hints.priority
        rank = (self._aging * request.arrival_step - num_matched, -priority, request.key)
        entry = self._live.get(request.key)
        if entry is None:
            self._live[request.key] = _Entry(request, rank, num_matched)
        elif entry.rank == rank:
            return
        else:
            entry.rank, entry.num_matched = rank, num_matched
        heappush(self._heap, (rank, request.key))
        if len(self._heap) > 64 + 4 * len(self._live):
            self._heap = [(e.rank, key) for key, e in self._live.items()]
            heapify(self._heap)

    def remove(self, request: Request) -> bool:
        """Take a request out. False when it was not waiting."""
        return self._live.pop(request.key, None) is not None

    def pop_best(self) -> tuple[Request, int] | None:
        """Take out the request that runs next by rank, with the match length it was ranked by; None when nobody waits."""
        while self._heap:
            rank, key = heappop(self._heap)
            entry = self._live.get(key)
            if entry is not None and entry.rank == rank:
                del self._live[key]
                return entry.request, entry.num_matched
        return None

    def next_stale(self) -> Request | None:
        """The request measured longest ago, which goes to the end of the rotation; None when nobody waits."""
        if not self._live:
            return None
        key = next(iter(self._live))
        self._live.move_to_end(key)
        return self._live[key].request
