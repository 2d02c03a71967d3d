"""ScriptedBackend: a backend without a model, for testing programs.

Owns scripted answers and the record of requests. Must not know sockets or models. There are no threads: answers come at once, on the
thread that calls, or between `pause()` and `resume()` when resumed.

    backend = ScriptedBackend({"city": "Paris", "tool": "search"})
    state = program.run("France?", backend=backend)
    assert state["city"] == "Paris" and "France" in backend.requests[0].prompt
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias, cast

from ..errors import Aborted, ProgramError
from ..grammar.spec import Spec
from ..runtime.messages import (
    Abort,
    Append,
    CloseBranch,
    Delta,
    Finished,
    Fork,
    Generate,
    OpenBranch,
    Output,
    Ready,
    SamplingParams,
    Score,
    Scored,
    TokenLogprob,
)
from .miniature import Job, Miniature, MiniBranch, words
from .scripted_checks import satisfies

_FACTS = Ready(model="scripted", context_length=1 << 20, vocab_size=50_000, eos_token_ids=(0,))
_WON, _LOST, _ALONE = -0.1, -3.0, -1.0  # log-probability of each token of a choice


@dataclass(frozen=True, slots=True)
class Answer:
    """One scripted output. finish_reason="length" plays max_tokens; a constraint then need not hold."""

    text: str
    finish_reason: str = "stop"
    logprobs: tuple[TokenLogprob, ...] | None = None
    failure: Exception | None = None
    """The request fails with it after the text: a stream that breaks off."""


@dataclass(frozen=True, slots=True)
class Request:
    """A gen or select as the backend saw it."""

    name: str
    """The variable."""
    prompt: str
    """All text of the branch; a role block reads <|im_start|>role\\n...<|im_end|>\\n."""
    message: Generate | Score

    @property
    def sampling(self) -> SamplingParams:
        """Of a gen."""
        if isinstance(self.message, Score):
            raise ProgramError(f"{self.name!r} is a select, it has no sampling arguments")
        return self.message.sampling

    @property
    def choices(self) -> tuple[str, ...]:
        """Of a select; () for a gen."""
        return self.message.choices if isinstance(self.message, Score) else ()


Script: TypeAlias = "str | Answer | Exception | Mapping[str, float] | tuple[Any, ...] | list[Any] | Callable[[Request], Any]"
"""What to answer: a text; an Answer; an exception to fail with; a callable that is given the Request; a list, used one by one; a tuple of n
texts for a gen with n > 1. For a select: the choice to win, or {choice: log-probability of each of its tokens}."""


class _BrokenOff(Exception):
    def __init__(self, finished: Finished, failure: Exception) -> None:
        self.finished = finished
        self.failure = failure


class ScriptedBackend:
    """Answers gens and selects from a script; a `Backend`.

    A request's script is found by its variable's name in `answers`, else by the first regex of `by_prompt` that is found in the prompt,
    else it is `default`. Without one the request fails with a ProgramError that says so, and so does an answer that breaks its constraint
    (a regex or choice fully, a schema only as far as being JSON, calls of tools by name and as JSON).
    """

    def __init__(
        self,
        answers: Mapping[str, Script] | None = None,
        *,
        by_prompt: Mapping[str, Script] | None = None,
        default: Script | None = None,
        facts: Ready = _FACTS,
    ) -> None:
        self.requests: list[Request] = []
        """Every gen and select, in the order they were carried out."""
        self.sent: list[Any] = []
        """Every message, in the order it was sent."""
        self._answers: dict[str, Script] = dict(answers or {})
        self._by_prompt: dict[str, Script] = dict(by_prompt or {})
        self._default = default
        self._facts = facts
        self._num_used: dict[int, int] = {}  # id of a list script -> answers taken from it
        self._numbers = count(1)
        self._lock = threading.Lock()  # never held while a callback or a script runs
        self._branches = Miniature(facts.vocab_size)
        self._is_paused = False
        self._is_serving = False

    # ------------------------------------------------------------------------------------ for tests

    def pause(self) -> None:
        """Hold back answers."""
        self._is_paused = True

    def resume(self) -> None:
        """Deliver what was held back, on this thread."""
        self._is_paused = False
        self._serve()

    def trickle(self, num_words: int = 1) -> bool:
        """While paused, give the next words of one request, its answer with the last of them; the next call serves the next request.

        What does not stream is answered as a whole. False if no request was waiting.
        """
        with self._lock:
            if self._is_serving or not self._branches.due:
                return False
            self._is_serving = True
            branch = self._branches.due[0]
        job = cast("Job", branch.job)
        try:
            self._prepare(branch, job)
            job.give(num_words)
        finally:
            with self._lock:
                self._is_serving = False
                is_due = branch in self._branches.due  # else it was aborted meanwhile
                if is_due:
                    self._branches.due.remove(branch)
                if is_due and job.rest:
                    self._branches.due.append(branch)
        if is_due and not job.rest:
            self._finish(branch, job)
        return True

    @contextmanager
    def paused(self) -> Generator[ScriptedBackend]:
        """Answers are held back inside."""
        self.pause()
        try:
            yield self
        finally:
            self.resume()

    @property
    def open_branches(self) -> tuple[str, ...]:
        """Branches that were opened and not closed."""
        return tuple(self._branches.branches)

    @property
    def num_waiting(self) -> int:
        """Requests that could be answered now and are held back."""
        return len(self._branches.due)

    # ------------------------------------------------------------------------------------ Backend

    @property
    def facts(self) -> Ready:
        """Facts of the model that is not there."""
        return self._facts

    def new_id(self, prefix: str) -> str:
        """prefix#number: the variable's name is found in it again."""
        return f"{prefix}#{next(self._numbers)}"

    def send(self, message: OpenBranch | Append | Fork | CloseBranch | Abort) -> None:
        """Carry out a message, once what is before it on its branch is done. ProgramError for a branch that is not open."""
        aborted: Job | None = None
        with self._lock:
            self.sent.append(message)
            if isinstance(message, OpenBranch):
                self._branches.open(message)
            elif isinstance(message, Abort):
                aborted = self._branches.take_out(message.request)
            else:
                self._branches.enqueue(message)
        if aborted is not None:
            aborted.future.set_exception(Aborted("the request was aborted"))
        self._serve()

    def generate(
        self, message: Generate, on_delta: Callable[[Delta], None] | None = None
    ) -> Future[Finished]:
        """Answer a gen from the script; `on_delta` gets it word by word if the message says stream."""
        return self._submit(Job(message, Future(), on_delta))

    def score(self, message: Score) -> Future[Scored]:
        """Answer a select from the script."""
        return self._submit(Job(message, Future()))

    # ------------------------------------------------------------------------------------ answering

    def _submit(self, job: Job) -> Future[Any]:
        with self._lock:
            self.sent.append(job.message)
            self._branches.submit(job)
        self._serve()
        return job.future

    def _serve(self) -> None:
        """Answer what is due, in order. One thread at a time; the others leave it to that one, so nothing recurses."""
        while True:
            with self._lock:
                if self._is_serving or self._is_paused or not self._branches.due:
                    return
                self._is_serving = True
                branch = self._branches.due.popleft()
            try:
                self._answer(branch, cast("Job", branch.job))
            finally:
                with self._lock:
                    self._is_serving = False

    def _answer(self, branch: MiniBranch, job: Job) -> None:
        self._prepare(branch, job)
        job.give(len(job.rest))
        self._finish(branch, job)

    def _prepare(self, branch: MiniBranch, job: Job) -> None:
        """Find the answer, or the failure, and the words of a stream."""
        if job.reply is not None:
            return
        if branch.failure is not None:
            job.reply = branch.failure
            return
        finished: Finished | None = None
        try:
            job.reply = self._reply(branch, job.message)
            finished = job.reply if isinstance(job.reply, Finished) else None
        except _BrokenOff as broken:
            job.reply, finished = broken.failure, broken.finished
        except Exception as error:  # noqa: BLE001  the script's way to fail a request
            job.reply = error
        if finished is None or not isinstance(job.message, Generate) or not job.message.stream:
            return
        for index, output in enumerate(finished.outputs):
            for word in words(output.text):
                ids = self._branches.ids(word)
                job.rest.append(Delta(finished.request, index, word, ids))

    def _finish(self, branch: MiniBranch, job: Job) -> None:
        failure = job.reply if isinstance(job.reply, BaseException) else None
        with self._lock:
            self._branches.answered(branch, failure)
        if failure is not None:
            job.future.set_exception(failure)
        else:
            job.future.set_result(job.reply)

    def _reply(self, branch: MiniBranch, message: Generate | Score) -> Finished | Scored:
        request = Request(message.request.rpartition("#")[0], branch.text, message)
        self.requests.append(request)
        script = self._resolve(self._find(request), request)
        if isinstance(message, Score):
            return self._scored(request, message, script, branch)
        return self._finished(request, message, script, branch)

    def _find(self, request: Request) -> Script:
        if isinstance(request.message, Score) and request.message.branch is None:
            return dict.fromkeys(request.message.choices, _ALONE)
        if request.name in self._answers:
            return self._answers[request.name]
        for pattern, script in self._by_prompt.items():
            if re.search(pattern, request.prompt):
                return script
        if self._default is not None:
            return self._default
        end = request.prompt[-60:]
        raise ProgramError(
            f"no scripted answer for {request.name!r}", hint=f"Its prompt ends {end!r}"
        )

    def _resolve(self, script: Any, request: Request) -> Any:
        if isinstance(script, list):
            answers = cast("list[Any]", script)
            num_used = self._num_used.get(id(answers), 0)
            if num_used >= len(answers):
                raise ProgramError(
                    f"all {len(answers)} scripted answers of {request.name!r} are used"
                )
            self._num_used[id(answers)] = num_used + 1
            return self._resolve(answers[num_used], request)
        if isinstance(script, Exception):
            raise script
        return self._resolve(script(request), request) if callable(script) else script

    def _finished(
        self, request: Request, message: Generate, script: Any, branch: MiniBranch
    ) -> Finished:
        num = message.sampling.n
        texts = cast("tuple[Any, ...]", script) if isinstance(script, tuple) else (script,) * num
        if len(texts) != num:
            raise ProgramError(f"{len(texts)} scripted answers for {request.name!r} with n={num}")
        outputs = tuple(self._output(request.name, text, message.constraint) for text in texts)
        with self._lock:
            usage = self._branches.compute(branch, sum(len(o.token_ids) for o in outputs))
            self._branches.extend(branch, outputs[0].text)
        finished = Finished(message.request, outputs, usage, message.sampling.seed or 0)
        failure = next((t.failure for t in texts if isinstance(t, Answer) and t.failure), None)
        if failure is not None:
            raise _BrokenOff(finished, failure)
        return finished

    def _output(self, name: str, scripted: Any, constraint: Spec | None) -> Output:
        answer = scripted if isinstance(scripted, Answer) else Answer(scripted)
        if not isinstance(answer.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ProgramError(f"the scripted answer for {name!r} is {answer.text!r}, not a text")
        is_complete = answer.finish_reason == "stop" and answer.failure is None
        if is_complete and not satisfies(answer.text, constraint):
            raise ProgramError(
                f"the scripted {answer.text!r} for {name!r} breaks {constraint!r:.200}"
            )
        return Output(
            answer.text,
            self._branches.ids(answer.text),
            answer.finish_reason,
            logprobs=answer.logprobs,
            grammar_complete=None if constraint is None else is_complete,
        )

    def _scored(self, request: Request, message: Score, script: Any, branch: MiniBranch) -> Scored:
        choices = message.choices
        if isinstance(script, str):
            if script not in choices:
                raise ProgramError(
                    f"scripted {script!r} is no choice of {request.name!r}: {choices}"
                )
            script = {choice: _WON if choice == script else _LOST for choice in choices}
        each = cast("Mapping[str, float]", script)
        token_ids = tuple(self._branches.ids(choice) for choice in choices)
        pairs = zip(choices, token_ids, strict=True)
        logprobs = tuple((float(each[choice]),) * len(ids) for choice, ids in pairs)
        with self._lock:
            usage = self._branches.compute(branch, 0)
        return Scored(message.request, token_ids, logprobs, usage)
