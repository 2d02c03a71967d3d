"""What each part of the engine is worth: the same work with one part left out at a time, gateway and engine in this process.

    no tree           no two requests share a prefix          no jump-forward      forced text is sampled token by token
    no sparse head    masks do not narrow the head             reference kernels    torch, no native code

Work: JSON under a schema, 16 documents behind one instruction of some hundred tokens. Rows are documents a second, and the whole in multiples of them.

Run: .venv/bin/python tests/bench/bench_ablations.py [--json] [--quick]
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from bench_report import machine, parse_options

from radixlm import assistant, function, gen, system, user
from radixlm.bench_programs import model_engine
from radixlm.runtime import native_runner
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.in_process import InProcess

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "city": {"enum": ["Lisbon", "Oslo", "Nairobi", "Osaka"]},
        "is_member": {"type": "boolean"},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "city", "is_member", "age"],
    "additionalProperties": False,
}
RULES = " ".join(
    f"Rule {i}: copy what the text says about field {i} and add nothing." for i in range(20)
)
TEXTS = [
    f"Member number {i} is Ann, {20 + i}, from {c}."
    for i, c in enumerate(["Oslo", "Osaka", "Lisbon", "Nairobi"] * 4)
]
ABLATIONS = ("", "no tree", "no jump-forward", "no sparse head", "reference kernels")


@function
def extract(s: Any, text: str, jump_forward: bool) -> None:
    """One document."""
    s += system(f"You extract data as JSON. {RULES}")
    s += user(text) + assistant(
        gen("row", json_schema=SCHEMA, max_tokens=90, jump_forward=jump_forward)
    )


def documents_per_s(config: EngineConfig, without: str, rounds: int) -> float:
    """The median over rounds; each begins with an empty cache."""
    rates: list[float] = []
    for _ in range(rounds):
        opened = model_engine(
            replace(config, kernels="reference") if without == "reference kernels" else config
        )
        core, ready, tokenizer = opened(512, lambda limits: limits)
        items = [{"text": text, "jump_forward": without != "no jump-forward"} for text in TEXTS]
        with InProcess(core, ready, tokenizer, has_cache=without != "no tree") as backend:
            extract.run("warm", items[0]["jump_forward"], backend=backend)
            began_s = time.perf_counter()
            states = extract.run_batch(items, backend=backend, progress_bar=False)
            spent_s = time.perf_counter() - began_s
        for state in states:
            json.loads(state["row"])
        rates.append(len(items) / spent_s)
    return median(rates)


def main() -> None:
    """Measure and print."""
    options = parse_options(__doc__ or "")
    config = EngineConfig.create(model=options.model, threads=options.threads)
    narrowed = native_runner.sample_step
    found: dict[str, float] = {}
    for without in ABLATIONS:
        if without == "no sparse head":
            native_runner.sample_step = lambda plan, logits_of, *rest: narrowed(
                plan, lambda rows, _: logits_of(rows, None), *rest
            )
        found[without] = documents_per_s(config, without, 1 if options.quick else 3)
        native_runner.sample_step = narrowed
    whole = found[""]
    if options.json:
        print(json.dumps({"bench": "ablations", "documents_per_s": found, "machine": machine()}))
        return
    for without, rate in found.items():
        print(f"{without or 'whole':<18} {rate:6.2f} documents/s   whole is {whole / rate:.2f}")
    print(machine())


if __name__ == "__main__":
    main()
