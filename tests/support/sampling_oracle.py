"""Sampling of one row the slow way: plain Python and numpy, one step after the other, sorting whole lists.
The definition that the vectorised sampler is tested against. Also builders of sampling batches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from radixlm.runtime.plan import SamplingBatch, ScoreRows

NO_SCORES = ScoreRows(
    rows=np.zeros(0, np.int32), token_ids=np.zeros(0, np.int32), num_logprobs=np.zeros(0, np.int32)
)


@dataclass
class Row:
    """The sampling arguments of one row; the defaults mean greedy and nothing else."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    seed: int = 0
    position: int = 0
    choice: int = 0
    repetition: float = 1.0
    frequency: float = 0.0
    presence: float = 0.0
    output_counts: dict[int, int] = field(default_factory=dict)
    prompt_ids: set[int] = field(default_factory=set)
    bias: dict[int, float] = field(default_factory=dict)
    num_logprobs: int = -1
    allowed: set[int] | None = None


def build_batch(
    rows: list[Row], vocab_size: int, logit_rows: list[int] | None = None
) -> tuple[SamplingBatch, np.ndarray | None]:
    """The plan's arrays for rows, and the packed masks."""

    def column(name: str, dtype: type) -> np.ndarray:
        return np.array([getattr(row, name) for row in rows], dtype=dtype)

    counts = [
        (k, token_id, row.output_counts.get(token_id, 0), int(token_id in row.prompt_ids))
        for k, row in enumerate(rows)
        for token_id in sorted(row.prompt_ids | set(row.output_counts))
    ]
    biases = [
        (k, token_id, value) for k, row in enumerate(rows) for token_id, value in row.bias.items()
    ]
    mask_rows = [k for k, row in enumerate(rows) if row.allowed is not None]
    masks = np.zeros((len(mask_rows), -(-vocab_size // 32)), dtype=np.uint32)
    for i, k in enumerate(mask_rows):
        for token_id in rows[k].allowed or ():
            masks[i, token_id // 32] |= np.uint32(1 << (token_id % 32))
    count_columns = np.array(counts, dtype=np.int32).reshape(-1, 4)
    batch = SamplingBatch(
        rows=np.array(range(len(rows)) if logit_rows is None else logit_rows, dtype=np.int32),
        temperature=column("temperature", np.float32),
        top_k=column("top_k", np.int32),
        top_p=column("top_p", np.float32),
        min_p=column("min_p", np.float32),
        typical_p=column("typical_p", np.float32),
        seeds=column("seed", np.uint64),
        positions=column("position", np.int32),
        choice_index=column("choice", np.int32),
        repetition_penalty=column("repetition", np.float32),
        frequency_penalty=column("frequency", np.float32),
        presence_penalty=column("presence", np.float32),
        count_rows=count_columns[:, 0],
        count_token_ids=count_columns[:, 1],
        count_output=count_columns[:, 2],
        count_prompt=count_columns[:, 3],
        bias_rows=np.array([b[0] for b in biases], dtype=np.int32),
        bias_token_ids=np.array([b[1] for b in biases], dtype=np.int32),
        bias_values=np.array([b[2] for b in biases], dtype=np.float32),
        num_logprobs=column("num_logprobs", np.int32),
        mask_rows=np.array(mask_rows, dtype=np.int32),
    )
    return batch, masks if mask_rows else None


def adjusted(logits: np.ndarray, row: Row) -> np.ndarray:
    """Scores after penalties, bias and mask."""
    scores = logits.astype(np.float64)
    for token_id in row.prompt_ids | set(row.output_counts):
        value = scores[token_id]
        value = value / row.repetition if value > 0 else value * row.repetition
        count = row.output_counts.get(token_id, 0)
        scores[token_id] = value - row.frequency * count - row.presence * (count > 0)
    for token_id, value in row.bias.items():
        scores[token_id] += value
    if row.allowed is not None:
        for token_id in range(scores.size):
            if token_id not in row.allowed:
                scores[token_id] = -math.inf
    return scores


def probabilities(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def kept_tokens(scores: np.ndarray, row: Row) -> tuple[set[int], bool]:
    """Tokens that stay after truncation of scores / temperature, and whether the cut was too close to call in float32."""
    order = [int(i) for i in np.lexsort((np.arange(scores.size), -scores)) if scores[i] > -math.inf]
    is_close = False
    if row.top_k > 0:
        order = order[: row.top_k]
    if row.typical_p < 1:
        p = probabilities(scores[order])
        entropy = float(-(p * np.log(p)).sum())
        deviation = np.abs(-np.log(p) - entropy)
        by_deviation = np.argsort(deviation, kind="stable")
        sums = np.cumsum(p[by_deviation])
        last = min(int((sums < row.typical_p).sum()), len(order) - 1)
        is_close |= bool(np.abs(sums - row.typical_p).min() < 1e-5)
        cut = deviation[by_deviation[last]]
        near = np.abs(deviation - cut) < 1e-5
        is_close |= len({float(scores[order[i]]) for i in np.flatnonzero(near)}) > 1
        order = [t for t, d in zip(order, deviation, strict=True) if d <= cut + 1e-12]
    if row.top_p < 1:
        sums = np.cumsum(probabilities(scores[order]))
        is_close |= bool(np.abs(sums - row.top_p).min() < 1e-5)
        order = order[: int((sums < row.top_p).sum()) + 1]
    if row.min_p > 0:
        p = probabilities(scores[order])
        is_close |= bool(np.abs(p / p.max() - row.min_p).min() < 1e-5)
        order = [t for t, q in zip(order, p, strict=True) if q >= row.min_p * p.max()]
    return set(order), is_close


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 on Python integers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (
            (p1 >> 32) ^ c1 ^ k0,
            p1 & 0xFFFFFFFF,
            (p0 >> 32) ^ c3 ^ k1,
            p0 & 0xFFFFFFFF,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def noise(token_id: int, row: Row) -> float:
    words = philox(
        (token_id // 4, row.position, row.choice, 0), (row.seed & 0xFFFFFFFF, row.seed >> 32)
    )
    v = min((words[token_id % 4] + 0.5) / 2.0**32, 1 - 2.0**-24)
    return -math.log(-math.log1p(-v))


def draw(logits: np.ndarray, row: Row) -> tuple[int, bool]:
    """The sampled token, and whether the answer hangs on the last bits of float32."""
    scores = adjusted(logits, row)
    if row.temperature == 0:
        best = int(scores.argmax())
        others = np.delete(scores, best)
        return best, bool(others.size and 0 < scores[best] - others.max() < 1e-5)
    scores = (scores - scores.max()) / row.temperature
    kept, is_close = kept_tokens(scores, row)
    reached = sorted(((scores[t] + noise(t, row), -t) for t in kept), reverse=True)
    if len(reached) > 1 and reached[0][0] - reached[1][0] < 1e-4:
        is_close = True
    return -reached[0][1], is_close
