"""A soak of a running server: mixed traffic from many clients, its engine killed once, everything it did written down.

    report = Soak(process, num_clients=100, seconds=180, kill_after_s=60).run()

The ledger is the clients': every request has one outcome, and what should not happen is a fault with its story. Meanwhile the memory of
each process is sampled; at the end the server gets time to become idle, and its own counters are read. Knows nothing of what is asked.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import median

import psutil
from http_wire import Leave, exchange
from idle_loop import IdleLoop
from mixed_traffic import Case, Traffic
from serve_process import ServeProcess

SAMPLE_INTERVAL_S = 0.5
IDLE_TIMEOUT_S = 60.0
LAG_BOUND_S = 0.05
MIB = 1 << 20
# what must be 0 when nobody asks for anything
AT_REST = (
    "radixlm_running", "radixlm_waiting", "radixlm_waiting_grammar", "radixlm_locked_pages", "radixlm_live_requests",
)  # fmt: skip


@dataclass
class Memory:
    """One process: its resident memory over time."""

    samples: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def growth_mib(self) -> float:
        """From the third quarter of its life to the last, median to median."""
        values = [mib for _, mib in self.samples]
        quarter = len(values) // 4
        if quarter < 4:
            return 0.0
        return median(values[-quarter:]) - median(values[-2 * quarter : -quarter])

    def quarters_mib(self) -> list[float]:
        """Medians of the quarters of its life."""
        values = [mib for _, mib in self.samples]
        quarter = max(len(values) // 4, 1)
        return [
            median(values[i : i + quarter]) for i in range(0, 4 * quarter, quarter) if values[i:]
        ]


@dataclass
class Report:
    """What happened."""

    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    outcomes_by_kind: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    faults: list[str] = field(default_factory=list[str])
    num_sent: int = 0
    num_deaths: int = 0
    restart_s: float = 0.0
    memory: dict[str, Memory] = field(default_factory=dict[str, Memory])
    counters: dict[str, float] = field(default_factory=dict[str, float])
    idle_lags_s: list[float] = field(
        default_factory=list[float]
    )  # of a process with nothing else to do
    not_at_rest: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def lag_share_in_time(self) -> float:
        """The share of the loop's callbacks that were at most LAG_BOUND_S late."""
        name = "radixlm_event_loop_lag_seconds"
        num = self.counters[f"{name}_count"]
        return self.counters[f"{name}_bucket[{LAG_BOUND_S}]"] / num if num else 0.0

    @property
    def idle_share_in_time(self) -> float:
        """The same of a loop without work beside it: what the machine takes by itself."""
        in_time = [lag_s <= LAG_BOUND_S for lag_s in self.idle_lags_s]
        return sum(in_time) / max(len(in_time), 1)

    def lag_quantile_s(self, share: float) -> float:
        """The bucket in which that share of the lags ends."""
        name = "radixlm_event_loop_lag_seconds_bucket["
        buckets = sorted(
            (float(key.removeprefix(name).removesuffix("]")), number)
            for key, number in self.counters.items()
            if key.startswith(name)
        )
        return next(bound for bound, number in buckets if number >= share * buckets[-1][1])


class Soak:
    """One run. `kill_after_s` 0: the engine is left alone."""

    def __init__(
        self, process: ServeProcess, *, num_clients: int, seconds: float, kill_after_s: float = 0.0, seed: int = 0
    ) -> None:  # fmt: skip
        self._process = process
        self._num_clients = num_clients
        self._seconds = seconds
        self._kill_after_s = kill_after_s
        self._traffic = Traffic(seed)
        self._report = Report()
        self._is_over = False
        self._dead_from_s = float(
            "inf"
        )  # the time between an engine's death and the next one's readiness
        self._dead_until_s = float("inf")

    def run(self) -> Report:
        """All of it."""
        with IdleLoop() as idle:
            asyncio.run(self._run())
            self._report.idle_lags_s = idle.end()
        return self._report

    async def _run(self) -> None:
        report = self._report
        start_s = time.monotonic()
        sampler = asyncio.create_task(self._sample())
        clients = [asyncio.create_task(self._client()) for _ in range(self._num_clients)]
        if self._kill_after_s:
            await asyncio.sleep(self._kill_after_s)
            await self._kill_engine()
        await asyncio.sleep(max(start_s + self._seconds - time.monotonic(), 0.0))
        self._is_over = True
        await asyncio.gather(*clients)
        report.seconds = time.monotonic() - start_s
        await self._rest()
        sampler.cancel()

    async def _client(self) -> None:
        while not self._is_over:
            await self._one(self._traffic.next_case())

    async def _one(self, case: Case) -> None:
        report = self._report
        report.num_sent += 1
        start_s = time.monotonic()
        reply = await exchange(self._process.address, "POST", case.path, case.body, case.leaving)
        may_die = start_s < self._dead_until_s and time.monotonic() > self._dead_from_s
        try:
            outcome = case.judge(reply, may_die=may_die)
        except Exception as error:  # noqa: BLE001 - whatever does not fit is a fault of the server
            outcome = "FAULT"
            story = f"{case.kind} {time.monotonic() - start_s:.1f} s: {error!r}"
            report.faults.append(f"{story} | sent {case.body[:200]!r} | got {reply.body[-300:]!r}")
        report.outcomes[outcome] += 1
        report.outcomes_by_kind[case.kind, outcome] += 1
        if case.leaving.when is Leave.AT_ONCE:
            await asyncio.sleep(0.2)  # or such clients would be nearly all of the traffic

    async def _kill_engine(self) -> None:
        before = self._process.processes()["engine"]
        self._dead_from_s = time.monotonic()
        before.kill()
        self._report.num_deaths += 1
        while (await exchange(self._process.address, "GET", "/ready", b"")).status != 200:
            await asyncio.sleep(0.1)
        self._dead_until_s = time.monotonic()
        self._report.restart_s = self._dead_until_s - self._dead_from_s

    async def _sample(self) -> None:
        while True:
            for role, process in self._process.processes().items():
                try:
                    mib = process.memory_info().rss / MIB
                except psutil.Error:
                    continue
                memory = self._report.memory.setdefault(f"{role} {process.pid}", Memory())
                memory.samples.append((time.monotonic(), mib))
            await asyncio.sleep(SAMPLE_INTERVAL_S)

    async def _rest(self) -> None:
        """Wait until the server is idle, then read its counters."""
        report = self._report
        deadline_s = time.monotonic() + IDLE_TIMEOUT_S
        while True:
            counters = await asyncio.to_thread(self._process.samples)
            left = {name: counters[name] for name in AT_REST if counters.get(name, -1) != 0}
            in_work = counters["radixlm_http_requests_in_work"] - 1  # the scrape itself
            num_lost_pages = counters.get("radixlm_pages", -1) - sum(
                counters.get(f"radixlm_{name}_pages", 0) for name in ("free", "evictable")
            )
            left |= {"requests in work": in_work} if in_work else {}
            left |= {"lost pages": num_lost_pages} if num_lost_pages else {}
            if not left or time.monotonic() > deadline_s:
                report.counters, report.not_at_rest = counters, left
                return
            await asyncio.sleep(0.2)
