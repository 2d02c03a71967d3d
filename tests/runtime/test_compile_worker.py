"""The compile worker is ended at its deadline and replaced; every job is answered, and a bad one costs only itself."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import toy_worker

from radixlm.grammar.spec import Regex, spec_key
from radixlm.runtime import messages as m
from radixlm.runtime.compile_supervisor import CompileSupervisor
from radixlm.runtime.compile_worker import bounded
from radixlm.runtime.loops import new_event_loop
from radixlm.runtime.transport import Transport

CPU_S = 0.3


class Workshop:
    """A supervisor over toy workers; `answers` by pattern."""

    def __init__(
        self, folder: Path, *, wall_s: float = 30.0, script: str = toy_worker.__file__
    ) -> None:
        self.loop = new_event_loop()
        self.transport = Transport(1 << 20)
        self.patterns: dict[str, str] = {}
        self.answers: dict[str, m.WorkerMessage] = {}
        self.supervisor = CompileSupervisor(
            self.loop,
            self.transport,
            command=lambda address: [sys.executable, script, address, str(CPU_S)],
            environment=dict(os.environ),
            address_of=lambda number: f"ipc://{folder}/w{number}",
            on_answer=lambda message: self.answers.update(
                {self.patterns[message.program]: message}
            ),
            cpu_s=CPU_S,
            wall_s=wall_s,
        )

    def compile(self, *patterns: str, timeout_s: float = 60.0) -> None:
        for pattern in patterns:
            spec = Regex(pattern)
            self.patterns[spec_key(spec)] = pattern
            self.supervisor.submit(m.CompileJob(spec_key(spec), spec, b"\1" * 256))

        async def wait() -> None:
            while not self.answers.keys() >= set(patterns):
                await asyncio.sleep(0.01)

        self.loop.run_until_complete(asyncio.wait_for(wait(), timeout_s))

    def close(self) -> None:
        self.supervisor.close()
        self.transport.close()
        self.loop.close()


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    workshop = Workshop(tmp_path)
    yield workshop
    workshop.close()


def error_of(workshop: Workshop, pattern: str) -> m.WireError:
    answer = workshop.answers[pattern]
    assert isinstance(answer, m.Refused)
    return answer.error


def test_jobs_are_answered_in_order_and_a_deadline_a_crash_and_a_refusal_cost_only_their_own(
    workshop: Workshop,
) -> None:
    workshop.compile("first", "spin", "second", "crash", "recurse", "memory", "refuse", "last")
    assert list(workshop.answers) == [
        "first",
        "spin",
        "second",
        "crash",
        "recurse",
        "memory",
        "refuse",
        "last",
    ]
    for pattern in ("first", "second", "last"):
        assert workshop.answers[pattern] == m.Compiled(
            spec_key(Regex(pattern)), f"program of {pattern}".encode()
        )
    spin = error_of(workshop, "spin")
    assert spin.name == "GrammarError"
    assert "deadline of 0.3 s of processor time" in spin.message
    crash = error_of(workshop, "crash")
    assert crash.name == "ServiceError"
    assert "signal 6" in crash.message
    assert "too deeply" in error_of(workshop, "recurse").message
    assert "memory" in error_of(workshop, "memory").message
    assert error_of(workshop, "refuse") == m.WireError("GrammarError", "not this one", "3")


def test_a_job_that_waits_instead_of_computing_ends_at_the_wall_clock_limit(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path, wall_s=0.5)
    workshop.compile("sleep", "after")
    assert "deadline of 0.5 s (wall clock)" in error_of(workshop, "sleep").message
    assert error_of(workshop, "sleep").name == "ServiceError"  # may pass: nobody remembers it
    assert isinstance(workshop.answers["after"], m.Compiled)
    workshop.close()


def test_a_worker_that_never_starts_is_an_answer_too(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit(9)")
    workshop = Workshop(tmp_path, script=str(script))
    workshop.compile("one", "two")
    assert "does not start (exit status 9)" in error_of(workshop, "two").message
    workshop.close()


def test_a_worker_that_cannot_be_started_leaves_no_job_waiting(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.supervisor._command = lambda address: [str(tmp_path / "missing")]
    workshop.compile("one")
    assert "cannot be started" in error_of(workshop, "one").message
    workshop.close()


def test_a_program_that_no_message_holds_is_a_refusal() -> None:
    refused = m.worker_decoder.decode(bounded(m.Compiled("p", b"x" * 500), 300))
    assert isinstance(refused, m.Refused)
    assert "a message holds 300" in refused.error.message
