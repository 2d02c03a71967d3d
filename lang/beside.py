"""Requests on a copy of a branch, of which only the outcome is appended to the branch itself.

    branch   ... user("Who?") assistant( ----------------------------------------> "{...}" )
    copy                                 `-> first try -> "that was wrong: ..." -> second try

Owns the copy and the exchange on it: an answer is looked at on the program's thread (it may run the user's code), which decides what is asked
next or what comes of it. Meanwhile what the program appends to the branch is queued. If nothing but the outcome was written on the copy, the
copy becomes the branch, so that its tokens stay as they were generated. Must not know what is asked, nor why.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ..runtime.messages import Append, Generate, Text, sum_usage
from .asking import fail, failed, failure_of, settle, start
from .variable import Meta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..grammar.spec import Spec
    from ..runtime.messages import Finished, SamplingParams, Segment, Usage
    from .branch import Branch
    from .variable import Attempt, Variable


@dataclass(frozen=True, slots=True)
class More:
    """Ask again: what is written on the copy first, and how the request differs from the one before."""

    segments: Sequence[Segment]
    constraint: Spec | None
    sampling: SamplingParams


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is appended to the branch, and what it means."""

    text: str
    value: object
    refusal: Exception | None = None
    attempts: tuple[Attempt, ...] = ()
    reasoning: str = ""


class Beside(Protocol):
    """Decides after each answer. One object serves one gen of one run."""

    def begin(self, sampling: SamplingParams, constraint: Spec | None) -> More:
        """The first request."""
        ...

    def answered(self, finished: Finished, message: MessageSoFar) -> More | Outcome:
        """The next request, or the outcome. What it raises makes the variable fail."""
        ...


@dataclass(frozen=True, slots=True)
class MessageSoFar:
    """The chat message in which the gen stands: its role (None outside of all) and its text before the gen."""

    role: str | None
    text: str


class _Exchange:
    """What was written and used on the copy."""

    def __init__(self, beside: Beside) -> None:
        self.beside = beside
        self.written: list[Segment] = []
        self.usages: list[Usage] = []


def send_beside(
    branch: Branch,
    variable: Variable,
    sampling: SamplingParams,
    constraint: Spec | None,
    beside: Beside,
) -> None:
    """Open the copy and ask the first request."""
    branch.outbox.is_held = True
    if not _ask(branch, variable, _Exchange(beside), beside.begin(sampling, constraint)):
        branch.outbox.release()


def _ask(branch: Branch, variable: Variable, exchange: _Exchange, more: More) -> bool:
    """Write and ask on the copy, made if there is none. Whether the request went out."""
    outbox, run = branch.outbox, branch.run

    def send() -> Sequence[Future[Finished]]:
        written = [*more.segments]
        if outbox.copy_id is None:  # the first time, and after a failure
            outbox.open_copy()
            written = [*exchange.written, *written]
        copy_id = outbox.copy_id or ""
        if written:
            run.backend.send(Append(copy_id, tuple(written)))
        message = Generate(
            variable.request, copy_id, sampling=more.sampling, constraint=more.constraint
        )
        return (run.backend.generate(message),)

    futures = start(branch, variable, send)
    for future in futures:
        future.add_done_callback(partial(_answered, branch, variable, exchange, more))
    return bool(futures)


def _answered(
    branch: Branch,
    variable: Variable,
    exchange: _Exchange,
    more: More,
    future: Future[Finished],
) -> None:
    with branch.run.lock:
        if variable.done.done():
            return
        try:
            finished = future.result()
        except BaseException as error:  # noqa: BLE001  raised where the program reads
            if not failed(branch, variable, error, partial(_ask, branch, variable, exchange, more)):
                branch.outbox.end_copy(is_taken_over=False)
                branch.outbox.release()
            return
        branch.run.count(finished.usage)
        exchange.usages.append(finished.usage)
        work = partial(_look, branch, variable, exchange, more, finished)
        branch.run.later(variable, work)


def _look(
    branch: Branch, variable: Variable, exchange: _Exchange, more: More, finished: Finished
) -> None:
    """On the program's thread, without the lock while the user's code may run."""
    try:
        decided = exchange.beside.answered(finished, branch.message_before(variable))
    except Exception as error:  # noqa: BLE001  raised where the program reads
        with branch.run.lock:
            if not variable.done.done():
                _end(branch, variable, is_taken_over=False, error=error)
        return
    with branch.run.lock:
        if variable.done.done():
            return
        if isinstance(decided, More):
            exchange.written += [*more.segments, Text(finished.outputs[0].text)]
            variable.turn = Future()
            if not _ask(branch, variable, exchange, decided):
                _end(branch, variable, is_taken_over=False)
            return
        is_alone = not exchange.written and not more.segments
        variable.judge(decided.value, decided.refusal)
        meta = replace(
            Meta.of(variable.name, finished, variable.num_retries),
            usage=sum_usage(exchange.usages),
            attempts=decided.attempts,
            reasoning=decided.reasoning,
        )
        is_taken_over = is_alone and decided.text == finished.outputs[0].text
        branch.outbox.end_copy(is_taken_over)
        if not is_taken_over and decided.text:
            branch.outbox.add(Text(decided.text))
        settle(branch, variable, meta, decided.text)
        branch.outbox.release()


def _end(
    branch: Branch, variable: Variable, *, is_taken_over: bool, error: Exception | None = None
) -> None:
    if error is not None:
        fail(branch, variable, failure_of(branch, variable, error))
    branch.outbox.end_copy(is_taken_over)
    branch.outbox.release()
