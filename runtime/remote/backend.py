"""The language's Backend over an adapter: branches on this side, requests as tasks of one loop thread, aborts, time limits, the orderly end.

    any thread --send/generate/score--> deque --wake--> loop thread: BranchTable -> a task per request -> Adapter -> HTTP
                       Future <------------------------ loop thread

The thread starts with the first message and ends with `close()`. Aborting a request cancels its task, which closes its connection.
Owns the thread, the tasks and the futures. Knows neither HTTP nor any server's format.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from dataclasses import replace
from typing import Any, Self, TypeVar

import msgspec

from ...errors import Aborted, ProgramError, RadixError, ServiceError, TimedOut
from .. import messages as m
from ..loops import new_event_loop
from .adapter import Adapter, Ask, Choose, OnDelta, Told
from .branches import BranchTable, Job, RemoteBranch
from .connection import Limits
from .prompts import Said
from .speculation import as_written, widened

log = logging.getLogger(__name__)

Notice = m.OpenBranch | m.Append | m.Fork | m.CloseBranch | m.Abort
Result = TypeVar("Result")


class RemoteBackend:
    """Satisfies `lang.backend.Backend`. Close it, or use it in a `with` block."""

    def __init__(self, adapter: Adapter, limits: Limits) -> None:
        self._adapter = adapter
        self._limits = limits
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # guards the thread's life and the inbox
        self._inbox: deque[Callable[[], None]] = deque()
        self._is_woken = False
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        # loop thread only
        self._table = BranchTable(self._start, self._refuse)
        self._jobs: dict[str, Job] = {}  # every request without an answer
        self._tasks: dict[str, asyncio.Task[Any]] = {}  # those that run
        self._slots: asyncio.Semaphore | None = None

    # ------------------------------------------------------------------------------------------ Backend

    @property
    def facts(self) -> m.Ready:
        """Facts of the model; zeros where the server does not tell."""
        return self._adapter.facts

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request, unique in this backend."""
        return f"{prefix}.{next(self._numbers)}"

    def send(self, message: Notice) -> None:
        """Send a message that has no answer."""
        self.send_speculating(message, 0)

    def send_speculating(self, message: Notice, num_tokens: int) -> None:
        """The same; requests on a branch opened so may write `num_tokens` for those behind them."""
        if isinstance(message, m.OpenBranch):
            self._post(lambda: self._table.open(message, num_tokens))
        elif isinstance(message, m.Abort):
            self._post(lambda: self._abort(message.request))
        else:
            self._post(lambda: self._table.send(message))

    def generate(self, message: m.Generate, on_delta: OnDelta | None = None) -> Future[m.Finished]:
        """Continue a branch; `on_delta` gets new text, on the loop's thread, if `message.stream`."""
        return self._ask(Job(message, Future(), on_delta if message.stream else None))

    def score(self, message: m.Score) -> Future[m.Scored]:
        """Judge each choice as the continuation of a branch; see `Adapter.score` for servers without log-probabilities."""
        return self._ask(Job(message, Future()))

    def speculating(self, num_tokens: int) -> SpeculatingView:
        """This backend for a program whose calls may write `num_tokens` ahead (`@function(num_api_spec_tokens=...)`)."""
        return SpeculatingView(self, num_tokens)

    def wait_for(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """The result of a coroutine that runs on the loop thread. Not to be called from there."""
        future: Future[Result] = Future()

        async def run() -> None:
            try:
                async with asyncio.timeout(self._limits.timeout_s):
                    future.set_result(await work())
            except TimeoutError:
                future.set_exception(self._too_slow())
            except BaseException as error:  # noqa: BLE001 - it is raised where the caller waits
                future.set_exception(error)

        def ended(_: asyncio.Task[None]) -> None:
            if not future.done():  # it was cancelled before its first step
                future.set_exception(self._gone())

        self._post(lambda: self._keep_task("", run()).add_done_callback(ended))
        return future.result()

    # ------------------------------------------------------------------------------------------ life

    @property
    def num_open_branches(self) -> int:
        """Branches not closed yet."""
        return len(self._table)

    def close(self) -> None:
        """End every request with Aborted, close the connections, end the thread. Twice is no error."""
        with self._lock:
            self._is_closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        try:
            loop.call_soon_threadsafe(loop.stop)
        except RuntimeError:  # it has ended already
            return
        if thread is not threading.current_thread():
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _post(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._is_closed:
                raise ServiceError(f"the backend of {self._adapter.name} is closed")
            if self._loop is None:
                self._loop = new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="radixlm-remote", daemon=True
                )
                self._thread.start()
            self._inbox.append(work)
            if not self._is_woken:
                self._is_woken = True
                self._loop.call_soon_threadsafe(self._flush)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(self._end())
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    async def _end(self) -> None:
        self._flush()
        gone = self._gone()
        for name, job in list(self._jobs.items()):
            job.dropped = gone
            _fail(job, gone)
            self._jobs.pop(name, None)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._adapter.aclose()

    # ------------------------------------------------------------------------------------------ loop thread

    def _flush(self) -> None:
        while True:
            with self._lock:
                if not self._inbox:
                    self._is_woken = False
                    return
                work = self._inbox.popleft()
            try:
                work()
            except Exception as error:  # noqa: BLE001 - it is logged, and told to all that wait
                self._fail_all(error)

    def _fail_all(self, error: Exception) -> None:
        """A message could not be carried out, so no open branch is what its program believes; new ones are."""
        log.exception("a message to %s met a defect", self._adapter.name)
        failure = ServiceError(f"a message to {self._adapter.name} was not understood: {error!r}")
        failure.__cause__ = error
        self._table.fail_all(failure)
        for name in list(self._jobs):
            self._drop(name, failure)

    def _ask(self, job: Job) -> Future[Any]:
        name = job.message.request

        def begin() -> None:
            if name in self._jobs:
                _fail(job, ServiceError(f"a request called {name!r} is still pending"))
                return
            if job.future.cancelled():
                return
            self._jobs[name] = job
            self._table.ask(job)

        def ended(future: Future[Any]) -> None:
            if future.cancelled():
                self._post_quietly(lambda: self._abort(name))

        job.future.add_done_callback(ended)
        self._post(begin)
        return job.future

    def _post_quietly(self, work: Callable[[], None]) -> None:
        try:
            self._post(work)
        except ServiceError:
            return  # closed: everything was ended

    def _abort(self, name: str) -> None:
        self._drop(name, Aborted("the request was aborted"))

    def _drop(self, name: str, failure: RadixError) -> None:
        job = self._jobs.pop(name, None)
        if job is None:
            return
        job.dropped = failure
        _fail(job, failure)
        task = self._tasks.get(name)
        if task is not None:
            task.cancel()

    def _start(self, branch: RemoteBranch, job: Job) -> None:
        def ended(task: asyncio.Task[BaseException | None]) -> None:
            # here and not in the coroutine: one that is cancelled before its first step is never entered
            failure = job.dropped or self._gone() if task.cancelled() else task.result()
            if failure is not None:
                self._refuse(job, failure)
            self._table.answered(branch, failure)

        self._keep_task(job.message.request, self._run(branch, job)).add_done_callback(ended)

    def _keep_task(self, name: str, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.ensure_future(work)
        key = name or f"#{id(task)}"
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        return task

    async def _run(self, branch: RemoteBranch, job: Job) -> BaseException | None:
        """One request from its turn to its answer; what it failed with."""
        failure: BaseException | None = None
        try:
            async with self._free_slot(), asyncio.timeout(self._limits.timeout_s):
                result = await self._answer(branch, job)
            self._settle(job, result)
        except TimeoutError:
            failure = self._too_slow()
        except asyncio.CancelledError:
            failure = job.dropped or Aborted("the request was aborted")
        except RadixError as error:
            failure = error
        except Exception as error:
            log.exception("a request to %s met a defect", self._adapter.name)
            failure = ServiceError(
                f"the answer of {self._adapter.name} was not understood: {error!r}"
            )
            failure.__cause__ = error
        return failure

    def _refuse(self, job: Job, error: BaseException) -> None:
        self._jobs.pop(job.message.request, None)
        _fail(job, error)

    def _free_slot(self) -> asyncio.Semaphore:
        if self._slots is None:
            self._slots = asyncio.Semaphore(self._limits.max_concurrency)
        return self._slots

    def _settle(self, job: Job, result: m.Finished | m.Scored) -> None:
        self._jobs.pop(job.message.request, None)
        try:
            job.future.set_result(result)
        except InvalidStateError:
            log.debug("an answer came to a request that was cancelled")

    async def _answer(self, branch: RemoteBranch, job: Job) -> m.Finished | m.Scored:
        message = job.message
        if isinstance(message, m.Score):
            if not message.choices:
                raise ProgramError(
                    "there is nothing to select from: choices is empty", place="choices"
                )
            choose = Choose(tuple(branch.pieces), message, branch.namespace)
            return await self._adapter.score(choose)
        message.sampling.check()
        ask = Ask(
            tuple(branch.pieces), message, branch.namespace, branch.strict_text, branch.has_forks
        )
        told = await self._speculated(branch, ask, job.on_delta)
        text = told.finished.outputs[0].text
        segments = (m.Text(text),) if told.segments is None else told.segments
        branch.pieces.append(Said(text, segments))
        return told.finished

    async def _speculated(self, branch: RemoteBranch, ask: Ask, on_delta: OnDelta | None) -> Told:
        """The answer: out of text written ahead, out of a call that writes ahead, else out of a call of its own."""
        ahead, message = branch.ahead, ask.message
        found, usage = ahead.take(message), m.Usage()
        if found is None:
            if not ahead.may_write(message) or not self._adapter.speculates(ask):
                return await self._adapter.generate(ask, on_delta)
            wide = replace(ask, message=widened(message, ahead.num_tokens), wants_tokens=True)
            told = await self._adapter.generate(wide, None)
            usage = told.finished.usage
            found = ahead.keep(message, as_written(told.finished.outputs[0], told.tokens))
            if found is None:  # it wrote too little to tell
                told = await self._adapter.generate(ask, on_delta)
                usage = m.sum_usage((usage, told.finished.usage))
                return replace(told, finished=msgspec.structs.replace(told.finished, usage=usage))
        if on_delta is not None and found.text:
            on_delta(m.Delta(message.request, 0, found.text))
        output = m.Output(found.text, (), found.finish_reason, found.matched_stop)
        return Told(m.Finished(message.request, (output,), usage, message.sampling.seed or 0))

    def _gone(self) -> Aborted:
        return Aborted(f"the backend of {self._adapter.name} was closed")

    def _too_slow(self) -> TimedOut:
        return TimedOut(
            f"{self._adapter.name} had no answer within {self._limits.timeout_s:g} s",
            place="timeout_s",
        )


class SpeculatingView:
    """A remote backend as one program sees it whose calls may write ahead. Owns nothing."""

    def __init__(self, backend: RemoteBackend, num_tokens: int) -> None:
        self._backend = backend
        self._num_tokens = num_tokens
        self.new_id = backend.new_id
        self.generate = backend.generate
        self.score = backend.score

    @property
    def facts(self) -> m.Ready:
        """Facts of the model."""
        return self._backend.facts

    def send(self, message: Notice) -> None:
        """Send a message that has no answer."""
        self._backend.send_speculating(message, self._num_tokens)


def _fail(job: Job, error: BaseException) -> None:
    try:
        job.future.set_exception(error)
    except InvalidStateError:
        return  # it was cancelled, or answered before
