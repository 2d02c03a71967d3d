"""`radixlm bench programs`, also on a fake model: token counts without the time.

Run: .venv/bin/python tests/bench/bench_programs.py [--toy] [--only NAME ...] [--without NAME ...] [--scale N] [--json]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from radixlm.bench_programs import ABLATIONS, measure_programs, model_engine
from radixlm.reports import print_programs
from radixlm.runtime.config import EngineConfig


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="a fake model: counts without time")
    parser.add_argument("--only", action="append", help="workloads whose name begins so")
    parser.add_argument("--without", action="append", choices=ABLATIONS, help="default: all")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON line a measurement")
    parser.add_argument("--quick", action="store_true", help="two workloads on the fake model")
    options = parser.parse_args()
    if options.quick:
        options.toy, options.only, options.without = True, ["few-shot", "judge"], ["no compile"]
    if options.toy:
        from toy_engine import open_toy as opened
    else:
        opened = model_engine(EngineConfig.create())
    rows = measure_programs(
        opened, only=options.only or (), without=options.without, scale=options.scale,
        warm=not options.toy,
    )  # fmt: skip
    print_programs(rows, as_json=options.json)


if __name__ == "__main__":
    main()
