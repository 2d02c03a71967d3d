"""A run written down, and played again without a model: RecordingBackend and ReplayBackend.

    with radixlm.RecordingBackend(engine, "run.jsonl") as backend:
        program.run("...", backend=backend)
    program.run("...", backend=radixlm.ReplayBackend("run.jsonl"))     # same texts, deltas, scores, usage, errors

The file is JSON lines: a head (format, version, the model's facts), then one line a request with what was asked (the content of its branch,
sampling arguments, constraint) and what came (text by text as it was streamed, outputs, scores, usage, or the error). A replay finds an answer by
what is asked; equal requests get their answers in the order in which they were recorded, so programs may run at the same time. A request that
was not recorded raises ProgramError with the nearest recorded one and where they differ.

Owns what is recorded and how an answer is found; the file is `recorded.py`'s. Must not know sockets or models.
"""

from __future__ import annotations

import copy
import json
import os
import threading
from collections import deque
from concurrent.futures import Future
from difflib import SequenceMatcher
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from ..errors import Aborted, ConfigError, ProgramError, RadixError, ServiceError
from ..runtime.messages import Abort, Delta, Finished, WireError
from .backend import as_backend, speculating
from .recorded import Entry, Writer, load, without
from .transcripts import Asked, Transcripts, key_of, prompt_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..runtime.messages import (
        Append,
        CloseBranch,
        Fork,
        Generate,
        OpenBranch,
        Ready,
        Score,
        Scored,
    )
    from .backend import Backend, HasBackend

    Notice = OpenBranch | Append | Fork | CloseBranch | Abort
    OnDelta = Callable[[Delta], None]

_NUM_SHOWN = 60  # characters around a difference
_MAX_COMPARED = 2000  # characters of a prompt's end
_MAX_CANDIDATES = 200  # recorded requests that are compared closely


class RecordingBackend:
    """A Backend that passes everything to another one and writes what was asked and answered to a file. Close it, or use `with`.

    An existing file is replaced. The line of a request is written when its answer comes; a request that was aborted is not recorded.
    """

    def __init__(self, backend: Backend | HasBackend, path: str | os.PathLike[str]) -> None:
        self._backend = as_backend(backend)
        self._lock = threading.Lock()
        self._transcripts = Transcripts()
        self._orders = count(1)
        self._writer = Writer(path, self._backend.facts)

    @property
    def facts(self) -> Ready:
        """Facts of the model."""
        return self._backend.facts

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request."""
        return self._backend.new_id(prefix)

    def send(self, message: Notice) -> None:
        """Pass a message on."""
        if not isinstance(message, Abort):
            with self._lock:
                self._transcripts.send(message)
        self._backend.send(message)

    def generate(self, message: Generate, on_delta: OnDelta | None = None) -> Future[Finished]:
        """Pass a gen on and record what comes."""
        deltas: list[Delta] = []

        def give(delta: Delta) -> None:
            deltas.append(delta)
            if on_delta is not None:
                on_delta(delta)

        asked, order = self._ask(message)
        future = self._backend.generate(message, give if message.stream else on_delta)
        future.add_done_callback(partial(self._generated, asked, order, deltas))
        return future

    def score(self, message: Score) -> Future[Scored]:
        """Pass a select on and record what comes."""
        asked, order = self._ask(message)
        future = self._backend.score(message)
        future.add_done_callback(partial(self._scored, asked, order))
        return future

    def speculating(self, num_tokens: int) -> RecordingBackend:
        """The same recording for a program whose calls may write ahead (see `lang.backend.speculating`)."""
        view = copy.copy(self)
        view._backend = speculating(self._backend, num_tokens)
        return view

    def close(self) -> None:
        """Close the file. The inner backend stays open; what it answers later is not recorded. ConfigError if something could not be written."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self.close()
        except ConfigError as own:
            if error is None:
                raise
            error.add_note(str(own))  # what went wrong first is told first

    def _ask(self, message: Generate | Score) -> tuple[Asked, int]:
        with self._lock:
            return self._transcripts.ask(message), next(self._orders)

    def _generated(
        self, asked: Asked, order: int, deltas: list[Delta], future: Future[Finished]
    ) -> None:
        if not future.cancelled() and future.exception() is None:
            asked.slot.text = future.result().outputs[0].text
        self._record(asked, order, deltas, future)

    def _scored(self, asked: Asked, order: int, future: Future[Scored]) -> None:
        self._record(asked, order, [], future)

    def _record(self, asked: Asked, order: int, deltas: list[Delta], future: Future[Any]) -> None:
        if future.cancelled() or not asked.is_known:
            return  # what failed because something before it failed, fails so again
        if isinstance(future.exception(), Aborted):
            return
        self._writer.add(partial(_line, asked, order, deltas, future))


def _line(asked: Asked, order: int, deltas: list[Delta], future: Future[Any]) -> dict[str, Any]:
    line: dict[str, Any] = {"order": order, "asked": asked.form()}
    if deltas:
        line["deltas"] = [without(delta, "request") for delta in deltas]
    error = future.exception()
    if error is None:
        line["answer"] = without(future.result(), "request")
    else:
        radix = error if isinstance(error, RadixError) else ServiceError(repr(error))
        line["error"] = msgspec.to_builtins(WireError.of(radix))
    return line


