"""What the language itself costs: microseconds per gen in a program, and memory of live programs; no model.

Run: nice .venv/bin/python tests/bench/bench_language.py [--json]     Wanted: under 150 us per gen, 1,000 live
programs under 30 MB, `import radixlm` with a program under 150 ms of processor time.

The first rows use a backend that answers at once with one prepared result, so all that is measured is `lang/`; the last is the resident
memory that 1,000 paused programs add to the process, each with a prompt, two roles and an open gen on a ScriptedBackend.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import Any

from radixlm import ScriptedBackend, State, assistant, function, gen, user
from radixlm.runtime.messages import Delta, Finished, Generate, Output, Ready, Scored, Usage

NUM_GENS = 20
NUM_LIVE = 1000
PROMPT = "What should one know about this topic? Answer in a few words, please. "


class InstantBackend:
    """Answers every request at once with the same result."""

    facts = Ready(model="instant", context_length=1 << 20, vocab_size=50_000, eos_token_ids=(0,))

    def __init__(self) -> None:
        self._numbers = count()
        self._outputs = (Output("a few words", (1, 2, 3), "stop"),)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}.{next(self._numbers)}"

    def send(self, message: Any) -> None:
        return

    def generate(self, message: Generate, on_delta: Any = None) -> Future[Finished]:
        if on_delta is not None:
            for word in ("a", " few", " words"):
                on_delta(Delta(message.request, 0, word))
        future: Future[Finished] = Future()
        future.set_result(Finished(message.request, self._outputs, Usage(20, 10, 3)))
        return future

    def score(self, message: Any) -> Future[Scored]:
        raise NotImplementedError


@function
def talk(s: State, num_gens: int) -> None:
    """A conversation of `num_gens` turns, each read."""
    for i in range(num_gens):
        s += user(PROMPT) + assistant(gen(f"a{i}", max_tokens=16, temperature=0.5, stop=["\n"]))
        _ = s[f"a{i}"]


@function
def spread(s: State, num_gens: int) -> None:
    """`num_gens` forks with a gen each, joined."""
    s += PROMPT
    forks = s.fork(num_gens)
    forks += gen("a", max_tokens=16)
    forks.join()


def us_per_gen(work: Callable[[], object], num_gens: int, rounds: int) -> float:
    """The least processor time of several rounds: other work on the machine does not count."""
    spent: list[float] = []
    for _ in range(rounds):
        begin = time.thread_time()
        work()
        spent.append((time.thread_time() - begin) / num_gens * 1e6)
    return min(spent)


def watch(backend: InstantBackend) -> None:
    with talk.run(NUM_GENS, stream=True, backend=backend) as s:
        for _ in s.event_iter():
            pass


def measure_costs(rounds: int) -> dict[str, float]:
    backend = InstantBackend()
    batch = [{"num_gens": NUM_GENS}] * 10
    works: dict[str, tuple[Callable[[], object], int]] = {
        "run": (lambda: talk.run(NUM_GENS, backend=backend), NUM_GENS),
        "run, one gen": (lambda: talk.run(1, backend=backend), 1),
        "run_batch": (lambda: talk.run_batch(batch, backend=backend), 10 * NUM_GENS),
        "arun": (lambda: asyncio.run(talk.arun(100, backend=backend)), 100),
        "fork and join": (lambda: spread.run(NUM_GENS, backend=backend), NUM_GENS),
        "run(stream=True)": (lambda: watch(backend), NUM_GENS),
    }
    for work, _ in works.values():
        work()
    gc.disable()
    costs = {name: us_per_gen(work, num, rounds) for name, (work, num) in works.items()}
    gc.enable()
    return costs


def resident_mb() -> float:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 2**20


def measure_memory(num_live: int) -> float:
    backend = ScriptedBackend(default="a few words")
    backend.pause()

    async def main() -> float:
        gc.collect()
        before = resident_mb()
        tasks = [asyncio.create_task(talk.arun(1, backend=backend)) for _ in range(num_live)]
        while backend.num_waiting < num_live:
            await asyncio.sleep(0)
        grown = resident_mb() - before
        backend.resume()
        await asyncio.gather(*tasks)
        return grown

    return asyncio.run(main())


IMPORT = """
import time
begin = time.process_time()
import radixlm
from radixlm import assistant, function, gen, select, user

@function
def f(s, question):
    s += user(question) + assistant(gen("a"))

print((time.process_time() - begin) * 1e3)
"""


def measure_import(rounds: int) -> float:
    """Milliseconds of processor time that a new process spends on the import and on defining a program; the least of some."""
    command = [sys.executable, "-c", IMPORT]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(rounds)
    ]
    return min(float(run.stdout) for run in runs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON line")
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that it runs")
    options = parser.parse_args()
    talk.run(1, backend=InstantBackend())  # imports
    memory = measure_memory(100 if options.quick else NUM_LIVE)
    costs = measure_costs(3 if options.quick else 30)
    machine = f"{platform.processor() or platform.machine()}, Python {platform.python_version()}"
    import_ms = measure_import(2 if options.quick else 7)
    if options.json:
        rounded = {name: round(cost, 1) for name, cost in costs.items()}
        row = {
            "bench": "language",
            "us_per_gen": rounded,
            "live_mb": round(memory, 1),
            "import_ms": round(import_ms, 1),
        }
        print(json.dumps({**row, "machine": machine}))
        return
    print(f"the language without a model ({machine})")
    for name, cost in costs.items():
        print(f"  {name:<30} {cost:8.1f} us per gen   (under 150 wanted)")
    print(f"  {'import, and a program':<30} {import_ms:8.1f} ms           (under 150 wanted)")
    print(f"  {f'{NUM_LIVE} live programs':<30} {memory:8.1f} MB           (under 30 wanted)")


if __name__ == "__main__":
    main()
