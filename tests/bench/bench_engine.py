"""The whole engine, over its sockets, against `transformers` in the same process: one stream, and 64 requests on a 1,000-token prefix.

What a user of `radixlm.Engine` sees, processes and messages included; the two other benches compare the model runner alone. Prefill counts on
both sides of the shared-prefix row. The engine sleeps while transformers runs, and the other way round.

Run: .venv/bin/python tests/bench/bench_engine.py [--json]     Wanted: at least as fast, and at least 5 times the throughput.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from bench_report import alternating, parse_options, report
from transformers_oracle import load_oracle

import radixlm
from radixlm.runtime.model_files import resolve_model

PROMPT_TOKENS = 64
PREFIX_TOKENS = 1000
OWN_TOKENS = 32
THEIR_BATCH = 16


def their_seconds(oracle: Any, prompts: list[list[int]], num_tokens: int) -> float:
    """One batch through transformers' generate, greedy."""
    ids = torch.tensor(prompts)
    start = time.perf_counter()
    with torch.inference_mode():
        oracle.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=num_tokens,
            max_new_tokens=num_tokens,
            pad_token_id=0,
        )
    return time.perf_counter() - start


def our_seconds(engine: radixlm.Engine, prompts: list[list[int]], num_tokens: int) -> float:
    """The same prompts as one list through the engine, from an empty cache."""
    engine.flush()
    start = time.perf_counter()
    engine.generate(prompts, max_tokens=num_tokens, ignore_eos=True, progress=False)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    options = parse_options(__doc__ or "")
    num_decode, rounds = (16, 1) if options.quick else (64, 5)
    num_requests, num_out = (16, 4) if options.quick else (64, 32)
    torch.set_num_threads(options.threads)
    oracle = load_oracle(resolve_model(options.model))
    with radixlm.Engine(options.model, threads=options.threads) as engine:
        random = np.random.default_rng(0)
        size = engine.facts.vocab_size
        prompt = random.integers(17, size, PROMPT_TOKENS).tolist()
        prefix = random.integers(17, size, PREFIX_TOKENS).tolist()
        prompts = [
            prefix + random.integers(17, size, OWN_TOKENS).tolist() for _ in range(num_requests)
        ]

        def ours() -> float:
            prefill_s = our_seconds(engine, [prompt], 1)
            return num_decode / (our_seconds(engine, [prompt], num_decode + 1) - prefill_s)

        def theirs() -> float:
            prefill_s = their_seconds(oracle, [prompt], 1)
            return num_decode / (their_seconds(oracle, [prompt], num_decode + 1) - prefill_s)

        ours(), theirs()  # the first runs allocate and choose algorithms
        mine, other, ratio = alternating(ours, theirs, rounds)
        rows = {"radixlm.Engine": mine, "transformers generate": other}
        report("one stream, decode, whole engine", rows, ratio, "tok/s", options.json, floor=1.0)
        mine, other, ratio = alternating(
            lambda: num_requests * num_out / our_seconds(engine, prompts, num_out),
            lambda: THEIR_BATCH * num_out / their_seconds(oracle, prompts[:THEIR_BATCH], num_out),
            rounds=1,
        )
        rows = {"radixlm.Engine": mine, "transformers generate, batches of 16": other}
        title = f"{num_requests} requests on one prefix, whole engine"
        report(title, rows, ratio, "tok/s", options.json, floor=5.0)


if __name__ == "__main__":
    main()
