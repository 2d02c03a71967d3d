"""Who gets pages next. Owns the waiting requests: the queue in rank order and the followers parked on a running leader.

Work per step is bounded, whatever the queue's length: at most `max_candidates_per_step` waiting requests are looked up in
the cache for admission, and `max_refreshes_per_step` others are measured again so that their rank follows the cache.

A candidate is admitted when its whole known length fits the pages that are free or evictable, beside one spare page for each
running stream; a prompt once begun therefore never stops half-way for pages. A candidate that does not fit blocks those
behind it: its rank only improves, so a large request is never starved by small ones. Knows nothing of budgets per step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..radix_cache.cache import Lease, PrefixCache
from .followers import InFlight
from .queue import WaitQueue
from .request import Request
from .scheduler_limits import SchedulerLimits


class Admission:
    """Waiting requests, and the leases of those that are let in."""

    def __init__(self, cache: PrefixCache, limits: SchedulerLimits) -> None:
        self._cache = cache
        self._limits = limits
        self._queue = WaitQueue(limits.aging_tokens_per_step)
        self.in_flight = InFlight()

    @property
    def num_waiting(self) -> int:
        """Requests without pages: queued and parked."""
        return len(self._queue) + len(self.in_flight)

    def waiting(self) -> list[Request]:
        """All of them, in no order."""
        return self._queue.requests() + self.in_flight.followers()

    def add(self, request: Request) -> None:
        """Queue a request that holds no pages. Its rank is measured at once."""
        self._queue.push(request, self._measure(request))

    def remove(self, request: Request) -> bool:
        """Forget a waiting request. False when it was not waiting."""
        return self._queue.remove(request) or self.in_flight.remove(request)

    def leader_advanced(self, leader: Request) -> None:
        """A leader computed and committed tokens: its followers that were waiting for these are ready."""
        for follower, num_common in self.in_flight.advanced(leader):
            self._queue.push(follower, num_common)

    def leader_left(self, leader: Request) -> None:
        """A leader stops running: every follower is ready, and the first one let in takes over."""
        for follower, num_common in self.in_flight.leave(leader):
            self._queue.push(follower, num_common)

    def refresh(self) -> None:
        """Measure a few waiting requests again, in rotation."""
        for _ in range(min(self._limits.max_refreshes_per_step, len(self._queue))):
            request = self._queue.next_stale()
            if request is not None:
                self._queue.push(request, self._measure(request))

    def candidates(self) -> Iterator[tuple[Request, int]]:
        """Take out waiting requests, best rank first, with the tokens the cache holds of each, looked up now.

        One that turns out to match less than its rank says goes back to its right place. Bounded per call.
        """
        for _ in range(self._limits.max_candidates_per_step):
            best = self._queue.pop_best()
            if best is None:
                return
            request, believed = best
            matched = self._measure(request)
            if matched < believed:
                self._queue.push(request, matched)
            else:
                yield request, matched

    def defer(self, request: Request, matched: int) -> bool:
        """Park a candidate that should wait instead of running now; False when it should run.

        It waits for a leader that is computing a longer part of its prompt than the `matched` tokens the cache holds.
        """
        found = self.in_flight.find(request)
        if found is not None:
            leader, num_common = found[0], min(found[1], request.max_match)
            saved = num_common - matched
            if saved >= self._limits.min_follow_tokens and leader.num_computed < num_common:
                self.in_flight.follow(request, leader, num_common)
                return True
        return False

    def try_open(self, request: Request, matched: int, num_running: int) -> bool:
        """Open a lease with pages for the request's whole known length; False (and no lease) when they do not fit."""
        missing = self.num_pages_for(request.compute_target) - matched // self._cache.page_size
        if missing + num_running > self._cache.num_free + self._cache.num_evictable:
            return False  # seen without taking the lease; what is matched may be in use, so ask again with it
        lease = self._open(request, request.max_match)
        if self._reserve(lease, request, num_running):
            return self._grant(request, lease)
        self._drop(lease, request)
        if num_running:
            return False
        # Alone and still short: the page copied from may be the one that is missing. Do without the partial page, then
        # without any hit: evicting everything must do.
        page_size = self._cache.page_size
        for max_match in (lease.num_cached // page_size * page_size, 0):
            lease = self._open(request, max_match)
            if self._reserve(lease, request, 0):
                return self._grant(request, lease)
            self._drop(lease, request)
        return False

    def num_pages_for(self, num_tokens: int) -> int:
        """Pages that hold `num_tokens` tokens."""
        return -(-num_tokens // self._cache.page_size)

    def put_back(self, request: Request, matched: int) -> None:
        """A candidate that could not be admitted now waits on."""
        self._queue.push(request, matched)

    def check(self) -> None:
        """Raise InvariantError when the parked followers contradict their leaders."""
        self.in_flight.check()

    def _measure(self, request: Request) -> int:
        namespace = request.submission.message.namespace
        return self._cache.match_length(request.tokens.view(), namespace, request.max_match)

    def _open(self, request: Request, max_match: int) -> Lease:
        return self._cache.open(
            request.tokens.view(), request.submission.message.namespace, max_match
        )

    def _reserve(self, lease: Lease, request: Request, num_running: int) -> bool:
        missing = self.num_pages_for(request.compute_target) - len(lease.page_ids)
        if missing + num_running > self._cache.num_free + self._cache.num_evictable:
            return False
        return self._cache.extend(lease, request.compute_target)

    def _drop(self, lease: Lease, request: Request) -> None:
        self._cache.release(lease, request.tokens.view(), lease.num_cached, publish=False)

    def _grant(self, request: Request, lease: Lease) -> bool:
        request.lease = lease
        request.num_computed = lease.num_cached
        return True
