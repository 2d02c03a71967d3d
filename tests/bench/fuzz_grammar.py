"""Broken and odd constraints for ten minutes: every one gives a program or a GrammarError in time, and outputs drawn from a program are valid.

Run: .venv/bin/python tests/bench/fuzz_grammar.py [--minutes M] [--kinds KIND ...] [--seed N] [--out FILE]
Ends with 1 if anything failed; each fault is told once, made small, with the case that shows it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from fuzz_driver import SLOW, Finding, fuzz, shrink
from fuzz_inputs import KINDS, fuzz_spec
from shared_data import DATA

MAX_SCHEMA_BYTES = 3_000


def pool_of(path: Path) -> list[Any]:
    """Small real schemas to start from, if their file is there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as lines:
        schemas = [json.loads(line)["schema"] for line in lines]
    return [one for one in schemas if len(json.dumps(one)) <= MAX_SCHEMA_BYTES]


def told(finding: Finding, count: int = 1) -> str:
    """A fault as text."""
    times = f"{count} times, first" if count > 1 else "first"
    return f"{finding.signature} ({times} at {finding.kind} {finding.seed})\n  {finding.detail}\n  {finding.spec}"


def main() -> None:
    """Fuzz and tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--seed", type=int, default=0, help="of the first case of each kind")
    parser.add_argument("--out", type=Path, help="write the faults here as well")
    options = parser.parse_args()
    started = time.monotonic()
    outcomes: Counter[tuple[str, str]] = Counter()
    counts: Counter[str] = Counter()
    faults: dict[str, Finding] = {}
    pool = pool_of(DATA / "jsonschemabench_dev.jsonl")
    num_kinds = len(options.kinds)
    for index, (outcome, finding) in enumerate(
        fuzz(options.kinds, options.seed, 60 * options.minutes, pool)
    ):
        kind, seed = options.kinds[index % num_kinds], options.seed + index // num_kinds
        outcomes[kind, outcome] += 1
        if outcome == SLOW:
            print(f"{SLOW}: {kind} {seed}: {str(fuzz_spec(kind, seed, pool))[:400]}", flush=True)
        if finding is None:
            continue
        counts[finding.signature] += 1
        if finding.signature not in faults:
            print(told(finding), flush=True)
            faults[finding.signature] = shrink(finding)
            print("made small:", faults[finding.signature].spec, flush=True)
    for kind in options.kinds:
        cells = {outcome: n for (one, outcome), n in sorted(outcomes.items()) if one == kind}
        print(f"{kind:<8} {sum(cells.values()):6} cases  {cells}")
    print(f"{len(faults)} kinds of fault in {time.monotonic() - started:.0f} s")
    if options.out:
        texts = [told(one, counts[one.signature]) for one in faults.values()]
        options.out.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
