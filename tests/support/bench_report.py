"""What every bench prints: a table for people, or with --json one machine line."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable

import torch


def parse_options(description: str, parts: tuple[str, ...] = ()) -> argparse.Namespace:
    """--json, --threads, --model (an alias, .gguf file or folder), --quick; --part of a bench that has some (all by default)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON line instead of a table"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument(
        "--quick", action="store_true", help="a fraction of the work, to see that the bench runs"
    )
    if parts:
        parser.add_argument("--part", action="append", choices=parts)
    options = parser.parse_args()
    if parts:
        options.part = options.part or list(parts)
    return options


def machine() -> str:
    """Processor, torch and its threads in one line."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next(
                line.split(":")[1].strip() for line in lines if line.startswith("model name")
            )
    except (OSError, StopIteration):
        pass
    return f"{model}, {torch.get_num_threads()} threads, torch {torch.__version__}"


def report(
    name: str, rows: dict[str, float], ratio: float, unit: str, as_json: bool, floor: float
) -> None:
    """Rows are name -> rate in `unit`; `ratio` is ours over the peer's, which should reach `floor`."""
    if as_json:
        print(
            json.dumps(
                {
                    "bench": name,
                    "unit": unit,
                    "rates": rows,
                    "ratio": round(ratio, 3),
                    "machine": machine(),
                }
            )
        )
        return
    print(f"{name} ({machine()})")
    for row, rate in rows.items():
        print(f"  {row:<44} {rate:10.2f} {unit}")
    print(f"  {'ratio':<44} {ratio:10.2f} (at least {floor} wanted)")


def alternating(
    ours: Callable[[], float], theirs: Callable[[], float], rounds: int
) -> tuple[float, float, float]:
    """Median rates of both and the median of their ratios, measured in turns so that load on the machine meets both."""
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    ratios = sorted(mine / other for mine, other in pairs)
    middle = len(pairs) // 2
    return sorted(a for a, _ in pairs)[middle], sorted(b for _, b in pairs)[middle], ratios[middle]
