"""A process that answers one question after the other and can be ended in the middle of one: for code that may hang or die.

Owns the process and the deadlines. Knows nothing of the questions. A deadline counts the process's own processor time, as the compile
worker's does, so that a busy machine makes no fault; ten times that on the clock ends it too. The answering function lives at the top of
a module, so that it can be named to the process.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import psutil

START_S = 60.0  # a fresh process imports first
WALL_LIMIT = 10  # times the deadline


class NoAnswerError(Exception):
    """The process was ended at the deadline, or ended itself; another one stands ready. The text says which."""


Say = Callable[[Any], None]


def _serve(end: Connection, answer: Callable[[Any, Say], Any], max_memory_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (max_memory_bytes, max_memory_bytes))
    while True:
        question = end.recv()
        try:
            result = answer(question, end.send)
        except Exception:  # noqa: BLE001 - told to the one who asked
            result = RuntimeError(traceback.format_exc(limit=-4))
        end.send(result)


class KillableProcess:
    """Runs `answer(question, say)`. What it says on the way is received before the answer, with a deadline each."""

    def __init__(self, answer: Callable[[Any, Say], Any], max_memory_bytes: int = 6 << 30) -> None:
        self._answer = answer
        self._max_memory_bytes = max_memory_bytes
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._end, other = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(other, self._answer, self._max_memory_bytes), daemon=True
        )
        self._process.start()
        other.close()
        self._is_warm = False

    def ask(self, question: Any, deadline_s: float) -> Any:
        """The first thing said, or the answer. An error that the function raised is raised as RuntimeError."""
        self._end.send(question)
        return self.receive(deadline_s)

    def receive(self, deadline_s: float) -> Any:
        """The next thing said, or the answer."""
        try:
            if not self._is_told_within(deadline_s if self._is_warm else deadline_s + START_S):
                self.stop()
                self._start()
                raise NoAnswerError("no answer in time")
            result = self._end.recv()
        except (EOFError, OSError):
            self._process.join(5)
            code = self._process.exitcode
            self._start()
            raise NoAnswerError(f"the process ended with {code}") from None
        self._is_warm = True
        if isinstance(result, RuntimeError):
            raise result
        return result

    def _is_told_within(self, deadline_s: float) -> bool:
        end_used_s, end_s = self._used_s() + deadline_s, time.monotonic() + WALL_LIMIT * deadline_s
        while not self._end.poll(max(end_used_s - self._used_s(), 0.01)):
            if self._used_s() >= end_used_s or time.monotonic() >= end_s:
                return False
        return True

    def _used_s(self) -> float:
        """Processor time of the process; one that has ended has none, and tells by its closed end."""
        try:
            used = psutil.Process(self._process.pid).cpu_times()
        except psutil.NoSuchProcess:
            return 0.0
        return used.user + used.system

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._end.close()
