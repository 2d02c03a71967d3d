"""The gateway's side of the compile worker: a queue of jobs, one worker at a time, and what to do when it ends.

    job ended by SIGPROF (its processor time is over)           -> Refused(GrammarError naming the deadline)
    job ended at the wall-clock limit (the machine may be busy)    -> Refused(ServiceError naming the deadline)
    worker died otherwise                                          -> Refused(ServiceError), a new worker, next job

Waiting in the queue and starting a worker do not count against a job's limits. Owns the worker process and its socket. Knows nothing of
what a grammar is.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ..errors import GrammarError, RadixError, ServiceError
from . import messages as m
from .compile_worker import READY
from .process_watch import ProcessWatch
from .transport import Frames, LoopSocket, Transport

MAX_FAILED_STARTS = 3


class CompileSupervisor:
    """Compiles jobs in order. `command(address)` is the worker's command line, `address_of(n)` where the n-th worker meets us."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        transport: Transport,
        *,
        command: Callable[[str], list[str]],
        environment: dict[str, str],
        address_of: Callable[[int], str],
        on_answer: Callable[[m.WorkerMessage], None],
        cpu_s: float,
        wall_s: float,
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._command = command
        self._environment = environment
        self._address_of = address_of
        self._on_answer = on_answer
        self._cpu_s = cpu_s
        self._wall_s = wall_s
        self._jobs: deque[m.CompileJob] = deque()
        self._job: m.CompileJob | None = None  # at the worker
        self._worker: subprocess.Popen[bytes] | None = None
        self._socket: LoopSocket | None = None
        self._watch: ProcessWatch | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_ready = False
        self._is_overdue = False
        self._is_closed = False
        self._num_workers = 0
        self._num_failed_starts = 0

    def start_ahead(self) -> None:
        """Start a worker ahead of the first job, if there is none."""
        if self._worker is None and not self._is_closed:
            self.start()

    def start(self) -> None:
        """Start a worker."""
        self._num_workers += 1
        address = self._address_of(self._num_workers)
        self._is_ready = self._is_overdue = False
        self._socket = LoopSocket(
            self._loop, self._transport.pair(address, bind=True), self._on_frames
        )
        try:
            self._worker = subprocess.Popen(
                self._command(address),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=self._environment,
            )
            self._watch = ProcessWatch(self._loop, self._worker.pid, self._on_worker_death)
        except OSError as error:
            self._let_go()
            self._refuse_waiting(ServiceError(f"the compile worker cannot be started: {error}"))

    def submit(self, job: m.CompileJob) -> None:
        """Queue a job; its answer comes by `on_answer`."""
        self._jobs.append(job)
        self.start_ahead()
        self._send_next()

    def close(self) -> None:
        """End the worker and forget the jobs."""
        self._is_closed = True
        self._jobs.clear()
        self._let_go()

    def _send_next(self) -> None:
        if self._job is None and self._jobs and self._is_ready and self._socket is not None:
            self._job = self._jobs.popleft()
            data, max_bytes = m.encode(self._job), self._transport.max_message_bytes
            if len(data) > max_bytes:
                error = GrammarError(
                    f"the constraint makes a message of {len(data)} bytes, a message holds {max_bytes}"
                )
                self._answer(self._refusal(error))
                self._loop.call_soon(self._send_next)
                return
            self._socket.send(data)
            self._timer = self._loop.call_later(self._wall_s, self._on_overdue)

    def _on_frames(self, frames: Frames) -> None:
        if frames[0] == READY:
            self._is_ready = True
            self._num_failed_starts = 0
        else:
            try:
                answer = m.worker_decoder.decode(frames[0])
            except (msgspec.DecodeError, ValueError) as error:
                answer = self._refusal(
                    ServiceError(f"the compile worker's answer was not understood: {error}")
                )
            self._answer(answer)
        self._send_next()

    def _answer(self, answer: m.WorkerMessage | None) -> None:
        self._job = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if answer is not None:
            self._on_answer(answer)

    def _refusal(self, error: RadixError) -> m.Refused | None:
        return (
            m.Refused(self._job.program, m.WireError.of(error)) if self._job is not None else None
        )

    def _on_overdue(self) -> None:
        self._is_overdue = True
        if self._worker is not None:
            self._worker.kill()

    def _on_worker_death(self) -> None:
        if self._socket is not None:
            self._socket.drain()  # an answer sent just before the end counts
        status = self._let_go()
        if not self._is_ready:
            self._num_failed_starts += 1
        self._answer(self._refusal(self._why(status)))
        if self._num_failed_starts >= MAX_FAILED_STARTS:
            self._num_failed_starts = 0
            self._refuse_waiting(
                ServiceError(f"the compile worker does not start ({_ending(status)})")
            )
        elif not self._is_closed:
            self.start()

    def _refuse_waiting(self, error: RadixError) -> None:
        jobs, self._jobs = self._jobs, deque[m.CompileJob]()
        for job in jobs:
            self._on_answer(m.Refused(job.program, m.WireError.of(error)))

    def _why(self, status: int | None) -> RadixError:
        if self._is_overdue:
            return ServiceError(
                f"the constraint was not compiled within its deadline of {self._wall_s:g} s (wall clock)",
                hint="Try again when the machine is less busy",
            )
        if status == -signal.SIGPROF:
            return GrammarError(
                f"the constraint was not compiled within its deadline of {self._cpu_s:g} s of processor time",
                hint="Simplify the constraint, or raise compile_cpu_s",
            )
        return ServiceError(
            f"the compile worker ended while it compiled the constraint ({_ending(status)})"
        )

    def _let_go(self) -> int | None:
        """Reap the worker and close its socket; its exit status (negative: the signal)."""
        if self._watch is not None:
            self._watch.cancel()
        if self._socket is not None:
            self._socket.close()
        worker, self._worker, self._socket, self._watch = self._worker, None, None, None
        if worker is None:
            return None
        worker.kill()
        return worker.wait()


def _ending(status: Any) -> str:
    if isinstance(status, int) and status < 0:
        return f"signal {-status}"
    return f"exit status {status}"
