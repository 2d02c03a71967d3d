"""One stream, greedy: decode tokens a second of the model runner against `transformers` generate, same machine, dtype and threads.

Run: .venv/bin/python tests/bench/bench_decode.py [--json]     Wanted: at least as fast.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from bench_report import alternating, parse_options, report
from paged_steps import LogitsProbe, PagedSequence, plan_step
from transformers_oracle import load_oracle

from radixlm.runtime.model_files import resolve_model
from radixlm.runtime.model_runner import ModelRunner

PROMPT_TOKENS = 64
PAGE_SIZE = 16


def main() -> None:
    """Measure and print."""
    options = parse_options(__doc__ or "")
    num_tokens, rounds = (16, 1) if options.quick else (64, 5)
    files = resolve_model(options.model)
    runner = ModelRunner(
        files,
        num_pages=64,
        page_size=PAGE_SIZE,
        threads=options.threads,
        kv_dtype="int8",
        sample=LogitsProbe(),
    )
    oracle = load_oracle(files)
    prompt = np.random.default_rng(0).integers(0, runner.facts.vocab_size, PROMPT_TOKENS).tolist()

    def ours() -> float:
        sequence = PagedSequence(list(range(64)), list(prompt))
        result = runner.finish(
            runner.launch(plan_step([(sequence, PROMPT_TOKENS)], PAGE_SIZE, greedy=True)), None
        )
        start = time.perf_counter()
        for _ in range(num_tokens):
            sequence.token_ids.append(int(result.token_ids[0]))
            result = runner.finish(
                runner.launch(plan_step([(sequence, 1)], PAGE_SIZE, greedy=True)), None
            )
        return num_tokens / (time.perf_counter() - start)

    def theirs() -> float:
        ids = torch.tensor([prompt])
        arguments = {"attention_mask": torch.ones_like(ids), "do_sample": False, "pad_token_id": 0}

        def generate(count: int) -> float:
            start = time.perf_counter()
            with torch.inference_mode():
                oracle.generate(ids, min_new_tokens=count, max_new_tokens=count, **arguments)
            return time.perf_counter() - start

        prefill_s = generate(1)
        return num_tokens / (generate(num_tokens + 1) - prefill_s)

    ours(), theirs()  # the first runs allocate and choose algorithms
    mine, other, ratio = alternating(ours, theirs, rounds)
    rows = {"radixlm, model runner": mine, "transformers generate": other}
    report("one stream, decode", rows, ratio, "tok/s", options.json, floor=1.0)


if __name__ == "__main__":
    main()
