"""64 requests that share a 1,000-token prefix: output tokens a second of the model runner against `transformers` in batches of 16.

Ours computes the prefix once, then all own parts in mixed steps, then decodes all 64 together, with the shared pages as one group.
transformers gets a batch of 16 of the same prompts, all of one length; the other batches would take as long each, so one is timed.
Prefill counts on both sides.

Run: .venv/bin/python tests/bench/bench_shared_prefix.py [--json]     Wanted: at least 5 times the throughput.
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
from radixlm.runtime.plan import SharedGroup

PREFIX_TOKENS = 1008  # whole pages, as the prefix tree would share
OWN_TOKENS = 24
PAGE_SIZE = 16
STEP_TOKENS = 512
THEIR_BATCH = 16


def our_tokens_per_s(runner: ModelRunner, prompts: list[list[int]], num_tokens: int) -> float:
    """Output tokens a second, prefill included."""
    shared_pages = list(range(PREFIX_TOKENS // PAGE_SIZE))
    own_pages = -(-(len(prompts[0]) - PREFIX_TOKENS + num_tokens) // PAGE_SIZE)
    start = time.perf_counter()
    leader = PagedSequence(shared_pages, prompts[0][:PREFIX_TOKENS])
    while leader.num_computed < PREFIX_TOKENS:
        count = min(STEP_TOKENS, PREFIX_TOKENS - leader.num_computed)
        runner.launch(plan_step([(leader, count)], PAGE_SIZE, logits="none"))
    sequences = []
    for index, prompt in enumerate(prompts):
        first = len(shared_pages) + index * own_pages
        sequences.append(
            PagedSequence(
                shared_pages + list(range(first, first + own_pages)), list(prompt), PREFIX_TOKENS
            )
        )
    at_once = max(2, STEP_TOKENS // (len(prompts[0]) - PREFIX_TOKENS))
    for begin in range(0, len(sequences), at_once):
        _step(runner, sequences[begin : begin + at_once])
    for _ in range(num_tokens - 1):
        _step(runner, sequences)
    return len(prompts) * num_tokens / (time.perf_counter() - start)


def _step(runner: ModelRunner, sequences: list[PagedSequence]) -> None:
    group = SharedGroup(np.arange(len(sequences), dtype=np.int32), PREFIX_TOKENS // PAGE_SIZE)
    work = [(sequence, len(sequence.token_ids) - sequence.num_computed) for sequence in sequences]
    result = runner.finish(
        runner.launch(plan_step(work, PAGE_SIZE, groups=(group,), greedy=True)), None
    )
    for sequence, token_id in zip(sequences, result.token_ids.tolist(), strict=True):
        sequence.token_ids.append(token_id)


def their_tokens_per_s(oracle: torch.nn.Module, prompts: list[list[int]], num_tokens: int) -> float:
    """The same with transformers' generate, all prompts as one batch."""
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
    return len(prompts) * num_tokens / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    options = parse_options(__doc__ or "")
    num_requests, num_tokens = (16, 4) if options.quick else (64, 32)
    files = resolve_model(options.model)
    probe = LogitsProbe()
    runner = ModelRunner(
        files,
        num_pages=400,
        page_size=PAGE_SIZE,
        threads=options.threads,
        kv_dtype="int8",
        sample=probe,
    )
    oracle = load_oracle(files)
    random = np.random.default_rng(0)
    prefix = random.integers(0, runner.facts.vocab_size, PREFIX_TOKENS).tolist()
    prompts = [
        prefix + random.integers(0, runner.facts.vocab_size, OWN_TOKENS).tolist()
        for _ in range(num_requests)
    ]
    our_tokens_per_s(runner, prompts[:16], 2)
    mine, other, ratio = alternating(
        lambda: our_tokens_per_s(runner, prompts, num_tokens),
        lambda: their_tokens_per_s(oracle, prompts[:THEIR_BATCH], num_tokens),
        rounds=1,
    )
    rows = {"radixlm, model runner": mine, "transformers generate, batches of 16": other}
    report(f"{num_requests} requests on one prefix", rows, ratio, "tok/s", options.json, floor=5.0)


if __name__ == "__main__":
    main()
