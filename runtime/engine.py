"""The engine's core loop: messages in, one step, messages out. Owns the live submissions and the order of a step.

    receive(Submit) --> [WAITING_GRAMMAR] --> scheduler
    step():  schedule --> build plan --> runner.launch --> fill masks meanwhile --> runner.finish --> apply --> answers

It is the only place where requests end, so every submission is answered once. Errors are contained by level: a fault of one
row or grammar ends its submission; an exception of the runner ends the submissions of that step, whose pages are released
unpublished; anything else that breaks ends what ran and, if the cache contradicts itself, empties the cache. The engine lives on.

Knows nothing of sockets, text, torch or how a runner works. One thread calls it.
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Sequence

from ..errors import Aborted, GrammarError, InvariantError, RadixError, ServiceError, UserError
from ..radix_cache.cache import PrefixCache
from .bans import Bans
from .constraint import Constraint
from .forcing import EncodeForced, Forcer
from .intake import check_submit, first_request
from .mask_filler import MaskFiller
from .messages import (
    Cancel,
    EngineFailed,
    EngineInbound,
    EngineOutbound,
    EngineQuery,
    EngineReply,
    LoadProgram,
    NeedProgram,
    Submit,
    WireError,
)
from .plan_builder import PlanBuilder, Step
from .program_store import LoadGrammar, MakeMatcher, ProgramStore
from .request import Request, RequestStatus
from .runner_protocol import Runner
from .sampling_batch import SamplingTable
from .scheduler import Scheduler
from .scheduler_limits import SchedulerLimits
from .step_results import Applied, ResultReader
from .submission import Submission
from .token_rules import TokenRules
from .vocab_facts import VocabFacts


def draw_seed() -> int:
    """A seed for a request that names none."""
    return secrets.randbits(63)


_COUNTERS = ("steps", "computed_tokens", "sampled_tokens", "forced_tokens", "submitted", "done", "failed", "repairs")  # fmt: skip


class Engine:
    """One model's requests. `num_pages` and `page_size` are those of the runner's K/V store.

    `load_grammar` makes a matcher source of program bytes (GrammarError on damage); `encode_forced` encodes forced bytes.
    """

    def __init__(
        self,
        runner: Runner,
        facts: VocabFacts,
        *,
        num_pages: int,
        page_size: int,
        load_grammar: LoadGrammar,
        encode_forced: EncodeForced,
        limits: SchedulerLimits | None = None,
        new_seed: Callable[[], int] = draw_seed,
        debug: bool = False,
    ) -> None:
        limits = limits or SchedulerLimits()
        self._runner = runner
        self._facts = facts
        self._new_seed = new_seed
        self._debug = debug
        self._new_key = itertools.count().__next__
        self._live: dict[str, Submission] = {}
        self._outbox: list[EngineOutbound] = []
        self._programs = ProgramStore(load_grammar, limits.max_programs, limits.max_program_bytes)
        self.cache = PrefixCache(num_pages, page_size)
        self._scheduler = Scheduler(self.cache, limits)
        bans = Bans(facts.vocab_size, facts.eos_token_ids)
        max_pages = min(num_pages, -(-facts.context_length // page_size))
        sampling = SamplingTable(limits.max_running, bans)
        self._builder = PlanBuilder(limits.max_running, max_pages, page_size, sampling)
        self._masks = MaskFiller(facts.vocab_size, bans)
        self._rules = TokenRules(facts, Forcer(facts, encode_forced))
        self._reader = ResultReader(self._rules, self._new_key)
        self._counts = dict.fromkeys(_COUNTERS, 0)

    # ------------------------------------------------------------------------------------------ messages

    @property
    def has_work(self) -> bool:
        """Would step() do anything? Requests that only wait for a grammar do not count."""
        return bool(self._outbox) or self._scheduler.has_work

    def receive(self, message: EngineInbound) -> None:
        """Take one message; never raises. Answers, refusals included, come out of the next step()."""
        try:
            self._take(message)
        except Exception as error:  # noqa: BLE001 - a defect ends what it hit, the engine lives on
            self._repair(error)
            if isinstance(message, EngineQuery):
                failure = WireError.of(ServiceError(f"the engine could not answer: {error!r}"))
                self._outbox.append(EngineReply(message.request, error=failure))

    def _take(self, message: EngineInbound) -> None:
        match message:
            case Submit():
                self._submit(message)
            case Cancel():
                submission = self._live.get(message.request)
                error = Aborted("the request was cancelled")
                if submission is not None:
                    self._fail(submission, error)
                else:  # whoever waits for it must not wait for ever
                    self._outbox.append(EngineFailed(message.request, WireError.of(error)))
            case LoadProgram():
                self._load_program(message)
            case EngineQuery():
                self._outbox.append(self._answer(message))

    def _submit(self, message: Submit) -> None:
        self._counts["submitted"] += 1
        sampling = message.sampling
        submission = Submission(
            message, self._new_seed() if sampling.seed is None else sampling.seed
        )
        if message.request in self._live:
            self._refuse(
                submission,
                UserError(
                    f"a request called {message.request!r} is running; names of live requests are unique"
                ),
            )
            return
        try:
            check_submit(message, self._facts, self.cache.num_pages, self.cache.page_size)
            request = first_request(submission, self._new_key(), self._facts, self._counts["steps"])
        except Exception as error:  # noqa: BLE001 - what cannot be taken is answered
            known = error if isinstance(error, RadixError) else ServiceError(f"refused: {error!r}")
            self._refuse(submission, known)
            return
        self._live[message.request] = submission
        submission.requests.append(request)
        if not message.program:
            self._start(request, None)
            return
        make_matcher = self._programs.get(message.program)
        if make_matcher is not None:
            self._start(request, make_matcher)
        elif self._programs.wait(message.program, request):
            self._outbox.append(NeedProgram(message.program))

    def _load_program(self, message: LoadProgram) -> None:
        try:
            make_matcher = self._programs.put(message.program, message.data)
        except Exception as error:  # noqa: BLE001 - damaged bytes end the requests that asked for them, nobody else
            known = (
                error
                if isinstance(error, RadixError)
                else GrammarError(f"the compiled grammar cannot be loaded: {error!r}")
            )
            for request in self._programs.take_waiting(message.program):
                self._fail(request.submission, known)
            return
        for request in self._programs.take_waiting(message.program):
            self._start(request, make_matcher)

    def _start(self, request: Request, make_matcher: MakeMatcher | None) -> None:
        """The request has all it needs: decide what is decided already, then let it be scheduled."""
        try:
            if make_matcher is not None:
                request.constraint = Constraint(make_matcher(), request.max_new_tokens)
            fault = self._rules.start(request)
        except Exception as error:  # noqa: BLE001 - a grammar that raises ends its own request only
            fault = f"the grammar failed: {error!r}"
        self._counts["forced_tokens"] += request.num_forced
        if fault is not None:
            self._fail(request.submission, ServiceError(fault))
            return
        if request.status is RequestStatus.WAITING_GRAMMAR:
            request.move_to(RequestStatus.QUEUED)
        if request.is_over:
            self._finish(request)
        else:
            self._scheduler.add(request)

    def _answer(self, query: EngineQuery) -> EngineReply:
        if query.what == "stats":
            return EngineReply(query.request, self.stats())
        if query.what != "flush":
            return EngineReply(
                query.request,
                error=WireError.of(UserError(f"an engine cannot be asked for {query.what!r}")),
            )
        if not self.cache.flush():
            error = ServiceError(
                f"the cache is in use by {self.cache.num_leases} running requests",
                hint="Flush when idle",
            )
            return EngineReply(query.request, error=WireError.of(error))
        return EngineReply(query.request)

    # ------------------------------------------------------------------------------------------ one step

    def step(self) -> list[EngineOutbound]:
        """Run one step and return what is to be sent, in order. Never raises for a request's or a runner's sake."""
        if self._scheduler.has_work:
            try:
                self._run_step()
            except Exception as error:  # noqa: BLE001 - a defect ends what ran, the engine lives on
                self._repair(error)
        outbox, self._outbox = self._outbox, []
        return outbox

    def _run_step(self) -> None:
        schedule = self._scheduler.schedule()
        self._counts["steps"] += 1
        for request in schedule.outgrown:
            self._rules.end_early(request)
            self._finish(request)
        for request in schedule.idle:
            self._finish(request)
        if not schedule.rows:
            return
        step = self._builder.build(schedule.rows)
        began_s = time.perf_counter()
        try:
            pending = self._runner.launch(step.plan)
            masks, mask_faults = self._masks.fill(step)
            result = self._runner.finish(pending, masks)
        except Exception as error:  # noqa: BLE001 - whatever the runner raises ends this step's requests only
            self._fail_step(step, ServiceError(f"the model runner failed: {error!r}"))
            return
        self._scheduler.took(schedule, time.perf_counter() - began_s)
        for row in schedule.rows:
            self._scheduler.computed(row)
        self._counts["computed_tokens"] += int(step.plan.token_ids.size)
        self._settle(step, self._reader.apply(step, result, mask_faults))

    def _settle(self, step: Step, applied: Applied) -> None:
        """Send progress, end what is over, let siblings in."""
        self._counts["sampled_tokens"] += applied.num_sampled
        self._counts["forced_tokens"] += applied.num_forced
        for request, fault in applied.faults:
            if request.submission.is_live:
                self._fail(request.submission, ServiceError(fault))
        born = {request.key for request in applied.born}
        for request in [*(row.request for row in step.rows), *applied.born]:
            submission = request.submission
            if not submission.is_live:
                continue
            progress = submission.progress(request)
            if progress is not None:
                self._outbox.append(progress)
            if request.is_over:
                self._finish(request)
            elif request.key in born:
                self._scheduler.add(request)

    # ------------------------------------------------------------------------------------------ endings

    def _refuse(self, submission: Submission, error: RadixError) -> None:
        self._outbox.append(submission.fail(error))
        self._counts["failed"] += 1

    def _finish(self, request: Request) -> None:
        """A sample is over: its pages go to the tree, and the last sample answers."""
        self._scheduler.remove(request)
        request.move_to(RequestStatus.FINISHED)
        done = request.submission.finish_sample(request)
        if done is not None:
            del self._live[done.request]
            self._outbox.append(done)
            self._counts["done"] += 1

    def _fail(self, submission: Submission, error: RadixError, *, publish: bool = True) -> None:
        """End a submission in whatever state its requests are; their pages are released now."""
        for request in submission.unfinished():
            if request.status is RequestStatus.WAITING_GRAMMAR:
                self._programs.forget(submission.message.program, request)
            self._scheduler.remove(request, publish=publish)
            request.move_to(RequestStatus.FINISHED)
        del self._live[submission.name]
        self._refuse(submission, error)

    def _fail_step(self, step: Step, error: RadixError) -> None:
        """What the step wrote is unknown: nothing of it is published."""
        for submission in {
            row.request.submission.name: row.request.submission for row in step.rows
        }.values():
            self._fail(submission, error, publish=False)
        self.cache.check()  # contradictions go on to _repair

    def _repair(self, error: Exception) -> None:
        """Something that must not break broke: end what ran or was lost, and leave the store in order."""
        self._counts["repairs"] += 1
        affected = list(self._scheduler.running)
        try:
            self._scheduler.release_all()
            self._scheduler.check()
        except Exception:  # noqa: BLE001 - the store cannot be trusted: start it from nothing
            self._scheduler.reset()
        waiting = {r.key for r in self._scheduler.waiting()}
        for submission in self._live.values():
            affected += [
                r
                for r in submission.unfinished()
                if r.status is not RequestStatus.WAITING_GRAMMAR and r.key not in waiting
            ]
        failure = ServiceError(
            f"the engine met an internal error and dropped the request: {error!r}"
        )
        for request in affected:
            request.lease, submission = None, request.submission
            if not submission.is_live:
                continue
            try:
                self._fail(submission, failure)
            except Exception:  # noqa: BLE001 - answered all the same, and the others too
                self._live.pop(submission.name, None)
                if submission.is_live:
                    self._refuse(submission, failure)

    # ------------------------------------------------------------------------------------------ looking in

    def stats(self) -> dict[str, float]:
        """Counters by name: totals since the start, and what is held now."""
        scheduler, cache = self._scheduler, self.cache
        counters: dict[str, float] = {
            **self._counts,
            "preemptions": scheduler.num_preemptions,
            "follows": scheduler.num_follows,
            "running": len(scheduler.running),
            "waiting": scheduler.num_waiting,
            "parked": scheduler.num_parked,
            **self._programs.counters(),
            "pages": cache.num_pages,
            "free_pages": cache.num_free,
            "evictable_pages": cache.num_evictable,
            "locked_pages": cache.num_locked,
        }
        counters.update(
            {
                f"cache_{name.removeprefix('num_')}": float(v)
                for name, v in cache.stats.as_dict().items()
            }
        )
        return counters

    def check(self) -> None:
        """Raise InvariantError when any store contradicts itself or a live request is in no list. O(everything)."""
        self._scheduler.check()
        held = {r.key for r in (*self._scheduler.running, *self._scheduler.waiting())}
        for name, submission in self._live.items():
            unfinished = submission.unfinished()
            if not unfinished or not submission.is_live:
                raise InvariantError(f"request {name!r} is listed as live but owes nothing")
            for request in unfinished:
                if request.status is not RequestStatus.WAITING_GRAMMAR and request.key not in held:
                    raise InvariantError(
                        f"request {name!r} is {request.status.value} but in no list"
                    )

    def idle(self) -> None:
        """Nothing to do: look for contradictions, and repair them before the next request meets them.

        Cheap unless the engine was made with `debug`: then everything is checked.
        """
        try:
            if self._debug:
                self.check()
            elif not self._scheduler.running and self.cache.num_locked:
                raise InvariantError(
                    f"{self.cache.num_locked} pages are in use though nothing runs"
                )
        except InvariantError as error:
            self._repair(error)

    def live_requests(self) -> Sequence[str]:
        """Names of the submissions that are not answered yet."""
        return tuple(self._live)
