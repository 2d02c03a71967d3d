"""The requests of a branch: how they are sent, and what their answers do.

Owns the way from a promised variable to the backend and back. Every function holds the run's lock while it changes anything; answers come on
the backend's thread. Must not know how anyone waits, nor what programs append.

A run with `retries` asks again after a passing failure, and some gens are asked on a copy of the branch (`beside.py`): both need the program's
thread. What it has to do is put into the run's list, and the variable's `turn` is kept: who waits for the variable does it.
"""

from __future__ import annotations

from concurrent.futures import CancelledError, Future
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import Aborted, RadixError, ServiceError
from ..runtime.messages import Generate, Hints, Score, Text, sum_usage
from .news import StreamEvent
from .outbox import neutral_start
from .variable import Failure, Meta, explain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..grammar.spec import Spec
    from ..runtime.messages import Delta, Finished, SamplingParams, Scored
    from .branch import Branch
    from .place import Place
    from .variable import Variable

    Ranked = Callable[[Scored, Scored | None], tuple[int, tuple[float, ...]]]


# ------------------------------------------------------------------------------------ sending


def send_generate(
    branch: Branch,
    variable: Variable,
    sampling: SamplingParams,
    constraint: Spec | None,
    hints: Hints | None,
) -> bool:
    """Ask for a gen. Whether the request went out."""
    outbox, run = branch.outbox, branch.run
    again = partial(send_generate, branch, variable, sampling, constraint, hints)

    def send() -> Sequence[Future[Finished]]:
        is_live = run.news is not None
        message = Generate(
            variable.request,
            outbox.wire_id,
            sampling=sampling,
            constraint=constraint,
            stream=is_live,
            hints=hints or outbox.hints(),
        )
        grew = (partial(_grew, branch, variable),) if is_live else ()
        future = run.backend.generate(message, *grew)
        # Until the program has seen the answer. Not before: a request that was refused has no answer that would end the hold.
        outbox.is_held = variable.turn is not None
        return (future,)

    futures = start(branch, variable, send)
    for future in futures:
        future.add_done_callback(partial(_generated, branch, variable, again))
    return bool(futures)


def send_score(
    branch: Branch,
    variable: Variable,
    choices: tuple[str, ...],
    rank: Ranked,
    unconditional: bool,
    hints: Hints | None,
) -> bool:
    """Ask for a select. Whether the requests went out."""
    backend = branch.run.backend
    again = partial(send_score, branch, variable, choices, rank, unconditional, hints)

    def send() -> Sequence[Future[Scored]]:
        known = hints or Hints()
        message = Score(variable.request, branch.outbox.wire_id, choices, hints=known)
        futures = [backend.score(message)]
        if unconditional:
            alone = (neutral_start(backend.facts),)  # the choices without the text
            request = backend.new_id(variable.name)
            futures.append(backend.score(Score(request, None, choices, alone)))
        branch.outbox.is_held = True
        return futures

    futures = start(branch, variable, send)
    for future in futures:
        future.add_done_callback(partial(_scored, branch, variable, choices, rank, futures, again))
    return bool(futures)


def send_fork(branch: Branch, children: list[Branch], place: Place) -> None:
    """Make the children, and let them speak."""
    for child in children:
        child.error = branch.error
    if branch.error is None and (branch.last is None or branch.last.failure is None):
        try:
            branch.outbox.fork([child.outbox for child in children])
        except Exception as error:  # noqa: BLE001  raised where the program reads
            cause = explain(_as_radix(error), "forking", place, branch.text_so_far())
            for child in children:
                child.error = cause
    for child in children:
        child.outbox.release()


def start(
    branch: Branch, variable: Variable, send: Callable[[], Sequence[Future[Any]]]
) -> Sequence[Future[Any]]:
    """Send a request, unless what it depends on has failed. Nothing was sent: no futures."""
    earlier = variable.before.failure if variable.before is not None else None
    if earlier is None and branch.error is not None:
        earlier = failure_of(branch, variable, branch.error)
    if earlier is not None:
        fail(branch, variable, earlier)
        return ()
    try:
        branch.outbox.begin()
        branch.outbox.flush()
        variable.request = branch.run.backend.new_id(variable.name)
        return send()
    except Exception as error:  # noqa: BLE001  raised where the program reads
        fail(branch, variable, failure_of(branch, variable, _as_radix(error)))
        return ()


# ------------------------------------------------------------------------------------ answers, on any thread


def _grew(branch: Branch, variable: Variable, delta: Delta) -> None:
    with branch.run.lock:
        if delta.index == 0 and delta.text and not variable.done.done():
            tell(branch, variable, delta.text)


