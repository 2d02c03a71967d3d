"""How near the whole engine comes to what this machine can do: decoding one stream and computing prompts, beside bare linear layers in the same run.

The ceilings are those of `../shared/leads/q4_vnni.cpp`: the default model's linear layers in 4 bits on random numbers, no attention, no head in the
prompt's case, nothing around them. It needs AVX-512 VNNI and g++; without them or the file the bench says so and ends.

Run: .venv/bin/python tests/bench/bench_ceilings.py [--json] [--quick]     Wanted: decode at least 0.6, prompts at least 0.55 of the ceiling.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from bench_report import machine, parse_options

import radixlm

SOURCE = Path(__file__).parents[3] / "shared" / "leads" / "q4_vnni.cpp"
PROMPT_TOKENS = 512


def ceilings(threads: int) -> dict[str, float]:
    """Tokens a second of bare linear layers: one row, and 512."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "linears")
        command = ["g++", "-O3", "-march=native", "-pthread", str(SOURCE), "-o", str(program)]
        subprocess.run(command, check=True)
        text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"M=(\d+) threads=(\d+) best .*?-> (\d+) tok/s", text)
    rates = {(int(rows), int(num)): float(rate) for rows, num, rate in found}
    one, all_of_them = rates[1, 1], rates[1, min(threads, 2)]
    if threads > 1 and all_of_them <= one:
        sys.exit("void: two threads are no faster than one, the machine is busy")
    return {"decode": all_of_them, "prompts": rates[512, min(threads, 2)]}


def decode_rate(engine: radixlm.Engine, num_tokens: int) -> float:
    """Tokens a second of one stream behind its first token: what many tokens take longer than one."""
    spent_s: list[float] = []
    for count in (1, 1, num_tokens):  # the first one computes the prompt
        began_s = time.perf_counter()
        engine.generate("Once upon a time", max_tokens=count, ignore_eos=True)
        spent_s.append(time.perf_counter() - began_s)
    return (num_tokens - 1) / (spent_s[2] - spent_s[1])


def prompt_rate(engine: radixlm.Engine, ids: list[int]) -> float:
    """Prompt tokens a second of one prompt that nothing of is cached."""
    began_s = time.perf_counter()
    engine.generate(ids, max_tokens=1)
    return len(ids) / (time.perf_counter() - began_s)


def main() -> None:
    """Measure and print."""
    options = parse_options(__doc__ or "")
    if not SOURCE.exists() or not shutil.which("g++"):
        sys.exit(f"no ceilings: g++ and {SOURCE.name} beside the shared data are needed")
    rounds, num_tokens = (1, 32) if options.quick else (5, 128)
    rates: dict[str, list[float]] = {"decode": [], "prompts": []}
    limits = ceilings(options.threads)
    with radixlm.Engine(
        model=options.model, threads=options.threads, kv_ready_bytes=2**28
    ) as engine:
        for number in range(-1, rounds):
            found = {
                "decode": decode_rate(engine, num_tokens),
                "prompts": prompt_rate(
                    engine, [1000 + 600 * (number + 1) + i for i in range(PROMPT_TOKENS)]
                ),
            }
            if number >= 0:  # the first one warms up
                for name, rate in found.items():
                    rates[name].append(rate)
    after = ceilings(options.threads)
    rows = {
        name: (median(found), (limits[name] + after[name]) / 2) for name, found in rates.items()
    }
    if options.json:
        shares = {
            name: {"tok_s": ours, "ceiling": top, "share": ours / top}
            for name, (ours, top) in rows.items()
        }
        print(json.dumps({"bench": "ceilings", **shares, "machine": machine()}))
        return
    for name, (ours, top) in rows.items():
        print(f"{name:<8} {ours:8.1f} tok/s of {top:8.1f}   share {ours / top:.2f}")
    print(machine())


if __name__ == "__main__":
    main()
