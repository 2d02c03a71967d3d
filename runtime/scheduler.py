"""What each step computes: pure logic over cursors, pages and budgets. Owns the running requests and their leases.

One step, in this order:

1. streams (requests whose cursor had caught up) get their tokens first, the senior ones first; when no page is left for a
   stream, the most junior running request is preempted: its computed tokens go to the tree, so its continuation is cheap;
2. waiting requests are admitted while there is room (`admission.py`);
3. what remains of the step's budget goes to requests that are catching up. Beside streams that is a bounded number of tokens,
   given or chosen by measured cost (`prefill_pace.py`), so a long prompt never stops the streams. Half of it belongs to the
   senior one, so it always advances; the rest goes to whoever has least left, so a short prompt does not wait behind a long
   one, and of equal ones each ends before the next begins.

Seniority is arrival, then priority. The most senior request is never preempted, so the system always advances; one that is
alone and finds no page has outgrown the pool and is reported. Knows nothing of sampling, grammars, messages or the model.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from ..errors import InvariantError
from ..radix_cache.cache import PrefixCache
from .admission import Admission
from .prefill_pace import PrefillPace
from .request import Request, RequestStatus
from .scheduler_limits import SchedulerLimits


@dataclass(frozen=True, slots=True)
class ScheduledRow:
    """One sequence's part of a step: compute `num_new` tokens from the cursor on."""

    request: Request
    num_new: int
    samples: bool  # the cursor reaches the end of an unfinished sequence: a token is sampled

    @staticmethod
    def of(request: Request, num_new: int) -> ScheduledRow:
        """The row that computes the next `num_new` tokens of `request`."""
        samples = request.ending is None and request.num_computed + num_new == request.num_tokens
        return ScheduledRow(request, num_new, samples)


@dataclass(frozen=True, slots=True)
class Schedule:
    """One step. `outgrown` requests found no page though they are alone; `idle` ones have nothing to compute."""

    rows: list[ScheduledRow] = field(default_factory=list[ScheduledRow])
    outgrown: list[Request] = field(default_factory=list[Request])
    idle: list[Request] = field(default_factory=list[Request])


def seniority(request: Request) -> tuple[int, int, int]:
    """Sort key: the senior request first."""
    return (request.arrival_step, -request.submission.message.hints.priority, request.key)


