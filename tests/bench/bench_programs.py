"""Programs as people write them, compiled, on gateway and engine in this process: programs/s, latency, tokens computed against the fewest.

The fewest are the distinct prefixes of all prompts and outputs: what a cache without limits computes. Ablations leave one thing out each:

    no compile       the plain program           no hints        its hints do not reach the engine
    fcfs             admit in order of arrival   no jump-forward forced text is sampled token by token
    no cache         every prompt is computed as a whole

Run: .venv/bin/python tests/bench/bench_programs.py [--toy] [--only NAME] [--without NAME ...] [--scale N] [--json]
`--toy` takes a fake model in place of the real one: token counts without the time. Texts must be equal in all ablations but jump-forward.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from in_process import InProcess, first_come_first_served, toy_core, union_trie_size, without_cache
from program_workloads import Workload, workloads

ABLATIONS = ("no compile", "no hints", "fcfs", "no jump-forward", "no cache")


def core_and_tokenizer(options: argparse.Namespace, num_pages: int) -> tuple[Any, Any]:
    """An engine with an empty cache of so many pages, and its tokenizer."""
    if options.toy:
        from toy_tokenizer import ToyTokenizer

        return toy_core(num_pages=num_pages * 2), ToyTokenizer()  # its tokens are shorter
    from radixlm.runtime.config import EngineConfig
    from radixlm.runtime.engine_process import build_engine
    from radixlm.runtime.model_files import resolve_model
    from radixlm.runtime.tokenizer import load_tokenizer

    config = EngineConfig.create(model=options.model, threads=options.threads, num_pages=num_pages)
    core, _, warm_up = build_engine(config, 0)
    warm_up()
    return core, load_tokenizer(resolve_model(config.model, Path(config.cache_dir)))


def change(core: Any, ablation: str) -> None:
    """Leave something out of an engine."""
    if ablation == "fcfs":
        first_come_first_served(core)
    if ablation == "no cache":
        without_cache(core)


def measure(
    load: Workload, options: argparse.Namespace, engines: dict[Any, Any], ablation: str = ""
) -> dict[str, Any]:
    """One workload, once, from an empty cache."""
    num_pages = load.num_pages or 512
    kind = ablation if ablation in ("fcfs", "no cache") else ""
    if (num_pages, kind) not in engines:  # a real model takes seconds to load
        engines.clear()
        engines[num_pages, kind] = core_and_tokenizer(options, num_pages)
        change(engines[num_pages, kind][0], kind)
    core, tokenizer = engines[num_pages, kind]
    core.cache.flush()
    before = core.stats()
    sample = load.items[0]
    program = load.program if ablation == "no compile" else load.program.compile(**sample)
    given = {"jump_forward": False} if ablation == "no jump-forward" else {}
    with InProcess(core, tokenizer, has_hints=ablation != "no hints") as backend:
        started = time.perf_counter()
        ended: list[float] = []
        states = []
        batch = program.run_batch(
            load.items, backend=backend, progress_bar=False, generator_style=True, **given
        )
        for state in batch:
            ended.append(time.perf_counter() - started)
            states.append(state)
    for state in states:
        if state.error() is not None:
            raise state.error()
    stats = {name: value - before[name] for name, value in core.stats().items()}
    fewest = union_trie_size(backend.sequences)
    return {
        "programs_per_s": len(states) / ended[-1],
        "latency_p50_s": statistics.median(ended),
        "computed": int(stats["computed_tokens"]),
        "fewest": fewest,
        "ratio": stats["computed_tokens"] / fewest,
        "forced": int(stats["forced_tokens"]),
        "requests": int(stats["submitted"]),
        "texts": [state.text() for state in sorted(states, key=lambda state: state.index)],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--toy", action="store_true", help="a fake model: counts without time")
    parser.add_argument("--only", action="append", help="workloads whose name begins so")
    parser.add_argument("--without", action="append", choices=ABLATIONS, help="default: all")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON line a measurement")
    parser.add_argument("--quick", action="store_true", help="two workloads on the fake model")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if options.quick:
        options.toy, options.only, options.without = True, ["few-shot", "judge"], ["no compile"]
    engines: dict[Any, Any] = {}
    for load in workloads(options.scale):
        if options.only and not load.name.startswith(tuple(options.only)):
            continue
        if not options.toy:
            measure(load, options, engines)  # warm up
        whole = measure(load, options, engines)
        report(load.name, "", whole, whole, options.json)
        for ablation in ABLATIONS if options.without is None else options.without:
            row = measure(load, options, engines, ablation)
            report(load.name, ablation, row, whole, options.json)


def report(name: str, ablation: str, row: dict[str, Any], whole: dict[str, Any], as_json: bool) -> None:  # fmt: skip
    """One line; `whole` is the same workload with nothing left out."""
    is_same = row["texts"] == whole["texts"]
    speed = whole["programs_per_s"] / row["programs_per_s"]
    if as_json:
        numbers = {key: value for key, value in row.items() if key != "texts"}
        print(json.dumps({"bench": name, "without": ablation, "same_texts": is_same, **numbers}))
        return
    what = f"  {ablation}" if ablation else name
    rest = f"whole is {speed:5.2f} times as fast" if ablation else ""
    texts = "" if is_same else "  OTHER TEXTS"
    print(
        f"{what:<30} {row['programs_per_s']:7.2f} programs/s  p50 {row['latency_p50_s']:6.2f} s  computed {row['computed']:6d}"
        f" = {row['ratio']:5.2f} x fewest  forced {row['forced']:4d}  requests {row['requests']:4d}  {rest}{texts}", flush=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
