"""`radixlm bench programs`: programs as people write them, whole and with one thing left out at a time.

Owns the ablations, and what is counted and timed of one workload. Each measurement begins with an empty cache, on gateway and engine in this
process, so that tokens can be held against the fewest possible (`optimum.py`). Knows no command line and no printing.

    no compile       the plain program              no hints         its hints do not reach the engine
    fcfs             requests begin in the order of their arrival, whatever is cached, and none waits for a prefix that another computes
    fcfs, no compile the plain program under fcfs   no jump-forward  forced text is sampled token by token
    no cache         every prompt is computed as a whole

Some workloads have other programs for the same task besides (`Workload.others`). Texts must be equal in all of them but jump-forward.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radixlm.errors import ConfigError
from radixlm.lang.workloads import Workload, workloads
from radixlm.radix_cache.optimum import clairvoyant_tokens, fewest_tokens
from radixlm.runtime.in_process import InProcess

if TYPE_CHECKING:
    from radixlm.lang.state import State
    from radixlm.runtime import messages as m
    from radixlm.runtime.branches import TokenizerLike
    from radixlm.runtime.config import EngineConfig
    from radixlm.runtime.engine import Engine
    from radixlm.runtime.scheduler_limits import SchedulerLimits

    Limit = Callable[[SchedulerLimits], SchedulerLimits]
    Opened = tuple[Engine, m.EngineReady, TokenizerLike]
    OpenEngine = Callable[[int, Limit], Opened]

ABLATIONS = (
    "no compile", "no hints", "fcfs", "fcfs, no compile", "no jump-forward", "no cache",
)  # fmt: skip
_NUM_PAGES = 512  # of a cache that fits
_NO_AGING = 1e12  # tokens of cached prefix that a step of waiting is worth: arrival decides
_NO_FOLLOWING = 1 << 30  # tokens


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """One workload, run once. Latency is from the beginning of the batch, which all runs of it begin together."""

    workload: str
    without: str
    """What was left out, the name of another program for the task, or "" for the whole."""
    num_programs: int
    programs_per_s: float
    latency_p50_s: float
    latency_max_s: float
    requests: int
    messages: int
    steps: int
    computed: int
    fewest: int
    """Tokens that must be computed whatever the cache and the order."""
    uncached: int
    """Tokens that all requests have: what is computed where nothing is shared."""
    clairvoyant: int
    """Tokens computed in the order in which the requests came, one at a time, by a cache of this size that knows the future."""
    sampled: int
    forced: int
    same_texts: bool

    @property
    def title(self) -> str:
        """The workload, or below it what was changed."""
        return f"  {self.without}" if self.without else self.workload

    @property
    def ratio(self) -> float:
        """Tokens computed, in multiples of the fewest."""
        return self.computed / self.fewest

    @property
    def hit_share(self) -> float:
        """The hit rate, as a share of the best that any cache and order could have."""
        best = self.uncached - self.fewest
        return (self.uncached - self.computed) / best if best else 1.0

    def as_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        return {**asdict(self), "ratio": self.ratio, "hit_share": self.hit_share}


def model_engine(config: EngineConfig) -> OpenEngine:
    """Engines of a real model with so many pages of cache."""
    from radixlm.runtime.engine_process import build_engine
    from radixlm.runtime.model_files import resolve_model
    from radixlm.runtime.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(resolve_model(config.model, Path(config.cache_dir)))

    def opened(num_pages: int, limit: Limit) -> Opened:
        core, ready, warm_up = build_engine(replace(config, num_pages=num_pages), 0, limit=limit)
        warm_up()
        return core, ready, tokenizer

    return opened


def measure_programs(
    open_engine: OpenEngine,
    *,
    only: Sequence[str] = (),
    without: Sequence[str] | None = None,
    scale: int = 1,
    rounds: int = 1,
    warm: bool = True,
) -> Iterator[ProgramRow]:
    """The rows of each workload whose name begins with one of `only`: the whole, then each of `without` (None: all that say something of it).

    Of `rounds` runs the fastest counts. `warm` runs each once before. ConfigError for names that are not there.
    """
    chosen = _chosen(workloads(scale), only)
    unknown = [name for name in without or () if name not in ABLATIONS]
    if unknown:
        raise ConfigError(
            f"nothing is called {unknown[0]!r}", place="without", hint=f"One of {ABLATIONS}"
        )
    bench = _Bench(open_engine, rounds, warm)
    for load in chosen:
        whole, texts = bench.row(load, "", None)
        yield whole
        if without is None:
            names = [
                name for name in ABLATIONS if name != "no jump-forward" or whole.forced
            ] + list(load.others)
        else:
            names = list(without)
        for name in names:
            yield bench.row(load, name, texts)[0]


def _chosen(loads: Sequence[Workload], only: Sequence[str]) -> list[Workload]:
    chosen = [load for load in loads if not only or load.name.startswith(tuple(only))]
    missing = [name for name in only if not any(load.name.startswith(name) for load in loads)]
    if missing:
        names = ", ".join(load.name for load in loads)
        raise ConfigError(
            f"no workload's name begins with {missing[0]!r}", place="only", hint=names
        )
    return chosen


class _Bench:
    """Engines stay open from one measurement to the next: a real model takes a second to load."""

    def __init__(self, open_engine: OpenEngine, rounds: int, warm: bool) -> None:
        self._open_engine = open_engine
        self._rounds = rounds
        self._warm = warm
        self._key: tuple[int, bool] | None = None
        self._engine: Opened | None = None

    def row(
        self, load: Workload, without: str, texts: list[str] | None
    ) -> tuple[ProgramRow, list[str]]:
        """The best of some rounds, and the texts; `texts` are those of the whole."""
        engine = self._engine_for(load.num_pages or _NUM_PAGES, "fcfs" in without)
        found = [_measure(engine, load, without, texts) for _ in range(self._rounds + self._warm)][
            self._warm :
        ]
        return max(found, key=lambda each: each[0].programs_per_s)

    def _engine_for(self, num_pages: int, is_fcfs: bool) -> Opened:
        if self._engine is None or self._key != (num_pages, is_fcfs):
            self._engine = None  # two models at once would need twice the memory
            limit: Limit = _first_come_first_served if is_fcfs else _as_it_is
            self._key, self._engine = (
                (num_pages, is_fcfs),
                self._open_engine(num_pages, limit),
            )
        return self._engine


def _as_it_is(limits: SchedulerLimits) -> SchedulerLimits:
    return limits


def _first_come_first_served(limits: SchedulerLimits) -> SchedulerLimits:
    return replace(limits, aging_tokens_per_step=_NO_AGING, min_follow_tokens=_NO_FOLLOWING)


def _measure(
    engine: Opened, load: Workload, without: str, texts: list[str] | None
) -> tuple[ProgramRow, list[str]]:
    """One workload, once, from an empty cache."""
    core, ready, tokenizer = engine
    core.cache.flush()
    before = core.stats()
    program = load.others.get(without, load.program)
    if program is load.program and "no compile" not in without:
        program = program.compile(**load.items[0])
    given = {"jump_forward": False} if without == "no jump-forward" else {}
    backend = InProcess(
        core,
        ready,
        tokenizer,
        has_hints=without != "no hints",
        has_cache=without != "no cache",
    )
    ended: list[float] = []
    states: list[State] = []
    with backend:
        began_s = time.perf_counter()
        batch = program.run_batch(
            load.items, backend=backend, progress_bar=False, generator_style=True, **given
        )
        for state in batch:
            ended.append(time.perf_counter() - began_s)
            states.append(state)
    for state in states:
        if (error := state.error()) is not None:
            raise error
    written = [state.text() for state in sorted(states, key=lambda state: state.index or 0)]
    row = ProgramRow(
        workload=load.name,
        without=without,
        num_programs=len(states),
        programs_per_s=len(states) / ended[-1],
        latency_p50_s=statistics.median(ended),
        latency_max_s=ended[-1],
        messages=backend.num_messages,
        same_texts=texts is None or written == texts,
        **_counts(core, before, backend),
    )
    return row, written


def _counts(core: Engine, before: dict[str, float], backend: InProcess) -> dict[str, int]:
    spent = {name: int(value - before[name]) for name, value in core.stats().items()}
    needed = [sequence[:-1] for sequence in backend.sequences]
    return {
        "requests": spent["submitted"],
        "steps": spent["steps"],
        "computed": spent["computed_tokens"],
        "fewest": fewest_tokens(needed),
        "uncached": sum(map(len, needed)),
        "clairvoyant": clairvoyant_tokens(needed, core.cache.num_pages * core.cache.page_size),
        "sampled": spent["sampled_tokens"],
        "forced": spent["forced_tokens"],
    }
