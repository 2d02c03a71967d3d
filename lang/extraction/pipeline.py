"""Documents into rows: a bounded number under way on the backend, results as they come.

Owns the window, the parts of documents, the verdict on an output, and what an error means:

    this document's fault (too long, not spellable, output cut or refused)      it becomes a Failure, the rest goes on
    the job's fault (schema, sampling, model, aborted)                          raised; everything under way is aborted
    the service's fault (engine died, queue full)                               tried again, see below

After a fault of the service the documents it hit are tried again one by one, with nothing beside them, so that one that kills the engine
takes no other with it. One that fails `MAX_TRIES` times becomes a Failure; `MAX_GIVEN_UP` of those in a row end the job.

Must not know files or journals. The caller's thread does all the work here; answers of the backend only ring a bell.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import (
    Aborted,
    ConfigError,
    GrammarError,
    InvariantError,
    ModelError,
    OutputError,
    ProgramError,
    PromptError,
    RadixError,
    SamplingError,
    ServiceError,
)
from ...runtime.messages import Abort, Usage, sum_usage
from .documents import NO_USAGE, Document, Extracted, Failure, Outcome
from .verdict import read_output, write_merged

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ...runtime.messages import Finished
    from .recipe import Recipe

MAX_TRIES = 4
MAX_GIVEN_UP = 3
_PAUSE_S = 0.25  # before the second try; doubled for each further one
_FAULTS_OF_THE_JOB = (
    ConfigError, GrammarError, ModelError, SamplingError, ProgramError, Aborted,
)  # fmt: skip

Numbered = tuple[int, Document | Failure]
NumberedOutcome = tuple[int, Outcome]


@dataclass(slots=True, eq=False)
class _Task:
    """A document being read."""

    number: int
    document: Document
    parts: list[str] = field(default_factory=list[str])
    outputs: list[str | None] = field(default_factory=list[str | None])
    num_answered: int = 0
    num_tries: int = 0
    usage: Usage = NO_USAGE
    outcome: Outcome | None = None


@dataclass(slots=True)
class _Asked:
    """A request under way."""

    task: _Task
    part: int
    future: Future[Finished]


class Pipeline:
    """One run over numbered documents. `run` yields an outcome for each; leaving it aborts what is under way."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._bell: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._asked: dict[str, _Asked] = {}
        self._tasks: dict[int, _Task] = {}  # admitted and not yielded, in order
        self._ready: deque[tuple[_Task, int]] = deque()  # parts that wait for room
        self._suspects: deque[tuple[_Task, int]] = deque()  # parts that a fault of the service hit
        self._done: deque[_Task] = deque()
        self._num_given_up = 0
        self._is_at_end = False  # of the documents

    @property
    def num_under_way(self) -> int:
        """Documents read from the source and not yielded yet."""
        return len(self._tasks)

    @property
    def has_more(self) -> bool:
        """Whether the next outcome is at hand, or nearly so."""
        return bool(self._done) or not self._bell.empty()

    def run(self, documents: Iterable[Numbered]) -> Generator[NumberedOutcome]:
        """Outcomes as they come, or in the order of the documents if the recipe says so.

        Takes no more documents from the iterable than may be under way.
        """
        source = iter(documents)
        try:
            while True:
                self._admit(source)
                self._ask()
                yield from self._release()
                if self._asked:
                    self._take_answers()
                elif self._is_at_end and not self._tasks:
                    return
        finally:
            self._abort(list(self._asked))

    # ------------------------------------------------------------------------------------ going out

    def _admit(self, source: Iterator[Numbered]) -> None:
        """Read on while there is room."""
        limit = self._recipe.num_under_way
        while (
            not self._is_at_end
            and len(self._tasks) < limit
            and len(self._asked) + len(self._ready) < limit
            and not self._suspects
        ):
            item = next(source, None)
            if item is None:
                self._is_at_end = True
                return
            self._begin(*item)

    def _begin(self, number: int, document: Document | Failure) -> None:
        task = self._tasks[number] = _Task(
            number, document if isinstance(document, Document) else document.document
        )
        if isinstance(document, Failure):
            task.outcome = document
            self._done.append(task)
            return
        try:
            task.parts = list(self._recipe.splitter.split(document.text))
        except PromptError as error:  # of the backend that counts the tokens
            self._fail(task, error)
            return
        task.outputs = [None] * len(task.parts)
        self._ready.extend((task, part) for part in range(len(task.parts)))

    def _ask(self) -> None:
        """Send what may be sent."""
        if self._suspects:
            if not self._asked:
                task, part = self._suspects.popleft()
                time.sleep(_PAUSE_S * 2 ** (task.num_tries - 1))
                self._send(task, part)
            return
        while self._ready and len(self._asked) < self._recipe.num_under_way:
            self._send(*self._ready.popleft())

    def _send(self, task: _Task, part: int) -> None:
        if task.outcome is not None:  # another part has failed
            return
        recipe = self._recipe
        name = recipe.backend.new_id("extract")
        future = recipe.backend.generate(recipe.request(name, task.parts[part], task.number, part))
        self._asked[name] = _Asked(task, part, future)
        future.add_done_callback(lambda _: self._bell.put(name))

    def _abort(self, names: Iterable[str]) -> None:
        for name in names:
            asked = self._asked.pop(name)
            if not asked.future.done():
                try:
                    self._recipe.backend.send(Abort(name))
                except RadixError:
                    return  # the backend is gone, and with it the requests

    # ------------------------------------------------------------------------------------ coming back

    def _take_answers(self) -> None:
        """Wait for an answer, and take those that came with it."""
        self._take(self._bell.get())
        while not self._bell.empty():
            self._take(self._bell.get())

    def _take(self, name: str) -> None:
        asked = self._asked.pop(name, None)
        if asked is None:
            return  # aborted before
        error = asked.future.exception()
        if error is None:
            self._num_given_up = 0
            self._on_finished(asked.task, asked.part, asked.future.result())
        elif isinstance(error, ServiceError) and not isinstance(error, Aborted):
            self._on_fault(asked.task, asked.part, error)
        elif isinstance(error, _FAULTS_OF_THE_JOB) or not isinstance(error, RadixError):
            raise error
        else:
            self._fail(asked.task, error, getattr(error, "partial", ""))

    def _on_finished(self, task: _Task, part: int, finished: Finished) -> None:
        task.usage = sum_usage((task.usage, finished.usage))
        if task.outcome is not None:
            return
        output = finished.outputs[0]
        task.outputs[part] = output.text
        task.num_answered += 1
        if output.grammar_complete is False:
            error = OutputError(
                f"the output was cut after {finished.usage.completion_tokens} tokens",
                hint="Allow more (max_tokens), or bound the schema (maxLength, maxItems)",
            )
            self._fail(task, error, output.text)
        elif task.num_answered == len(task.parts):
            self._finish(task)

    def _finish(self, task: _Task) -> None:
        """All parts are there: one value, checked."""
        recipe, texts = self._recipe, [text or "" for text in task.outputs]
        is_invalid = True
        try:
            values = [read_output(recipe.target, text) for text in texts]
            value, text = values[0], texts[0]
            if len(values) > 1:
                value = recipe.merge(values)
                text = write_merged(value)
                recipe.target.check(value)
            is_invalid = False
            typed = recipe.target.typed(value, text)
        except OutputError as error:
            self._fail(task, error, "\n".join(texts), is_invalid)
        else:
            task.outcome = Extracted(task.document, value, typed, task.usage, len(task.parts))
            self._done.append(task)

    def _on_fault(self, task: _Task, part: int, error: ServiceError) -> None:
        if task.outcome is not None:
            return
        task.num_tries += 1
        if not error.retryable or task.num_tries >= MAX_TRIES:
            self._num_given_up += 1
            if self._num_given_up >= MAX_GIVEN_UP:
                raise error
            self._fail(task, error, getattr(error, "partial", ""))
        else:
            self._suspects.append((task, part))

    def _fail(
        self, task: _Task, error: RadixError, output: str = "", is_invalid: bool = False
    ) -> None:
        if task.outcome is not None:
            return
        if isinstance(error, InvariantError):
            error.add_note(f"reading {task.document.source} [{task.document.index}]")
        task.outcome = Failure(
            task.document, error, output, task.usage, len(task.parts), is_invalid
        )
        self._done.append(task)
        self._abort([name for name, asked in self._asked.items() if asked.task is task])

    def _release(self) -> Iterator[NumberedOutcome]:
        """What may be yielded now."""
        if not self._recipe.is_ordered:
            while self._done:
                task = self._done.popleft()
                del self._tasks[task.number]
                if task.outcome is not None:
                    yield task.number, task.outcome
            return
        self._done.clear()
        while self._tasks:
            task = next(iter(self._tasks.values()))
            if task.outcome is None:
                return
            del self._tasks[task.number]
            yield task.number, task.outcome
