"""A runner without a model. Its K/V slots hold (token, position); the logits of a row are a hash of all ids up to it, read
back THROUGH the page table, so any mistake with pages, copies or cursors changes the output or fails an assertion.

Sampling is small numpy, with noise that depends on (seed, token, position, choice) only, as the contract says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from radixlm.runtime.plan import BatchPlan, Logprobs, StepResult

EMPTY = -1


def mix(values):
    """splitmix64's finaliser over uint64 arrays."""
    values = values.astype(np.uint64)
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))


def uniform(values):
    """uint64 -> float64 in (0, 1)."""
    return ((mix(values) >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53


@dataclass
class FakePending:
    plan: BatchPlan
    logits: np.ndarray


class FakeRunner:
    """`steer(ids) -> {token: bonus}` may push the model towards a script; `before_launch(plan)` may raise or record."""

    def __init__(
        self, vocab_size: int, num_pages: int, page_size: int, steer: Callable | None = None
    ) -> None:
        self.vocab_size = vocab_size
        self.page_size = page_size
        self.kv = np.full((num_pages * page_size, 2), EMPTY, dtype=np.int64)
        self.steer = steer
        self.before_launch: Callable[[BatchPlan], None] = lambda plan: None
        self.plans: list[BatchPlan] = []
        self.num_computed = 0
        self._columns = np.arange(vocab_size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)

    def launch(self, plan: BatchPlan) -> FakePending:
        self.before_launch(plan)
        self.plans.append(plan)
        self.num_computed += int(plan.token_ids.size)
        for source, destination, count in plan.page_copies.tolist():
            a, b = source * self.page_size, destination * self.page_size
            self.kv[b : b + count] = self.kv[a : a + count]
        assert len(set(plan.slot_ids.tolist())) == plan.slot_ids.size, "two tokens write one slot"
        self.kv[plan.slot_ids, 0] = plan.token_ids
        self.kv[plan.slot_ids, 1] = plan.positions
        self._check_groups(plan)
        logits = np.empty((plan.logit_rows.size, self.vocab_size), dtype=np.float64)
        r = 0
        for s, length in enumerate(plan.context_lens.tolist()):
            start, stop = int(plan.query_starts[s]), int(plan.query_starts[s + 1])
            places = np.arange(length)
            slots = plan.page_tables[s, places // self.page_size].astype(np.int64) * self.page_size
            seen = self.kv[slots + places % self.page_size]
            assert (seen[:, 1] == places).all(), "a page holds K/V of other positions"
            ids = seen[:, 0].astype(np.uint64)
            with np.errstate(over="ignore"):
                hashes = np.cumsum(
                    mix(ids * np.uint64(1_000_003) + places.astype(np.uint64)), dtype=np.uint64
                )
            while r < plan.logit_rows.size and plan.logit_rows[r] < stop:
                position = int(plan.logit_rows[r]) - start + length - (stop - start)
                logits[r] = 6 * uniform(hashes[position] + self._columns)
                for token, bonus in (
                    self.steer(ids[: position + 1].tolist()) if self.steer else {}
                ).items():
                    logits[r, token] += bonus
                r += 1
        assert r == plan.logit_rows.size
        return FakePending(plan, logits)

    def _check_groups(self, plan: BatchPlan) -> None:
        seen: set[int] = set()
        for group in plan.shared_groups:
            members = group.sequences.tolist()
            assert len(members) >= 2
            assert not seen & set(members)
            seen |= set(members)
            heads = plan.page_tables[members, : group.num_shared_pages]
            assert group.num_shared_pages >= 1
            assert (heads == heads[0]).all()
            starts = plan.context_lens[members] - np.diff(plan.query_starts)[members]
            assert (group.num_shared_pages * self.page_size <= starts).all()

    def finish(self, pending: FakePending, masks: np.ndarray | None) -> StepResult:
        batch, raw = pending.plan.sampling, pending.logits
        logits = raw[batch.rows].copy()
        _penalise(logits, batch)
        np.add.at(logits, (batch.bias_rows, batch.bias_token_ids), batch.bias_values)
        if masks is not None:
            bits = np.unpackbits(masks.view(np.uint8), axis=1, bitorder="little")[
                :, : self.vocab_size
            ]
            logits[batch.mask_rows] = np.where(bits.astype(bool), logits[batch.mask_rows], -np.inf)
        tokens = np.array(
            [self._sample(row, batch, k) for k, row in enumerate(logits)], dtype=np.int32
        )
        errors = tuple(
            (k, "no finite logit") for k, token in enumerate(tokens.tolist()) if token < 0
        )
        scores = pending.plan.scores
        return StepResult(
            token_ids=tokens,
            logprobs=_logprobs(raw[batch.rows], tokens, batch.num_logprobs),
            scores=_logprobs(raw[scores.rows], scores.token_ids, scores.num_logprobs),
            errors=errors,
        )

    def _sample(self, logits: np.ndarray, batch, k: int) -> int:
        if not np.isfinite(logits).any():
            return -1
        if batch.temperature[k] == 0:
            return int(logits.argmax())
        scaled = logits / batch.temperature[k]
        if batch.top_k[k]:
            scaled = np.where(scaled >= np.sort(scaled)[-int(batch.top_k[k])], scaled, -np.inf)
        counter = np.uint64(
            (int(batch.seeds[k]) * 31 + int(batch.positions[k]) * 1009 + int(batch.choice_index[k]))
            % 2**64
        )
        with np.errstate(over="ignore"):
            noise = -np.log(-np.log(uniform(mix(np.array([counter]))[0] + self._columns)))
        return int((scaled + noise).argmax())


def _penalise(logits: np.ndarray, batch) -> None:
    rows, ids = batch.count_rows, batch.count_token_ids
    if not rows.size:
        return
    values = logits[rows, ids]
    seen = (batch.count_output > 0) | (batch.count_prompt > 0)
    factor = np.where(seen, batch.repetition_penalty[rows], 1.0)
    values = np.where(values > 0, values / factor, values * factor)
    values -= (
        batch.count_output * batch.frequency_penalty[rows]
        + (batch.count_output > 0) * batch.presence_penalty[rows]
    )
    logits[rows, ids] = values


def _logprobs(logits: np.ndarray, tokens: np.ndarray, wanted: np.ndarray) -> Logprobs | None:
    if not (wanted >= 0).any():
        return None
    values = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    most = max(int(wanted.max()), 0)
    top_ids = np.argsort(-values, axis=1, kind="stable")[:, :most].astype(np.int32)
    return Logprobs(
        chosen=values[np.arange(len(tokens)), np.maximum(tokens, 0)].astype(np.float32),
        top_ids=top_ids,
        top_values=np.take_along_axis(values, top_ids.astype(np.int64), axis=1).astype(np.float32),
    )