class ReplayBackend:
    """A Backend that answers from a recording, at once and on the calling thread. ConfigError for a file that is none."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._lock = threading.Lock()
        self._transcripts = Transcripts()
        self._numbers = count(1)
        self._facts, self._entries = load(self._path)
        self._answers: dict[str, deque[Entry]] = {}
        for entry in sorted(self._entries, key=lambda entry: entry.order):
            self._answers.setdefault(key_of(entry.asked), deque()).append(entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Nothing is open; as of the backends that it stands for."""

    @property
    def facts(self) -> Ready:
        """Facts of the model that was recorded."""
        return self._facts

    @property
    def num_left(self) -> int:
        """Recorded requests that were not asked again yet."""
        return sum(map(len, self._answers.values()))

    @property
    def open_branches(self) -> tuple[str, ...]:
        """Branches not closed yet."""
        return self._transcripts.names

    def new_id(self, prefix: str) -> str:
        """A name for a branch or request."""
        return f"{prefix}#{next(self._numbers)}"

    def send(self, message: Notice) -> None:
        """Take a message in; there is nothing to abort."""
        if not isinstance(message, Abort):
            with self._lock:
                self._transcripts.send(message)

    def generate(self, message: Generate, on_delta: OnDelta | None = None) -> Future[Finished]:
        """The recorded answer; streamed as it was, or at once if it was not."""
        future: Future[Finished] = Future()
        try:
            asked, entry = self._find(message)
            deltas = entry.deltas_to(message.request)
            if isinstance(entry.answer, Finished):
                asked.slot.text = entry.answer.outputs[0].text
                deltas = deltas or [
                    Delta(message.request, index, output.text)
                    for index, output in enumerate(entry.answer.outputs)
                ]
            if on_delta is not None and message.stream:
                for delta in deltas:
                    on_delta(delta)
            future.set_result(cast("Finished", entry.answer_to(message.request)))
        except Exception as error:  # noqa: BLE001 - it is the request's answer
            future.set_exception(error)
        return future

    def score(self, message: Score) -> Future[Scored]:
        """The recorded scores."""
        future: Future[Scored] = Future()
        try:
            _, entry = self._find(message)
            future.set_result(cast("Scored", entry.answer_to(message.request)))
        except Exception as error:  # noqa: BLE001 - it is the request's answer
            future.set_exception(error)
        return future

    def _find(self, message: Generate | Score) -> tuple[Asked, Entry]:
        with self._lock:
            asked = self._transcripts.ask(message)
            if not asked.is_known:
                raise Aborted("the request before it on the branch has failed")
            form = json.loads(json.dumps(asked.form()))
            waiting = self._answers.get(key_of(form))
            if waiting is None:
                raise self._unknown(form)
            if not waiting:
                raise ProgramError(
                    f"{form['name']!r} was asked more often than {self._path} holds answers",
                    hint=f"Its prompt ends {prompt_text(form)[-_NUM_SHOWN:]!r}",
                )
            return asked, waiting.popleft()

    def _unknown(self, form: dict[str, Any]) -> ProgramError:
        nearest = _nearest(form, [entry.asked for entry in self._entries])
        hint = "The recording is empty" if nearest is None else _difference(form, nearest)
        return ProgramError(
            f"{form['name']!r} was not recorded in {self._path}: its prompt ends"
            f" {prompt_text(form)[-_NUM_SHOWN:]!r}",
            hint=hint,
        )


# ---------------------------------------------------------------------------------------------- did you mean


def _nearest(form: dict[str, Any], others: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The recorded request most like `form`: the same kind, an alike end of the prompt."""
    if not others:
        return None
    text = prompt_text(form)

    def rough(other: dict[str, Any]) -> tuple[bool, bool, int]:
        theirs = prompt_text(other)
        shared = _num_shared(text, theirs)
        return (other["kind"] == form["kind"], other["name"] == form["name"], shared)

    candidates = sorted(others, key=rough, reverse=True)[:_MAX_CANDIDATES]

    def close(other: dict[str, Any]) -> tuple[bool, float]:
        theirs = prompt_text(other)[-_MAX_COMPARED:]
        ratio = SequenceMatcher(None, text[-_MAX_COMPARED:], theirs, autojunk=False).quick_ratio()
        return (other["kind"] == form["kind"], ratio)

    return max(candidates, key=close)


def _difference(form: dict[str, Any], other: dict[str, Any]) -> str:
    """Where two requests differ first, for a person."""
    mine, theirs = prompt_text(form), prompt_text(other)
    if mine != theirs:
        at = _num_shared(mine, theirs)
        start = max(at - _NUM_SHOWN // 2, 0)
        shown = (mine[start : at + _NUM_SHOWN], theirs[start : at + _NUM_SHOWN])
        return (
            f"The nearest recorded prompt, of {other['name']!r}, differs from character {at} on:"
            f" here {shown[0]!r}, recorded {shown[1]!r}"
        )
    for name in ("kind", "namespace", "strict_text", "choices", "constraint", "sampling"):
        if form.get(name) == other.get(name):
            continue
        here, recorded = form.get(name), other.get(name)
        if isinstance(here, dict) and isinstance(recorded, dict):
            return _of_dicts(name, cast("dict[str, Any]", here), cast("dict[str, Any]", recorded))
        return f"The same prompt was recorded with {name}={recorded!r}, here it is {here!r}"
    return "The same request was recorded"


def _of_dicts(name: str, here: dict[str, Any], recorded: dict[str, Any]) -> str:
    key = next(key for key in [*here, *recorded] if here.get(key) != recorded.get(key))
    told = f"{name}.{key}"
    return f"The same prompt was recorded with {told}={recorded.get(key)!r}, here it is {here.get(key)!r}"


def _num_shared(mine: str, theirs: str) -> int:
    """Characters that two texts begin with alike."""
    end = min(len(mine), len(theirs))
    return next((i for i in range(end) if mine[i] != theirs[i]), end)