def _generated(
    branch: Branch, variable: Variable, again: Callable[[], bool], future: Future[Finished]
) -> None:
    with branch.run.lock:
        if variable.done.done():
            return  # the run was aborted meanwhile
        is_waited_for = False
        try:
            meta = Meta.of(variable.name, future.result(), variable.num_retries)
            branch.run.count(meta.usage)
            settle(branch, variable, meta)
        except BaseException as error:  # noqa: BLE001  raised where the program reads
            is_waited_for = failed(branch, variable, error, again)
        if variable.turn is not None and not is_waited_for:
            branch.outbox.release()


def _scored(
    branch: Branch,
    variable: Variable,
    choices: tuple[str, ...],
    rank: Ranked,
    futures: Sequence[Future[Scored]],
    again: Callable[[], bool],
    _: Future[Scored],
) -> None:
    with branch.run.lock:
        if variable.done.done() or not all(future.done() for future in futures):
            return
        is_waited_for = False
        try:
            _append_choice(branch, variable, choices, rank, [f.result() for f in futures])
        except BaseException as error:  # noqa: BLE001  raised where the program reads
            is_waited_for = failed(branch, variable, error, again)
        if not is_waited_for:
            branch.outbox.release()


def _append_choice(
    branch: Branch,
    variable: Variable,
    choices: tuple[str, ...],
    rank: Ranked,
    scored: list[Scored],
) -> None:
    index, scores = rank(scored[0], scored[1] if len(scored) > 1 else None)
    meta = Meta(
        name=variable.name,
        finish_reason="choice",
        usage=sum_usage([each.usage for each in scored]),
        token_ids=scored[0].token_ids[index],
        scores=dict(zip(choices, scores, strict=True)),
        num_retries=variable.num_retries,
    )
    branch.run.count(meta.usage)
    branch.outbox.add(Text(choices[index]))
    settle(branch, variable, meta, choices[index])


def failed(
    branch: Branch, variable: Variable, error: BaseException, again: Callable[[], bool]
) -> bool:
    """A request failed: ask again if the run allows it and nobody has seen a part of its text, else the variable fails. Whether it is asked again."""
    run = branch.run
    is_passing = isinstance(error, RadixError) and error.retryable
    if is_passing and variable.num_retries < run.retries and not variable.streamed:
        variable.num_retries += 1
        run.later(variable, partial(retry, branch, variable, again))
        return True
    fail(branch, variable, failure_of(branch, variable, error))
    return False


def retry(branch: Branch, variable: Variable, again: Callable[[], bool]) -> None:
    """On the program's thread: after a while, write the branch anew, since a failure has broken it in the backend, and ask again."""
    branch.run.rest(variable.num_retries)
    with branch.run.lock:
        if variable.done.done():
            return
        variable.turn = Future()
        branch.outbox.reopen(branch.segments_before(variable))
        if not again():
            branch.outbox.release()


# ------------------------------------------------------------------------------------ the end of a variable


def settle(branch: Branch, variable: Variable, meta: Meta, chosen: str | None = None) -> None:
    """The result came."""
    if variable.done.done():
        return  # the run was aborted meanwhile
    branch.run.open.pop(variable, None)
    variable.settle(meta, chosen)
    if variable.failure is None:
        shown = sum(map(len, variable.streamed or ()))
        tell(branch, variable, variable.text[shown:], meta)
    branch.run.tell()


def fail(branch: Branch, variable: Variable, failure: Failure) -> None:
    """No result will come."""
    branch.run.open.pop(variable, None)
    variable.fail(failure)
    if variable.before is None or variable.before.failure is None:
        branch.run.failures.append(failure)
    branch.run.tell()


def tell(branch: Branch, variable: Variable, text: str, meta: Meta | None = None) -> None:
    """To those who watch the run."""
    if branch.run.news is None:
        return
    if text:
        variable.streamed = variable.streamed or []
        variable.streamed.append(text)
    branch.run.news.add(StreamEvent(variable.name, branch.path, text, meta))


def failure_of(branch: Branch, variable: Variable, error: BaseException) -> Failure:
    """The failure with the program's line and the text so far."""
    if isinstance(error, CancelledError):
        error = Aborted("the request was cancelled")
    doing = f"running {variable.name!r}"
    return Failure(explain(error, doing, variable.place, branch.text_so_far(variable)))


def _as_radix(error: Exception) -> RadixError:
    if isinstance(error, RadixError):
        return error
    own = ServiceError(f"the backend could not take the request: {error!r}")
    own.__cause__ = error
    return own
