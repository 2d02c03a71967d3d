"""The backend of a compiled batch: it asks each equal request once, and continues all items from one copy of their common beginning.

Owns the requests of the batch: which are sent, which wait for another's result, which take one over. By the exactness contract equal text, asked in a way
that may be repeated (temperature 0, or a seed), gives an equal result; so an item takes over the result of another, and its branch goes
on from a copy of the other's, which holds exactly the same tokens. Must not know programs, plans or how anyone waits.

    branch --Append--> unsent --Generate--> its key is known? --no---> sent on the branch's own wire, which now stands behind the result
                                                 |
                                                yes: the result is taken over (or waited for); the branch has no wire of its own until
                                                     it asks something new: then it is forked from the place behind the result

If a leader fails, each follower asks for itself. Results are handed over outside the lock, since their callbacks take others.
"""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ...errors import Aborted
from ...runtime.messages import Abort, Append, CloseBranch, Fork, OpenBranch, Usage
from .handover import Handover, outcome_of
from .history import History
from .keeping import Kept
from .places import Entry, Follower, Place, Seat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...runtime.messages import Delta, Finished, Generate, Ready, Score, Scored, Segment
    from ..backend import Backend

_MAX_SCORES = 256  # answers to selects that are kept


class SharingBackend:
    """See the module. A `Backend` for the runs of one batch; `expected` names the requests that several items are expected to share."""

    def __init__(
        self, backend: Backend, prefix: Sequence[Segment], expected: frozenset[str]
    ) -> None:
        self.num_taken_over = 0
        self._backend = backend
        self._expected = expected
        self._kept = Kept(backend, prefix, expected)
        self._seats: dict[str, Seat] = {}  # by the name that the run gave the branch
        self._names: dict[str, str] = {}  # request -> variable
        self._scores: OrderedDict[bytes, Future[Any]] = OrderedDict()
        self._unsent: dict[str, tuple[Seat, Future[Any]]] = {}  # requests not at the backend
        self._handover = Handover()
        self._is_complete = False

    def complete(self) -> None:
        """No item comes any more: when the last branch closes, nothing is kept."""
        with self._handover:
            self._is_complete = True
            self._end_if_idle()

    # ------------------------------------------------------------------------------------ Backend

    @property
    def facts(self) -> Ready:
        """Facts of the model."""
        return self._backend.facts

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request."""
        name = self._backend.new_id(prefix)
        if prefix in self._expected:
            self._names[name] = prefix
        return name

    def send(self, message: OpenBranch | Append | Fork | CloseBranch | Abort) -> None:
        """Take a message in; it goes on when a request needs it."""
        with self._handover:
            if isinstance(message, OpenBranch):
                history = History(message.namespace, message.strict_text)
                self._seats[message.branch] = Seat(message.branch, message, history)
            elif isinstance(message, Abort):
                self._abort(message)
            elif (seat := self._seats.get(message.branch)) is None:
                self._backend.send(message)
            elif isinstance(message, Append):
                seat.do(partial(_append, seat, message.segments))
            elif isinstance(message, Fork):
                names = message.children
                children = [Seat(each, seat.opening, seat.history, is_held=True) for each in names]
                self._seats.update(zip(names, children, strict=True))
                seat.do(partial(self._fork, seat, children))
            else:
                seat.do(partial(self._close, seat))

    def generate(
        self, message: Generate, on_delta: Callable[[Delta], None] | None = None
    ) -> Future[Finished]:
        """Ask, or take over what an equal request gave."""
        with self._handover:
            seat = self._seats.get(message.branch or "")
            if seat is None:
                return self._backend.generate(message, on_delta)
            future: Future[Finished] = Future()
            self._unsent[message.request] = (seat, future)
            seat.do(partial(self._generate, seat, message, on_delta, future))
            return future

    def score(self, message: Score) -> Future[Scored]:
        """Ask, or take over what an equal request gave."""
        with self._handover:
            future: Future[Scored] = Future()
            if message.branch is None:
                history = History(message.namespace, False)
                history.append(message.segments)
                self._score(None, history, message, future)
                return future
            seat = self._seats.get(message.branch)
            if seat is None:
                return self._backend.score(message)
            self._unsent[message.request] = (seat, future)
            # a held seat gets its history when its fork is carried out: it is looked up then
            seat.do(lambda: self._score(seat, seat.history, message, future))
            return future

    # ------------------------------------------------------------------------------------ gens

    def _generate(
        self,
        seat: Seat,
        message: Generate,
        on_delta: Callable[[Delta], None] | None,
        future: Future[Any],
    ) -> None:
        if seat.failure is not None:
            self._unsent.pop(message.request, None)
            self._handover.give(future, seat.failure)
            return
        _append(seat, message.segments)
        key = seat.history.generate(message)
        self._lead_or_follow(Follower(seat, message, future), on_delta, key)

    def _lead_or_follow(
        self, follower: Follower, on_delta: Callable[[Delta], None] | None, key: bytes | None
    ) -> None:
        entry = self._kept.find(key)
        if entry is not None and not entry.answer.done():
            follower.seat.is_held = True
            entry.followers.append(follower)
        elif entry is not None and not isinstance(outcome_of(entry.answer), BaseException):
            self._take_over(entry, follower)
        else:
            if entry is not None:  # it failed, and that is about to be told
                self._kept.forget(entry)
            self._lead(follower.seat, follower.message, on_delta, follower.future, key)

    def _lead(
        self,
        seat: Seat,
        message: Generate,
        on_delta: Callable[[Delta], None] | None,
        future: Future[Any],
        key: bytes | None,
    ) -> None:
        name = self._names.pop(message.request, "")
        self._unsent.pop(message.request, None)
        try:
            wire = self._kept.arrive(seat)
            self._kept.move_on(seat)
            sent = msgspec.structs.replace(message, branch=wire, segments=())
            answer = self._backend.generate(sent, on_delta)
        except Exception as error:  # noqa: BLE001  it is the answer to this request
            seat.failure = error
            self._handover.give(future, error)
            return
        entry = None
        if key is not None and not self._has_ended:
            entry = seat.behind = Entry(name, key, answer, Place(wire))
            self._kept.keep(entry)
        answer.add_done_callback(partial(self._answered, entry, future))

    def _answered(self, entry: Entry | None, future: Future[Any], answer: Future[Any]) -> None:
        with self._handover:
            outcome = outcome_of(answer)
            self._handover.give(future, outcome)
            if entry is None:
                return
            followers, entry.followers = entry.followers, []
            is_good = not isinstance(outcome, BaseException)
            if not is_good:
                self._kept.forget(entry)
            for follower in followers:
                seat = follower.seat
                seat.is_held = False
                if seat.failure is None and is_good:
                    self._take_over(entry, follower)
                elif seat.failure is None:
                    self._lead_or_follow(follower, None, entry.key)
                if not seat.is_held:
                    seat.release()

    def _take_over(self, entry: Entry, follower: Follower) -> None:
        seat, message = follower.seat, follower.message
        self._unsent.pop(message.request, None)
        self._names.pop(message.request, None)
        self._kept.stand_up(seat)
        seat.unsent.clear()
        seat.start_from(entry.place)
        self.num_taken_over += 1
        finished: Finished = entry.answer.result()
        num_prompt = finished.usage.prompt_tokens
        taken = msgspec.structs.replace(
            finished, request=message.request, usage=Usage(num_prompt, num_prompt)
        )
        self._handover.give(follower.future, taken)

    # ------------------------------------------------------------------------------------ selects

    def _score(
        self, seat: Seat | None, history: History, message: Score, future: Future[Any]
    ) -> None:
        if seat is not None and seat.failure is not None:
            self._unsent.pop(message.request, None)
            self._handover.give(future, seat.failure)
            return
        key = history.score(message.choices)
        known = self._scores.get(key)
        if known is None:
            self._ask_score(seat, message, future, key)
        else:
            work = partial(self._scored, seat, message, future, key)
            known.add_done_callback(work)

    def _scored(
        self,
        seat: Seat | None,
        message: Score,
        future: Future[Any],
        key: bytes,
        answer: Future[Any],
    ) -> None:
        with self._handover:
            outcome = outcome_of(answer)
            if isinstance(outcome, BaseException):
                if seat is None or self._seats.get(seat.name) is seat:
                    self._ask_score(seat, message, future, key)
                    return
                self._unsent.pop(message.request, None)
                self._handover.give(future, Aborted("its branch was closed before it was asked"))
                return
            self._unsent.pop(message.request, None)
            self.num_taken_over += 1
            num_prompt = outcome.usage.prompt_tokens
            usage = Usage(num_prompt, num_prompt)
            taken = msgspec.structs.replace(outcome, request=message.request, usage=usage)
            self._handover.give(future, taken)

    def _ask_score(
        self, seat: Seat | None, message: Score, future: Future[Any], key: bytes
    ) -> None:
        self._unsent.pop(message.request, None)
        if future.done():
            return
        try:
            wire = None if seat is None else self._kept.arrive(seat)
            answer = self._backend.score(msgspec.structs.replace(message, branch=wire))
        except Exception as error:  # noqa: BLE001  it is the answer to this request
            self._handover.give(future, error)
            return
        if not self._has_ended:
            self._scores[key] = answer
            if len(self._scores) > _MAX_SCORES:
                self._scores.popitem(last=False)
        answer.add_done_callback(partial(self._score_answered, future))

    def _score_answered(self, future: Future[Any], answer: Future[Any]) -> None:
        with self._handover:
            self._handover.give(future, outcome_of(answer))

    # ------------------------------------------------------------------------------------ branches

    def _fork(self, seat: Seat, children: list[Seat]) -> None:
        error: Exception | None = None
        if seat.start is None and seat.failure is None:  # else each child asks for itself
            try:
                wire = self._kept.arrive(seat)
                self._kept.move_on(seat)
                self._backend.send(Fork(wire, tuple(child.name for child in children)))
            except Exception as cause:  # noqa: BLE001  raised where the program reads
                error = cause
        for child in children:
            child.history, child.failure = seat.history.copy(), seat.failure or error
            child.wire = None if seat.wire is None else child.name
            child.start_from(seat.start)
            child.unsent = list(seat.unsent)
            child.release()

    def _close(self, seat: Seat) -> None:
        self._seats.pop(seat.name, None)
        self._kept.stand_up(seat)
        self._end_if_idle()

    def _abort(self, message: Abort) -> None:
        found = self._unsent.pop(message.request, None)
        if found is None:
            self._backend.send(message)
            return
        seat, future = found
        seat.failure = seat.failure or Aborted("a request before it on the branch was aborted")
        self._handover.give(future, Aborted("the request was aborted"))

    @property
    def _has_ended(self) -> bool:
        return self._is_complete and not self._seats

    def _end_if_idle(self) -> None:
        if self._has_ended:
            self._kept.clear()
            self._scores.clear()


def _append(seat: Seat, segments: Sequence[Segment]) -> None:
    seat.unsent += segments
    seat.history.append(segments)
