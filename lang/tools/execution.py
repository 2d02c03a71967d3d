"""Carrying out calls beside a program that waits: plain functions on a bounded pool of threads, async ones on the program's own loop.

Owns the pool. A program under `run_batch` or `arun` that waits for a tool lets the others go on, so tools may block. A thread ends when it
had nothing to do for a while, and never keeps the interpreter alive. Must not know prompts or what is done with a result.

- What a tool calls on its pool thread (an agent of its own, say) is carried out on that thread: a full pool cannot wait for itself.
- An async tool runs on the loop that `arun` was called on; without one, on a loop of its own in a thread of the pool.
- A thread cannot be stopped: a call that takes too long is answered for, and its late result is dropped. An async one is cancelled.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Coroutine

    from .calls import Call

MAX_THREADS = 16
_IDLE_S = 10.0

Work = tuple["Future[Any]", "Callable[[], Any]"]


class ToolPool:
    """At most `max_threads` threads, made when there is something to do."""

    shared: ClassVar[ToolPool]
    """The process's own: threads are, like the default backend, a thing of the process."""

    def __init__(self, max_threads: int = MAX_THREADS, idle_s: float = _IDLE_S) -> None:
        self._max_threads = max_threads
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._num_threads = 0
        self._num_free = 0  # threads that wait for work, less the work that waits for them

    @property
    def num_threads(self) -> int:
        """Threads that live now."""
        return self._num_threads

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        """The promise of what `work` returns or raises. On a thread of this pool: already kept."""
        future: Future[Any] = Future()
        bound = partial(contextvars.copy_context().run, work)
        if isinstance(threading.current_thread(), _Worker):
            _carry_out(future, bound)
            return future
        with self._lock:
            self._waiting.put((future, bound))
            self._num_free -= 1
            if self._num_free < 0 and self._num_threads < self._max_threads:
                self._num_threads += 1
                self._num_free += 1
                _Worker(self._serve).start()
        return future

    def _serve(self) -> None:
        while True:
            try:
                future, work = self._waiting.get(timeout=self._idle_s)
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._num_threads -= 1
                        self._num_free -= 1
                        return
                continue
            _carry_out(future, work)
            with self._lock:
                self._num_free += 1


ToolPool.shared = ToolPool()


class _Worker(threading.Thread):
    def __init__(self, serve: Callable[[], None]) -> None:
        super().__init__(target=serve, name="radixlm-tool", daemon=True)


def start_call(call: Call, loop: AbstractEventLoop | None, pool: ToolPool) -> Future[Any]:
    """Begin a call; the promise of its result. `loop`: the running loop of a program that is awaited."""
    if not call.tool.is_async:
        return pool.submit(call)
    if loop is not None:
        return asyncio.run_coroutine_threadsafe(_awaited(call), loop)
    return pool.submit(partial(_run, call))


def _run(call: Call) -> Any:
    return asyncio.run(_awaited(call))


async def _awaited(call: Call) -> Any:
    result: Coroutine[Any, Any, Any] = call()
    return await result


def _carry_out(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  raised, or told, where the result is wanted
        future.set_exception(error)
    else:
        future.set_result(result)
