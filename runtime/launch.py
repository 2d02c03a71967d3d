"""Starts the processes of one engine, waits until they serve, and acts when one of them ends.

    this process (loop thread) --+-- python -m radixlm gateway --- python -m radixlm compile-worker
                                 `-- python -m radixlm engine

Gateway and engine start at the same time; the runtime is ready when the gateway answers Hello, which it does once the engine is. Children
are started from the loop thread, because PDEATHSIG follows the thread: they end with it, and so with a killed parent.

When the engine ends, the gateway fails what it was working on; here it is restarted (a new epoch), or everything is failed for good, or
this process leaves with status 70, as the config says. The gateway holds the branches, so its end always fails what is pending.
Owns the processes, the socket folder and the loop thread.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from ..errors import EngineDied, RadixError, ServiceError, TimedOut
from .children import Child
from .client import Client
from .config import EngineConfig, child_environment
from .loops import new_event_loop
from .roles import error_in
from .socket_folder import SocketFolder, remove_abandoned
from .transport import Addresses, Transport

LAST_WORDS_S = 1.0  # for the tasks of the loop, at the end
EXIT_STATUS = 70  # EX_SOFTWARE of sysexits.h: the parent leaves because its engine died
log = logging.getLogger(__name__)

T = TypeVar("T")
Command = Callable[[str, EngineConfig, Path, int], list[str]]


def child_command(role: str, config: EngineConfig, folder: Path, epoch: int) -> list[str]:
    """The command line of a child. -P keeps the working directory out of its import path."""
    return [
        *(
            sys.executable,
            "-P",
            "-m",
            "radixlm",
            role,
            "--config",
            config.to_json(),
            "--folder",
            str(folder),
        ),
        *("--parent", str(os.getpid()), "--epoch", str(epoch)),
    ]


class Runtime:
    """All processes of one engine, and a client of them. Making one blocks until it serves, or raises why it does not."""

    def __init__(self, config: EngineConfig, command: Command = child_command) -> None:
        self.config = config
        self._command = command
        self._children: dict[str, Child] = {}
        self._epoch = 0
        self._restarts_s: deque[float] = deque()
        self._is_ending = False
        self._closing = threading.RLock()
        remove_abandoned(config.socket_dir)
        self._socket_folder = SocketFolder(config.socket_dir)
        self._folder = self._socket_folder.path
        self._loop = new_event_loop()
        self._transport = Transport(config.max_message_bytes)
        self.client = Client(self._loop, heartbeat_s=config.heartbeat_s)
        self._thread = threading.Thread(target=self._run_loop, name="radixlm-client", daemon=True)
        self._thread.start()
        self._at_exit = _close_at_exit(self)
        try:
            self._call(self._start)
            self.client.ready.result(config.start_timeout_s)
        except concurrent.futures.TimeoutError:
            state = "; ".join(
                child.ending() + child.last_words() for child in list(self._children.values())
            )
            self.close()
            raise TimedOut(
                f"the engine was not ready within {config.start_timeout_s:g} s: {state}"
            ) from None
        except BaseException:
            self.close()
            raise

    def pids(self) -> dict[str, int]:
        """The process ids of the children, by role."""
        return {role: child.pid for role, child in list(self._children.items())}

    def on_loop(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the client's loop thread, where answers arrive without a change of threads. It must not block."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, function: Callable[[], object]) -> None:
        """Call `function` on the loop thread, soon. Safe in a signal handler; nothing happens after `close`."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """End the children and the loop thread; pending requests fail. Safe to call twice, and from any thread but the loop's."""
        with self._closing:  # the second to come finds the loop thread gone
            self._close()

    def _close(self) -> None:
        if self._is_ending and not self._thread.is_alive():
            return
        atexit.unregister(self._at_exit)
        if self._thread.is_alive():
            try:
                self._call(self._stop, ServiceError("the engine was closed"))
                self._loop.call_soon_threadsafe(self._loop.stop)
            except RuntimeError:  # closed by another thread meanwhile
                pass
            self._thread.join()
        self._socket_folder.remove()

    # ------------------------------------------------------------------------------------------ loop thread

    def _run_loop(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._end_tasks()
            self._transport.close()
            self._loop.close()

    def _end_tasks(self) -> None:
        """Cancel what `on_loop` left running: a task that is never resumed would never put away what it holds."""
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=LAST_WORDS_S))

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Run `function` on the loop thread and wait for it."""
        done: concurrent.futures.Future[None] = concurrent.futures.Future()

        def run() -> None:
            try:
                function(*arguments)
                done.set_result(None)
            except BaseException as error:  # noqa: BLE001 - handed over to the waiting thread
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        done.result()

    def _start(self) -> None:
        self._start_child("gateway")
        self._start_child("engine")
        self.client.connect(self._transport, Addresses.within(self._folder).clients)

    def _start_child(self, role: str) -> None:
        command = self._command(role, self.config, self._folder, self._epoch)
        environment = child_environment(self.config.threads if role == "engine" else 1)
        self._children[role] = Child(self._loop, role, command, environment, self._on_exit)

    def _on_exit(self, child: Child) -> None:
        if self._is_ending or self._children.get(child.name) is not child:
            return
        del self._children[child.name]
        log.warning("%s%s", child.ending(), child.last_words())
        reported = error_in(child.stderr)
        error = (
            EngineDied(child.ending() + child.last_words(), hint="See the lines above")
            if child.last_words()
            else EngineDied(child.ending())
        )
        if not self.client.ready.done():
            self._give_up(reported or error)
        elif self.config.on_engine_death != "restart":
            self._give_up(error)
        elif not self._may_restart():
            times = f"{self.config.max_restarts} restarts within {self.config.restart_window_s:g} s"
            self._give_up(
                EngineDied(f"{error.message}; it is not restarted any more after {times}")
            )
        else:
            self._restart(child, error)

    def _may_restart(self) -> bool:
        now_s = time.monotonic()
        while self._restarts_s and self._restarts_s[0] < now_s - self.config.restart_window_s:
            self._restarts_s.popleft()
        if len(self._restarts_s) >= self.config.max_restarts:
            return False
        self._restarts_s.append(now_s)
        return True

    def _restart(self, child: Child, error: RadixError) -> None:
        self._epoch += 1
        if (
            child.name == "gateway"
        ):  # the branches are gone with it, and the engine announces itself only at its start
            self.client.fail_all(error, for_good=False)
            engine = self._children.pop("engine", None)
            if engine is not None:
                engine.terminate()
                engine.close(self.config.close_timeout_s)
            self._start_child("gateway")
        self._start_child("engine")

    def _give_up(self, error: RadixError) -> None:
        was_ready = self.client.ready.done()
        self._stop(error)
        if was_ready and self.config.on_engine_death == "exit":
            sys.stderr.write(f"radixlm: {error}\n")
            sys.stderr.flush()
            os._exit(EXIT_STATUS)

    def _stop(self, error: RadixError) -> None:
        """End everything but the loop; what is pending or comes later fails with `error`."""
        if self._is_ending:
            return
        self._is_ending = True
        self.client.disconnect()
        self.client.fail_all(error)
        children, self._children = list(self._children.values()), {}
        for child in children:
            child.terminate()
        deadline_s = time.monotonic() + self.config.close_timeout_s
        for child in children:
            child.close(deadline_s - time.monotonic())


def _close_at_exit(runtime: Runtime) -> Callable[[], None]:
    """Close `runtime` when the interpreter ends, without keeping it alive until then."""
    reference = weakref.ref(runtime)

    def close() -> None:
        found = reference()
        if found is not None:
            found.close()

    return atexit.register(close)