class Scheduler:
    """Queued, parked and running requests over one prefix cache."""

    def __init__(self, cache: PrefixCache, limits: SchedulerLimits) -> None:
        self._cache = cache
        self._limits = limits
        self._admission = Admission(cache, limits)
        self._pace = PrefillPace(limits.max_tokens_per_step, limits.prefill_pause_s)
        self._running: list[Request] = []  # senior first
        self._free_slots = list(range(limits.max_running - 1, -1, -1))
        self.num_preemptions = 0
        self.num_follows = 0

    @property
    def num_waiting(self) -> int:
        """Requests that are ready but hold no pages."""
        return self._admission.num_waiting

    @property
    def num_parked(self) -> int:
        """Of them, those that wait for a prefix another request computes."""
        return len(self._admission.in_flight)

    @property
    def running(self) -> tuple[Request, ...]:
        """Requests that hold pages, senior first."""
        return tuple(self._running)

    @property
    def has_work(self) -> bool:
        """Is any request running or ready?"""
        return bool(self._running) or self._admission.num_waiting > 0

    def waiting(self) -> list[Request]:
        """Requests that are ready but hold no pages, in no order."""
        return self._admission.waiting()

    def add(self, request: Request) -> None:
        """Take a QUEUED request."""
        self._admission.add(request)

    def remove(self, request: Request, *, publish: bool = True) -> None:
        """Take a request out of whatever list holds it; its pages are free or evictable afterwards.

        With `publish` its computed tokens stay in the tree. The status is the caller's to change.
        """
        if request.lease is not None:
            self._vacate(request, publish=publish)
        else:
            self._admission.remove(request)

    def schedule(self) -> Schedule:
        """Choose the next step. Requests may change to RUNNING or PREEMPTED; cursors do not move yet."""
        plan = Schedule()
        num_preempted_before = self.num_preemptions
        budget = self._limits.max_tokens_per_step - self._schedule_streams(plan)
        if plan.rows:
            budget = min(
                budget, self._limits.max_prefill_tokens_beside_decode or self._pace.num_tokens()
            )
        if self.num_preemptions == num_preempted_before:  # else pages are short: nobody new
            self._admit(budget, plan)
        self._admission.refresh()
        self._schedule_catching_up(budget, plan)
        return plan

    def took(self, schedule: Schedule, seconds: float) -> None:
        """The model ran the step in so long: later ones are sized by it. Call before `computed` moves the cursors."""
        num_streams = sum(row.request.is_streaming for row in schedule.rows)
        self._pace.note(num_streams, sum(row.num_new for row in schedule.rows), seconds)

    def computed(self, row: ScheduledRow) -> None:
        """The row's tokens are computed: move the cursor, commit, wake the followers that waited for them.

        A stream is committed when it fills a page and when it leaves; its tail interests nobody before.
        """
        request = row.request
        if request.lease is None:
            raise InvariantError(
                f"request {request.submission.name!r} computed tokens without a lease"
            )
        page_size = self._cache.page_size
        fills_page = (
            request.num_computed + row.num_new
        ) // page_size > request.num_computed // page_size
        was_streaming = request.is_streaming
        request.num_computed += row.num_new
        if request.num_computed >= request.num_tokens:
            request.is_streaming = True
        if was_streaming and not fills_page:
            return
        replaced = self._cache.commit(request.lease, request.tokens.view(), request.num_computed)
        if replaced:
            # The page table moved to pages that others published first.
            request.num_tabled_pages = 0
        if not was_streaming:
            self._admission.leader_advanced(request)

    def release_all(self) -> None:
        """Repair: every running request loses its lease, unpublished. Raises when the stores contradict themselves."""
        for request in tuple(self._running):
            self._vacate(request, publish=False)

    def reset(self) -> None:
        """Repair, when nothing can be trusted: no request runs, the cache is empty. Waiting requests stay."""
        running, self._running = self._running, []
        self._free_slots = list(range(self._limits.max_running - 1, -1, -1))
        self._cache.reset()
        for request in running:
            self._clear(request)

    def check(self) -> None:
        """Raise InvariantError when the lists, slots, leases or the cache contradict each other."""
        self._cache.check()
        self._admission.check()
        slots = [request.slot for request in self._running] + self._free_slots
        if sorted(slots) != list(range(self._limits.max_running)):
            raise InvariantError("a slot of the running table is lost or used twice")
        for request in self._running:
            if request.status is not RequestStatus.RUNNING or request.lease is None:
                raise InvariantError(
                    f"running request {request.submission.name!r} has no lease or is not RUNNING"
                )
        for request in self._admission.waiting():
            if (
                request.status not in (RequestStatus.QUEUED, RequestStatus.PREEMPTED)
                or request.lease is not None
            ):
                raise InvariantError(
                    f"waiting request {request.submission.name!r} holds pages or is not ready"
                )
        if not self._running and self._cache.num_locked:
            raise InvariantError(f"{self._cache.num_locked} pages are in use though nothing runs")

    # ------------------------------------------------------------------------------------------ streams

    def _schedule_streams(self, plan: Schedule) -> int:
        """Give every stream its tokens; returns how many tokens that is."""
        streams = [
            request for request in self._running if request.is_streaming and request.num_pending
        ]
        budget = max(
            len(streams), self._limits.max_tokens_per_step - 1
        )  # forced spans leave a token to a prompt
        used = 0
        for place, request in enumerate(streams):
            if request.status is not RequestStatus.RUNNING:
                continue  # preempted for a senior one a moment ago
            num_behind = len(streams) - place - 1  # each of them is owed a token
            wanted = min(request.num_pending, budget - used - num_behind)
            num_new = self._find_pages(request, wanted, plan)
            if num_new:
                plan.rows.append(ScheduledRow.of(request, num_new))
                used += num_new
        return used

    def _find_pages(self, request: Request, wanted: int, plan: Schedule) -> int:
        """Pages for `wanted` more tokens of a stream, preempting juniors; how many tokens it may compute now."""
        lease = request.lease
        if lease is None:
            raise InvariantError(f"stream {request.submission.name!r} has no lease")
        if request.num_computed + wanted <= len(lease.page_ids) * self._cache.page_size:
            return wanted  # the page of the tokens before: the usual case
        while not self._cache.extend(lease, request.num_computed + wanted):
            junior = self._running[-1]
            if junior is not request:
                self._preempt(junior)
                continue
            in_hand = len(lease.page_ids) * self._cache.page_size - request.num_computed
            if in_hand > 0:
                return min(wanted, in_hand)
            if len(self._running) > 1:
                self._preempt(request)
            else:
                plan.outgrown.append(request)
            return 0
        return wanted

    def _preempt(self, request: Request) -> None:
        self._vacate(request, publish=True)
        request.move_to(RequestStatus.PREEMPTED)
        self.num_preemptions += 1
        self._admission.add(request)

    # ------------------------------------------------------------------------------------------ admission

    def _admit(self, budget: int, plan: Schedule) -> None:
        if not self._has_room(budget):
            return
        for request, matched in self._admission.candidates():
            if self._admission.num_pages_for(request.compute_target) > self._cache.num_pages:
                plan.outgrown.append(request)
            elif self._admission.defer(request, matched):
                self.num_follows += 1
            elif self._admission.try_open(request, matched, len(self._running)):
                self._begin(request, plan)
                if not self._has_room(budget):
                    return
            else:
                self._admission.put_back(request, matched)
                return

    def _has_room(self, budget: int) -> bool:
        """Is there a slot, and a token of the budget that is neither the senior's half nor claimed by another?"""
        catching = self._catching_up()
        claimed = sum(request.num_pending for request in catching[1:])
        if catching:
            claimed += min(catching[0].num_pending, (budget + 1) // 2)
        return bool(self._free_slots) and claimed < budget

    def _begin(self, request: Request, plan: Schedule) -> None:
        """The request holds a lease now: it runs."""
        request.move_to(RequestStatus.RUNNING)
        request.slot = self._free_slots.pop()
        request.num_tabled_pages = 0
        request.is_streaming = False
        insort(self._running, request, key=seniority)
        request.submission.start(min(request.num_computed, request.num_prompt))
        if not request.num_pending:
            plan.idle.append(request)
        elif request.num_pending >= self._limits.min_follow_tokens:
            self._admission.in_flight.lead(request)

    # ------------------------------------------------------------------------------------------ catching up

    def _catching_up(self) -> list[Request]:
        return [
            request for request in self._running if not request.is_streaming and request.num_pending
        ]

    def _shares(self, budget: int) -> list[tuple[Request, int]]:
        """How the budget is dealt among the requests that are catching up: half to the senior one, the rest to the shortest."""
        catching = self._catching_up()
        if not catching or budget <= 0:
            return []
        senior = catching[0]
        kept = min(senior.num_pending, (budget + 1) // 2)
        left = budget - kept
        shares: list[tuple[Request, int]] = []
        for request in sorted(
            catching, key=lambda r: r.num_pending
        ):  # the senior one first of equals
            if request is senior:
                more = min(senior.num_pending - kept, left)
                kept += more
                left -= more
            elif num_new := min(request.num_pending, left):
                shares.append((request, num_new))
                left -= num_new
        return [(senior, kept), *shares]

    def _schedule_catching_up(self, budget: int, plan: Schedule) -> None:
        plan.rows.extend(
            ScheduledRow.of(request, num_new) for request, num_new in self._shares(budget)
        )

    # ------------------------------------------------------------------------------------------ leaving

    def _vacate(self, request: Request, *, publish: bool) -> None:
        """Release the lease and leave the running list. Followers are released while the cursor still says how far."""
        if request.lease is None:
            raise InvariantError(f"request {request.submission.name!r} has no lease to release")
        hints = request.submission.message.hints
        is_over = publish and request.ending is not None and request.choice == 0
        self._cache.release(
            request.lease,
            request.tokens.view(),
            request.num_computed,
            publish=publish,
            num_expected=hints.num_forks if is_over else 0,
            num_used=request.num_prompt if is_over and hints.last_use else None,
        )
        self._forget(request)

    def _forget(self, request: Request) -> None:
        place = bisect_left(self._running, seniority(request), key=seniority)
        if place == len(self._running) or self._running[place] is not request:
            raise InvariantError(
                f"request {request.submission.name!r} is not where the running list should hold it"
            )
        del self._running[place]
        self._free_slots.append(request.slot)
        self._clear(request)

    def _clear(self, request: Request) -> None:
        request.lease = None
        request.slot = -1
        self._admission.leader_left(request)
        request.num_computed = 0
