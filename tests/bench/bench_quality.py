"""What the roundings of the native kernels cost: perplexity and greedy text of the default model, by weights' arithmetic and K/V type.

Run: .venv/bin/python tests/bench/bench_quality.py [--json] [--quick]     Compared with float weights and float32 keys and values.

Of the model's own file, and of copies of the model as floats and as GPTQ and AWQ checkpoints; each is compared with its own exact values.

Perplexity: the passages of tests/support/quality_text.py, each from its own beginning. Greedy text: 100 beginnings cut from them, 32 tokens
each. Constrained: JSON documents drawn at temperature 1, and how many of them validate. Tool calls: 40 greedy ones over two typed functions.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from bench_report import machine, parse_options
from packed_llamas import Recipe
from paged_steps import LogitsProbe, PagedSequence, plan_step
from quality_checkpoints import checkpoint_of
from quality_text import PASSAGES

import radixlm
from radixlm.runtime.model_files import ModelFiles, resolve_model
from radixlm.runtime.model_runner import ModelRunner
from radixlm.runtime.tokenizer import load_tokenizer

PAGE_SIZE = 16
CONTINUED_TOKENS = 32
BEGINNING_TOKENS = 24
ROWS_TOGETHER = 25
KV_DTYPES = ("float32", "bfloat16", "int8")
COPIES = {
    "floats": (None, [("none", "bfloat16"), ("int8", "bfloat16"), ("int8", "int8")]),
    "gptq, groups of 64": (Recipe("gptq", 64, has_index=False), [("file", "bfloat16"), ("file", "int8")]),
    "awq, groups of 32": (Recipe("awq", 32), [("file", "bfloat16"), ("file", "int8")]),
}  # fmt: skip
PARTS = ("file", "copies", "documents", "calls")
CITIES = ("Oslo", "Lima", "Cairo", "Quito", "Osaka")
TASKS = [
    f"{'How is the weather in ' + city if i % 2 else f'What is {17 + i} plus {5 * i} in {city} time'}?"
    for i in range(8)
    for city in CITIES
]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "is_member": {"type": "boolean"},
    },
    "required": ["name", "age", "is_member"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Outcome:
    """One way of computing: its perplexity, and the greedy continuation of each beginning."""

    perplexity: float
    continuations: list[list[int]]


def measure(runner: ModelRunner, passages: list[list[int]], num_beginnings: int) -> Outcome:
    """Perplexity of the passages, and continuations of their parts."""
    losses = [_losses(runner, ids) for ids in passages]
    found: list[list[int]] = []
    beginnings = _beginnings(passages, num_beginnings)
    for start in range(0, len(beginnings), ROWS_TOGETHER):
        found += _continue(runner, beginnings[start : start + ROWS_TOGETHER])
    return Outcome(float(np.exp(np.concatenate(losses).mean())), found)


def _losses(runner: ModelRunner, ids: list[int]) -> np.ndarray:
    sequence = PagedSequence(list(range(-(-len(ids) // PAGE_SIZE))), ids)
    plan = plan_step([(sequence, len(ids))], PAGE_SIZE, logits="all", greedy=True)
    runner.finish(runner.launch(plan), None)
    logits = torch.from_numpy(runner._sample.logits)  # type: ignore[attr-defined]
    return torch.nn.functional.cross_entropy(
        logits[:-1], torch.tensor(ids[1:]), reduction="none"
    ).numpy()


def _beginnings(passages: list[list[int]], count: int) -> list[list[int]]:
    random = np.random.default_rng(0)
    found: list[list[int]] = []
    for index in range(count):
        ids = passages[index % len(passages)]
        start = int(random.integers(0, len(ids) - BEGINNING_TOKENS))
        found.append(ids[start : start + BEGINNING_TOKENS])
    return found


def _continue(runner: ModelRunner, beginnings: list[list[int]]) -> list[list[int]]:
    pages = -(-(BEGINNING_TOKENS + CONTINUED_TOKENS) // PAGE_SIZE)
    sequences = [
        PagedSequence(list(range(pages * i, pages * (i + 1))), list(ids))
        for i, ids in enumerate(beginnings)
    ]
    work = [(sequence, BEGINNING_TOKENS) for sequence in sequences]
    for _ in range(CONTINUED_TOKENS):
        result = runner.finish(runner.launch(plan_step(work, PAGE_SIZE, greedy=True)), None)
        for sequence, token in zip(sequences, result.token_ids.tolist(), strict=True):
            sequence.token_ids.append(token)
        work = [(sequence, 1) for sequence in sequences]
    return [sequence.token_ids[BEGINNING_TOKENS:] for sequence in sequences]


def compare(ours: list[list[int]], exact: list[list[int]]) -> tuple[float, float]:
    """Share of identical continuations, and the median place (from 0) of the first difference among the others."""
    places = [
        next(i for i, (a, b) in enumerate(zip(mine, other, strict=True)) if a != b)
        for mine, other in zip(ours, exact, strict=True)
        if mine != other
    ]
    return 1 - len(places) / len(ours), float(np.median(places)) if places else float("nan")


def valid_share(model: str, threads: int, kv_dtype: str, count: int) -> float:
    """Share of `count` documents under a schema that parse and have its members."""
    with radixlm.Engine(model=model, threads=threads, kv_dtype=kv_dtype) as engine:
        answers = engine.generate(
            [f"Person number {i} as JSON: " for i in range(count)],
            schema=PERSON,
            max_tokens=64,
            temperature=1.0,
            seed=1,
        )
    return sum(_is_valid(answer.text) for answer in answers) / count


def _is_valid(text: str) -> bool:
    try:
        found = json.loads(text)
    except ValueError:
        return False
    kinds = {name: type(value) for name, value in found.items()}
    return (
        kinds == {"name": str, "age": int, "is_member": bool}
        and len(found["name"]) <= 12
        and 0 <= found["age"] <= 120
    )


def weather(city: str, days: int = 1) -> str:
    """The weather of a city for the next days."""
    return f"{city} {days}"


def add(first: int, second: int) -> int:
    """The sum of two numbers."""
    return first + second


@radixlm.function
def call_a_tool(s: Any, task: str) -> None:
    """One call of `weather` or `add`."""
    s += radixlm.user(task)
    options: Any = {"tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 120}
    s += radixlm.assistant(radixlm.gen("reply", tools=[weather, add], **options))


def tool_calls(model: str, threads: int, quantization: str, kv_dtype: str) -> list[str]:
    """The call that the model writes for each task; "" where it is none that the function takes."""
    options = {"quantization": quantization, "kv_dtype": kv_dtype}
    with radixlm.Engine(model=model, threads=threads, **options) as engine:
        states = call_a_tool.run_batch(
            [{"task": task} for task in TASKS], backend=engine, progress_bar=False
        )
    return ["" if s.error() or not s["reply"].calls else str(s["reply"].calls[0]) for s in states]


def _runner(files: ModelFiles, threads: int, quantization: str, kv_dtype: str) -> ModelRunner:
    return ModelRunner(
        files,
        num_pages=ROWS_TOGETHER * 4,
        page_size=PAGE_SIZE,
        quantization=quantization,
        kv_dtype=kv_dtype,
        threads=threads,
        sample=LogitsProbe(),
    )


Rows = list[tuple[str, str, str, float, float, float, float]]


def compare_ways(
    label: str, files: ModelFiles, ways: list[tuple[str, str]], passages: list[list[int]], threads: int, num_beginnings: int
) -> Rows:  # fmt: skip
    """For each (quantization, kv_dtype) perplexity, its change in percent, share of identical texts and place of the first difference."""
    rows: Rows = []
    exact: Outcome | None = None
    for quantization, kv_dtype in [("none", "float32"), *ways]:
        runner = _runner(files, threads, quantization, kv_dtype)
        outcome = measure(runner, passages, num_beginnings)
        exact = exact or outcome
        same, place = compare(outcome.continuations, exact.continuations)
        change = 100 * (outcome.perplexity / exact.perplexity - 1)
        rows.append((label, quantization, kv_dtype, outcome.perplexity, change, same, place))
        print(".", end="", file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Measure and print."""
    options = parse_options(__doc__ or "", PARTS)
    num_passages, num_beginnings, num_documents = (2, 4, 4) if options.quick else (12, 100, 200)
    files = resolve_model(options.model)
    tokenizer = load_tokenizer(files)
    passages = [tokenizer.encode(text).ids for text in PASSAGES[:num_passages]]
    work = (passages, options.threads, num_beginnings)
    rows: Rows = []
    valid: dict[str, float] = {}
    if "file" in options.part:
        ways = [(how, kv) for how in ("none", "file") for kv in KV_DTYPES][1:]
        rows += compare_ways("the file", files, ways, *work)
    if "copies" in options.part:
        with tempfile.TemporaryDirectory() as folder:
            for label, (recipe, ways) in COPIES.items():
                copy = checkpoint_of(files, recipe, Path(folder, label.split(",")[0]))
                rows += compare_ways(label, copy, ways, *work)
    if "documents" in options.part:
        for kv_dtype in KV_DTYPES[1:]:
            valid[kv_dtype] = valid_share(options.model, options.threads, kv_dtype, num_documents)
    calls: dict[str, tuple[float, float]] = {}
    if "calls" in options.part:
        exact = tool_calls(options.model, options.threads, "none", "float32")
        for kv_dtype in KV_DTYPES[1:]:
            found = tool_calls(options.model, options.threads, "file", kv_dtype)
            same = sum(a == b for a, b in zip(found, exact, strict=True))
            calls[kv_dtype] = (sum(map(bool, found)) / len(TASKS), same / len(TASKS))
    num_tokens = sum(len(ids) - 1 for ids in passages)
    if options.json:
        parts = {"rows": rows, "valid": valid, "calls": calls}
        print(json.dumps({"bench": "quality", **parts, "machine": machine()}))
        return
    print(f"quality of {options.model}, {num_tokens} tokens, {num_beginnings} continuations ({machine()})")  # fmt: skip
    print("  weights             quantization  keys/values  perplexity  change   identical  first difference")  # fmt: skip
    for label, how, kv, perplexity, change, same, place in rows:
        print(f"  {label:<19} {how:<13} {kv:<12} {perplexity:10.3f} {change:+7.3f}% {same:9.0%} {place:10.0f}")  # fmt: skip
    for name, share in valid.items():
        print(f"  documents that validate, {name}: {share:.0%} of {num_documents}")
    for name, (taken, same) in calls.items():
        print(f"  tool calls that validate, {name}: {taken:.0%} of {len(TASKS)}; those of exact values: {same:.0%}")  # fmt: skip


if __name__ == "__main__":
    main()
