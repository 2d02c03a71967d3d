"""Where the time of a decoding step goes: the kernels, the head, sampling, and everything around them in Python.

Owns the measurement, on an engine core in this process: streams of equal length, all decoding, a number of steps timed one by one.
Knows no processes and no printing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from ..errors import ConfigError
from . import messages as m
from .config import EngineConfig
from .engine_process import build_engine
from .native_runner import NativeRunner
from .runner_protocol import Runner

if TYPE_CHECKING:
    from .engine import Engine

PROMPT_TOKENS = 64


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Medians over the steps of one batch size, in ms. `python_ms`: the step less the three native calls."""

    num_streams: int
    step_ms: float
    forward_ms: float
    head_ms: float
    sampling_ms: float
    python_ms: float


def profile_steps(
    config: EngineConfig, batch_sizes: Sequence[int] = (1, 32), num_steps: int = 100
) -> list[StepTimes]:
    """Measure decoding with each number of streams, at most `max_running`. ConfigError where the native kernels do not serve."""
    spent: dict[str, float] = {}

    def timed(runner: Runner) -> Runner:
        if not isinstance(runner, NativeRunner):
            raise ConfigError("the native kernels, on which steps are measured, do not serve here")
        runner.time_calls(spent)
        return runner

    engine, _, _ = build_engine(config, 0, timed)
    found: list[StepTimes] = []
    for num_streams in sorted({min(size, config.max_running) for size in batch_sizes}):
        _start_streams(engine, num_streams, num_steps)
        rows: list[tuple[float, ...]] = []
        for _ in range(num_steps):
            spent.clear()
            began_s = time.perf_counter()
            engine.step()
            whole_s = time.perf_counter() - began_s
            native = [spent.get(name, 0.0) for name in ("step", "logits", "sample")]
            rows.append((whole_s, *native, whole_s - sum(native)))
        medians = [1e3 * median(column) for column in zip(*rows, strict=True)]
        found.append(StepTimes(num_streams, *medians))
        while engine.has_work:
            engine.step()
    return found


def _start_streams(engine: Engine, num_streams: int, num_steps: int) -> None:
    """Submit prompts, and step until all of them decode."""
    for number in range(num_streams):
        ids = tuple(100 + (number * 131 + 7 * i) % 997 for i in range(PROMPT_TOKENS))
        params = m.SamplingParams(
            max_tokens=num_steps + num_streams + 8, ignore_eos=True, temperature=0.0
        )
        engine.receive(m.Submit(f"{num_streams} {number}", ids, params))
    computed = -1.0
    while computed != num_streams:
        if not engine.has_work:
            raise ConfigError(
                f"{num_streams} streams do not decode at once with these options",
                place="max_running",
                hint="Raise max_running, num_pages or context_length",
            )
        before = engine.stats()["computed_tokens"]
        engine.step()
        computed = engine.stats()["computed_tokens"] - before
