"""Shared work is done once: tokens computed against the fewest possible, on three shared-prefix workloads through the offline API.

The optimum is the number of tokens in the union trie of all prompts and outputs: what a perfect cache of unlimited size computes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import radixlm

WORKLOADS = Path(__file__).resolve().parents[2].parent / "shared" / "bench" / "workloads.json"
pytestmark = [pytest.mark.data, pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(600)]
ALLOWED_RATIO = 1.05


@pytest.fixture(scope="module")
def workloads() -> dict[str, Any]:
    if not WORKLOADS.is_file():
        pytest.skip("the shared workloads are not beside this checkout")
    return json.loads(WORKLOADS.read_text())


def union_trie_size(sequences: Iterable[Sequence[int]]) -> int:
    """Distinct non-empty prefixes of the sequences."""
    root: dict[int, Any] = {}
    size = 0
    for sequence in sequences:
        node = root
        for token_id in sequence:
            if token_id not in node:
                node[token_id] = {}
                size += 1
            node = node[token_id]
    return size


class Meter:
    """Counts what the engine computes between start and ratio()."""

    def __init__(self, engine: radixlm.Engine) -> None:
        self.engine = engine
        engine.flush()
        self.before = engine.stats()["computed_tokens"]
        self.sequences: list[tuple[int, ...]] = []

    def saw(self, prompt: Any, completion: Any) -> None:
        self.sequences.append(self.engine.tokenize(prompt) + tuple(completion.token_ids))

    def ratio(self) -> float:
        computed = self.engine.stats()["computed_tokens"] - self.before
        return computed / union_trie_size(self.sequences)


def test_many_requests_on_one_prefix(engine: radixlm.Engine, workloads: dict[str, Any]) -> None:
    load = workloads["W4"]
    prompts = [load["prefix"] + question for question in load["q"]]
    meter = Meter(engine)
    for prompt, completion in zip(
        prompts, engine.generate(prompts, max_tokens=8, ignore_eos=True), strict=True
    ):
        meter.saw(prompt, completion)
    assert meter.ratio() <= ALLOWED_RATIO


def test_conversations_sent_back_as_text(engine: radixlm.Engine, workloads: dict[str, Any]) -> None:
    histories: list[list[dict[str, str]]] = [[] for _ in workloads["W5"]]
    meter = Meter(engine)
    for turn in range(5):
        for history, turns in zip(histories, workloads["W5"], strict=True):
            history.append({"role": "user", "content": turns[turn]})
        answers = engine.chat(histories, max_tokens=32, ignore_eos=True)
        for history, answer in zip(histories, answers, strict=True):
            meter.saw(history, answer)
            history.append({"role": "assistant", "content": answer.text or "ok"})
    assert meter.ratio() <= ALLOWED_RATIO


def test_a_tree_of_thoughts(engine: radixlm.Engine, workloads: dict[str, Any]) -> None:
    root = workloads["W6"]["root"] + "\n\nLet us think step by step."
    meter = Meter(engine)

    def grow(prefix: str, path: str, depth: int, pool: ThreadPoolExecutor) -> None:
        prompt = f"{prefix}\nOption {path}:"
        completion = engine.generate(prompt, max_tokens=24, ignore_eos=True)
        meter.saw(prompt, completion)
        if depth < 3:
            waiting.extend(
                pool.submit(grow, prompt + completion.text, f"{path}.{k}", depth + 1, pool)
                for k in range(1, 5)
            )

    waiting: list[Any] = []
    with ThreadPoolExecutor(16) as pool:
        waiting.extend(pool.submit(grow, root, str(k), 1, pool) for k in range(1, 5))
        for future in waiting:  # grows while children are submitted
            future.result()
    assert len(meter.sequences) == 84
    assert meter.ratio() <= ALLOWED_RATIO
