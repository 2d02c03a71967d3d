"""One child process: started, listened to, and taken leave of. Owns the process, its stderr and the words for its end.

Knows no message, and not what the child does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Sequence

from .process_watch import ProcessWatch

STDERR_BYTES = 16384  # the end of it is kept
SHOWN_LINES = 12


class Child:
    """A running child. `on_exit(child)` is called once on the loop when it ended by itself; `close` is silent."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        command: Sequence[str],
        environment: dict[str, str],
        on_exit: Callable[[Child], None],
    ) -> None:
        self.name = name
        self._loop = loop
        self._on_exit = on_exit
        self._stderr = b""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )
        assert self._process.stderr is not None
        self._pipe = self._process.stderr.fileno()
        os.set_blocking(self._pipe, False)
        loop.add_reader(self._pipe, self._read_stderr)
        self._watch = ProcessWatch(loop, self._process.pid, self._died)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def stderr(self) -> str:
        """The end of what it wrote to stderr."""
        return self._stderr.decode("utf-8", errors="replace")

    def ending(self) -> str:
        """How it ended, for a message."""
        status = self._process.poll()
        who = f"the {self.name} process (pid {self.pid})"
        if status is None:
            return f"{who} is running"
        if status < 0:
            return f"{who} was killed by signal {-status} ({signal.Signals(-status).name})"
        return f"{who} ended with exit status {status}"

    def last_words(self) -> str:
        """The last lines of stderr, indented, or nothing."""
        lines = self.stderr.rstrip().splitlines()[-SHOWN_LINES:]
        return "".join(f"\n    {line}" for line in lines)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        self._process.terminate()

    def close(self, timeout_s: float) -> None:
        """Wait until it ended, kill it when that takes longer, and reap it."""
        self._watch.cancel()
        try:
            self._process.wait(max(timeout_s, 0.0))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close_pipe()

    def _died(self) -> None:
        self._process.wait()
        self._read_stderr()
        self._close_pipe()
        self._on_exit(self)

    def _read_stderr(self) -> None:
        while True:
            try:
                data = os.read(self._pipe, 65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._loop.remove_reader(self._pipe)
                return
            self._stderr = (self._stderr + data)[-STDERR_BYTES:]

    def _close_pipe(self) -> None:
        if self._process.stderr is not None and not self._process.stderr.closed:
            self._loop.remove_reader(self._pipe)
            self._process.stderr.close()
