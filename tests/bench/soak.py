"""`radixlm serve` under 100 concurrent mixed streams, 30 % of which leave, for 3 minutes; its engine is killed after one.

Run: .venv/bin/python tests/bench/soak.py [--seconds 180] [--clients 100] [--seed 0]

Wanted, else status 1: every request ends once and as it must, no page or request stays, no process grows by more than a twentieth (and
16 MiB) from the third quarter of its life to the last, 99 % of what is due on the server's event loop comes within 50 ms.
The server gets one thread for its model, so that a machine of two cores has one for the clients.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from serve_process import serving
from soak import Report, Soak

KV_BYTES = 256 << 20  # the pages of some 30 streams: they run out
CONTEXT_LENGTH = 2048
MAX_GROWTH_MIB = 16.0
MAX_GROWTH_SHARE = 0.05
WANTED_IN_TIME = 0.99


def failures(report: Report, stderr: list[str]) -> list[str]:
    """What is not as wanted."""
    found = [*report.faults]
    if sum(report.outcomes.values()) != report.num_sent:
        found.append(f"{report.num_sent} requests, {sum(report.outcomes.values())} outcomes")
    found += [f"still held: {name} {number:g}" for name, number in report.not_at_rest.items()]
    if report.counters["radixlm_repairs_total"]:
        found.append("the engine met contradictions")
    for name, memory in report.memory.items():
        growth_mib, size_mib = memory.growth_mib(), memory.samples[-1][1]
        if growth_mib > max(MAX_GROWTH_MIB, MAX_GROWTH_SHARE * size_mib):
            found.append(f"{name} grew by {growth_mib:.0f} MiB")
    # where a loop without work is late too, the machine is, and nothing can be said
    if report.lag_share_in_time < WANTED_IN_TIME <= report.idle_share_in_time:
        found.append(f"{report.lag_share_in_time:.2%} of the loop's callbacks came within 50 ms")
    found += [line for line in stderr if "Traceback" in line or "defect" in line]
    return found


def show(report: Report) -> None:
    """The tables."""
    counters = report.counters
    num_tokens = counters.get("radixlm_tokens_total[completion]", 0)
    print(f"{report.num_sent} requests in {report.seconds:.0f} s, {num_tokens:.0f} tokens")
    print("  " + ", ".join(f"{number} {name}" for name, number in report.outcomes.most_common()))
    kinds = sorted({kind for kind, _ in report.outcomes_by_kind})
    for kind in kinds:
        ends = {name: n for (of, name), n in report.outcomes_by_kind.items() if of == kind}
        print(f"    {kind:<16}" + ", ".join(f"{n} {name}" for name, n in sorted(ends.items())))
    print("  resident memory, MiB: medians of the quarters of each life")
    for name, memory in report.memory.items():
        quarters = " ".join(f"{mib:7.0f}" for mib in memory.quarters_mib())
        print(f"    {name:<24}{quarters}   growth at the end {memory.growth_mib():+.1f}")
    quantiles = ", ".join(
        f"p{100 * q:g} <= {1000 * report.lag_quantile_s(q):g} ms" for q in (0.5, 0.9, 0.99, 0.999)
    )
    print(
        f"  event loop lag: {quantiles}; {report.lag_share_in_time:.2%} within 50 ms"
        f" (a loop without work beside it: {report.idle_share_in_time:.2%})"
    )
    print(f"  the engine was back {report.restart_s:.1f} s after its death")
    for name in (
        "preemptions",
        "evicted_pages",
        "cache_hit_tokens",
        "cache_lookup_tokens",
        "steps",
    ):
        print(f"    {name:<24}{counters.get(f'radixlm_{name}_total', 0):10.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with serving(threads=1, kv_bytes=KV_BYTES, context_length=CONTEXT_LENGTH) as process:
        soak = Soak(
            process,
            num_clients=options.clients,
            seconds=options.seconds,
            kill_after_s=options.seconds / 3,
            seed=options.seed,
        )
        report = soak.run()
        status = process.end()
        found = failures(report, process.stderr)
        found += [f"exit status {status}"] if status else []
    show(report)
    for text in found:
        print(f"NOT AS WANTED: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
