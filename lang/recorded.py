"""The file of a recording: how it is written, and how it is read back with every fault at its line.

    {"format": "radixlm-recording", "version": 1, "facts": {...}}
    {"order": 1, "asked": {...}, "deltas": [...], "answer": {...}}        # or "error" instead of "answer"

Owns the form of its lines. Must not know backends, nor how an answer is found.
"""

from __future__ import annotations

import json
import math
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec

from ..errors import ConfigError
from ..runtime.messages import Delta, Finished, Ready, Scored, WireError

if TYPE_CHECKING:
    from collections.abc import Callable

FORMAT = "radixlm-recording"
VERSION = 1
T = TypeVar("T")


class Writer:
    """A recording that is being written, from any thread. What exists at `path` is replaced. ConfigError if it cannot be opened."""

    def __init__(self, path: str | os.PathLike[str], facts: Ready) -> None:
        self._path = os.fspath(path)
        self._lock = threading.Lock()
        self._failure: Exception | None = None
        try:
            self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115  closed by `close`
        except OSError as error:
            message = f"{self._path} cannot be written: {error.strerror}"
            raise ConfigError(message, place="path") from None
        head = {"format": FORMAT, "version": VERSION, "facts": msgspec.to_builtins(facts)}
        self.add(lambda: head)

    def add(self, line: Callable[[], dict[str, Any]]) -> None:
        """Write one line, unless it is closed. Never raises: answers come where nobody would see it. After a failure nothing more is written."""
        with self._lock:
            if self._file.closed or self._failure is not None:
                return
            try:
                self._file.write(json.dumps(line()) + "\n")
                self._file.flush()
            except Exception as error:  # noqa: BLE001  raised by `close`
                self._failure = error

    def close(self) -> None:
        """End the file. ConfigError, once, if something could not be written."""
        with self._lock:
            try:
                self._file.close()
            except OSError as error:  # the rest of what failed before, or a disk that tells late
                self._failure = self._failure or error
            failure, self._failure = self._failure, None
        if failure is not None:
            raise ConfigError(
                f"{self._path} is not whole: {failure}",
                place="path",
                hint="What was answered after that is not recorded; record the run again",
            ) from failure


@dataclass(frozen=True, slots=True)
class Entry:
    """One request of a recording, and what came."""

    order: int
    asked: dict[str, Any]
    deltas: tuple[Delta, ...]
    answer: Finished | Scored | None
    error: WireError | None

    def deltas_to(self, request: str) -> list[Delta]:
        """The text as it was streamed, as an answer to a request of this name."""
        return [msgspec.structs.replace(delta, request=request) for delta in self.deltas]

    def answer_to(self, request: str) -> Finished | Scored:
        """The answer to a request of this name. Raises the recorded error."""
        if self.answer is None:
            raise cast("WireError", self.error).to_exception()
        return msgspec.structs.replace(self.answer, request=request)


def load(path: str) -> tuple[Ready, list[Entry]]:
    """The facts and entries of a recording, in the order of its lines. ConfigError, with the line, for a file that is none or is damaged."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", place="path") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no recording", place="path") from None
    plain = [(number, _json_of(path, number, line)) for number, line in enumerate(lines, 1) if line]
    head = cast("dict[str, Any]", plain[0][1]) if plain and isinstance(plain[0][1], dict) else {}
    if head.get("format") != FORMAT:
        raise ConfigError(f"{path} is no recording", place="line 1")
    if head.get("version") != VERSION:
        raise ConfigError(
            f"{path} is a recording of version {head.get('version')}, this reads {VERSION}",
            place="line 1",
        )
    facts = _checked(path, plain[0][0], lambda: msgspec.convert(head, _Head).facts)
    return facts, [_checked(path, number, lambda line=line: _entry(line)) for number, line in plain[1:]]  # fmt: skip


def without(message: msgspec.Struct, name: str) -> dict[str, Any]:
    """A message as data, without its name; an infinite score as text, which JSON lacks."""
    plain = msgspec.to_builtins(message, str_keys=True)
    plain.pop(name)
    if isinstance(message, Scored):
        plain["logprobs"] = [
            [value if math.isfinite(value) else str(value) for value in values]
            for values in message.logprobs
        ]
    return plain


class _Head(msgspec.Struct):
    facts: Ready


class _Line(msgspec.Struct):
    order: int
    asked: dict[str, Any]
    deltas: list[dict[str, Any]] = []
    answer: dict[str, Any] | None = None
    error: WireError | None = None


class _Asked(msgspec.Struct):
    """What a request is found and shown by."""

    kind: Literal["gen", "select"]
    name: str
    prompt: list[str | dict[str, Any]]
    choices: list[str] = []


def _json_of(path: str, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ConfigError(f"{path} is no recording", place=f"line {number}") from None


def _checked(path: str, number: int, read: Callable[[], T]) -> T:
    try:
        return read()
    except (ValueError, TypeError, RecursionError) as error:  # msgspec's are ValueErrors
        raise ConfigError(f"{path} is damaged: {error}", place=f"line {number}") from None


def _entry(plain: Any) -> Entry:
    line = msgspec.convert(plain, _Line)
    asked = msgspec.convert(line.asked, _Asked)
    if (line.answer is None) is (line.error is None):
        raise ValueError("a request has either an answer or an error")
    deltas = tuple(_message(delta, Delta) for delta in line.deltas)
    answer: Finished | Scored | None = None
    if line.answer is not None and asked.kind == "gen":
        answer = _message(line.answer, Finished)
        if not answer.outputs:
            raise ValueError("the answer has no output")
    elif line.answer is not None:
        answer = _message(_with_scores(line.answer), Scored)
        if not len(asked.choices) == len(answer.logprobs) == len(answer.token_ids):
            raise ValueError("the answer has not one score for each choice")
    return Entry(line.order, line.asked, deltas, answer, line.error)


def _message(plain: dict[str, Any], kind: type[T]) -> T:
    return msgspec.convert({**plain, "request": ""}, kind, str_keys=True)


def _with_scores(plain: dict[str, Any]) -> dict[str, Any]:
    scores = msgspec.convert(plain.get("logprobs"), list[list[float | str]])
    return {**plain, "logprobs": [[float(score) for score in own] for own in scores]}
