"""The compile worker process: grammar specs in, compiled programs or located errors out. One job at a time, low priority.

The worker bounds itself: a timer of its own processor time (ITIMER_PROF) ends the process at the deadline, wherever it is, C code
included; an address-space limit turns runaway memory into an error. Its supervisor (`compile_supervisor`) sees the signal, answers the
job and starts another worker. Owns no cache. Must not import torch or a tokenizer.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from ..errors import GrammarError, RadixError, ServiceError
from . import messages as m
from .process_watch import leave_if_orphaned
from .transport import BlockingEnd, Transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..grammar.program import GrammarProgram
    from ..grammar.spec import Spec

    CompileSpec = Callable[[Spec, bytes], GrammarProgram]

READY = b""  # first frame of a worker: its imports are done, the clock of a job may start
NICENESS = 10
MAX_MEMORY_BYTES = 4 << 30
ENVELOPE_BYTES = 64  # of another message that carries the same program on


def run(address: str, cpu_s: float, max_message_bytes: int, parent_pid: int) -> None:
    """Serve jobs at `address` until the parent ends."""
    lower_own_priority()
    from ..grammar.compiler import compile_spec
    from ..grammar.spec import JsonSchema

    # the commonest front end and its constants are there before the first job
    compile_spec(JsonSchema('{"type": "object"}'), bytes([1]) * 256)
    transport = Transport(max_message_bytes)
    end = BlockingEnd(transport.pair(address, bind=False))
    end.send(READY)
    while True:
        leave_if_orphaned(parent_pid)
        if not end.wait(1.0):
            continue
        data = end.take()
        if data is not None:
            result = answer(m.compile_job_decoder.decode(data), compile_spec, cpu_s)
            end.send(bounded(result, max_message_bytes - ENVELOPE_BYTES))


def bounded(result: m.WorkerMessage, max_bytes: int) -> bytes:
    """The encoded result; a refusal when it has more than `max_bytes`."""
    data = m.encode(result)
    if len(data) <= max_bytes:
        return data
    error = GrammarError(
        f"the compiled constraint has {len(data)} bytes, a message holds {max_bytes}",
        hint="Simplify the constraint, or raise max_message_bytes",
    )
    return m.encode(m.Refused(result.program, m.WireError.of(error)))


def answer(job: m.CompileJob, compile_spec: CompileSpec, cpu_s: float) -> m.WorkerMessage:
    """The result of one job; a job that takes longer than `cpu_s` of processor time ends this process (SIGPROF)."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        return m.Compiled(job.program, compile_spec(job.spec, job.alphabet).to_bytes())
    except RadixError as error:
        return m.Refused(job.program, m.WireError.of(error))
    except RecursionError:
        return _refused(job, GrammarError("the constraint is nested too deeply to be compiled"))
    except MemoryError:
        return _refused(job, GrammarError("the constraint needs too much memory to be compiled"))
    except Exception as error:  # noqa: BLE001 - a defect of one front end is the answer to one job
        return _refused(job, ServiceError(f"compiling the constraint failed: {error!r}"))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _refused(job: m.CompileJob, error: RadixError) -> m.Refused:
    return m.Refused(job.program, m.WireError.of(error))


def lower_own_priority() -> None:
    """Let everything else go first, and bound this process's memory."""
    os.nice(NICENESS)
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = MAX_MEMORY_BYTES if soft == resource.RLIM_INFINITY else min(soft, MAX_MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
