"""Prefixes that are being computed right now, and who waits for them. Owns the leaders' prompts and the parked followers.

A leader is a running request whose prompt is not computed to its end. A waiting request that shares more tokens with a
leader than the cache holds yet becomes its follower: it is parked until the leader's cursor reaches their common length,
then opens its own lease and hits exactly those tokens. When the leader leaves early, all its followers are released; the
first that is admitted finds in the cache what the leader had committed, computes the rest, and leads the others.

Leaders of one namespace stand sorted by their prompts' tokens (as big-endian bytes, so that bytes and tokens sort alike):
the longest common prefix with any of them is with a neighbour in that order, found by one binary search and compared exactly.
O(log leaders) comparisons in C, and no hashes. Knows nothing of pages, budgets or the waiting order.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ..errors import InvariantError
from ..radix_cache.tree import common_prefix_length, sort_key
from .plan import I32
from .request import Request


@dataclass(slots=True)
class _Leader:
    request: Request
    token_ids: I32  # a copy: the request's own buffer may move
    key: bytes
    heap: list[tuple[int, int]] = field(
        default_factory=list[tuple[int, int]]
    )  # (common length, follower's key)


class InFlight:
    """Leaders by prompt, followers by leader."""

    def __init__(self) -> None:
        self._sorted: dict[
            str, list[tuple[bytes, int]]
        ] = {}  # namespace -> (sort key, request key), ascending
        self._leaders: dict[int, _Leader] = {}  # by request key
        self._parked: dict[
            int, tuple[Request, int]
        ] = {}  # follower's key -> follower, leader's key

    def __len__(self) -> int:
        """Parked followers."""
        return len(self._parked)

    def followers(self) -> list[Request]:
        """All parked requests, in no order."""
        return [follower for follower, _ in self._parked.values()]

    def lead(self, request: Request) -> None:
        """`request` starts to compute its tokens up to their present end."""
        token_ids = request.tokens.view().copy()
        leader = _Leader(request, token_ids, sort_key(token_ids))
        self._leaders[request.key] = leader
        row = self._sorted.setdefault(request.submission.message.namespace, [])
        item = (leader.key, request.key)
        row.insert(bisect_left(row, item), item)

    def find(self, request: Request) -> tuple[Request, int] | None:
        """The leader that shares the longest prefix with `request`, and the length of it; None when none shares any."""
        row = self._sorted.get(request.submission.message.namespace)
        if not row:
            return None
        token_ids = request.tokens.view()
        place = bisect_left(row, (sort_key(token_ids), -1))
        best: tuple[Request, int] | None = None
        for _, key in row[max(place - 1, 0) : place + 1]:
            leader = self._leaders[key]
            length = common_prefix_length(leader.token_ids, token_ids)
            if length > (best[1] if best else 0):
                best = (leader.request, length)
        return best

    def follow(self, request: Request, leader: Request, num_common: int) -> None:
        """Park `request` until `leader` has computed `num_common` tokens."""
        heappush(self._leaders[leader.key].heap, (num_common, request.key))
        self._parked[request.key] = (request, leader.key)

    def remove(self, request: Request) -> bool:
        """Take a parked request out. False when it was not parked."""
        return self._parked.pop(request.key, None) is not None

    def advanced(self, leader: Request) -> list[tuple[Request, int]]:
        """The followers whose common length the leader's cursor has reached, with that length.

        The leader stops leading when its registered tokens are computed; those who still wait (none, normally) are released.
        """
        entry = self._leaders.get(leader.key)
        if entry is None:
            return []
        if leader.num_computed >= entry.token_ids.size:
            return self.leave(leader)
        return self._release(entry, leader.num_computed)

    def leave(self, leader: Request) -> list[tuple[Request, int]]:
        """The leader is gone or done: release all its followers, each with the tokens the leader had computed for it."""
        entry = self._leaders.pop(leader.key, None)
        if entry is None:
            return []
        row = self._sorted[leader.submission.message.namespace]
        del row[bisect_left(row, (entry.key, leader.key))]
        if not row:
            del self._sorted[leader.submission.message.namespace]
        num_computed = leader.num_computed
        return [
            (follower, min(common, num_computed))
            for follower, common in self._release(entry, entry.token_ids.size)
        ]

    def _release(self, entry: _Leader, num_computed: int) -> list[tuple[Request, int]]:
        released: list[tuple[Request, int]] = []
        while entry.heap and entry.heap[0][0] <= num_computed:
            common, key = heappop(entry.heap)
            follower, leader_key = self._parked.get(key, (None, -1))
            if follower is not None and leader_key == entry.request.key:
                del self._parked[key]
                released.append((follower, common))
        return released

    def check(self) -> None:
        """Raise InvariantError unless every parked request waits for a leader that will reach it."""
        for key, (_, leader_key) in self._parked.items():
            leader = self._leaders.get(leader_key)
            if leader is None:
                raise InvariantError(f"request {key} follows {leader_key}, which leads nothing")
            if not any(
                k == key and common > leader.request.num_computed for common, k in leader.heap
            ):
                raise InvariantError(f"request {key} waits for tokens that are computed already")
        for namespace, row in self._sorted.items():
            if row != sorted(row):
                raise InvariantError(f"the leaders of namespace {namespace!r} are out of order")
        if sum(map(len, self._sorted.values())) != len(self._leaders):
            raise InvariantError("a leader is listed twice or not at all")
