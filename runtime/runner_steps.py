"""What every runner does with a plan, whatever its tensors are: the kernels' `StepBatch`, and sampling with scored rows in chunks.

Owns neither logits nor sampler: both are handed in. The head's result is by far the largest tensor of a step (a row of 49,152 logits is
192 KiB), so rows that are only scored go through it a chunk at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..kernels.step import PrefixGroup, StepBatch
from .plan import I32, U32, BatchPlan, Logprobs, SamplingBatch, ScoreRows, StepResult

L = TypeVar("L")
Masks = Sequence[U32 | None] | None
"""For each of some rows the tokens that matter, or None where all do."""


def step_batch(plan: BatchPlan) -> StepBatch:
    """The plan as the kernels take it."""
    return StepBatch(
        token_ids=plan.token_ids,
        positions=plan.positions,
        slot_ids=plan.slot_ids,
        query_starts=plan.query_starts,
        context_lens=plan.context_lens,
        page_tables=plan.page_tables,
        logit_rows=plan.logit_rows,
        groups=tuple(
            PrefixGroup(group.sequences, group.num_shared_pages) for group in plan.shared_groups
        ),
    )


def sample_step(
    plan: BatchPlan,
    logits_of: Callable[[I32 | None, Masks], L],
    sample: Callable[[L, SamplingBatch, U32 | None, ScoreRows], StepResult],
    masks: U32 | None,
    rows_per_chunk: int,
) -> StepResult:
    """Sample and score a step. `logits_of`: of some of the wanted rows in that order, None for all; and which tokens of them matter."""
    if len(plan.logit_rows) <= rows_per_chunk:
        logits = logits_of(None, masks_of_rows(plan, masks))
        return sample(logits, plan.sampling, masks, plan.scores)
    rows, inverse = np.unique(plan.sampling.rows, return_inverse=True)
    sampling = replace(plan.sampling, rows=inverse.astype(np.int32).reshape(-1))
    sampled = sample(logits_of(rows, None), sampling, masks, _NO_SCORES)
    scores = plan.scores
    parts: list[Logprobs] = []
    for start in range(0, len(scores.rows), rows_per_chunk):
        chunk = slice(start, start + rows_per_chunk)
        places = np.arange(len(scores.rows[chunk]), dtype=np.int32)
        asked = ScoreRows(places, scores.token_ids[chunk], scores.num_logprobs[chunk])
        found = sample(logits_of(scores.rows[chunk], None), _NO_SAMPLING, None, asked).scores
        if found is not None:
            parts.append(found)
    return replace(sampled, scores=_join(parts) if parts else None)


def masks_of_rows(plan: BatchPlan, masks: U32 | None) -> list[U32 | None] | None:
    """For each logit row its mask, where nobody looks at the tokens it refuses; None: every row is wanted whole."""
    if masks is None:
        return None
    sampling = plan.sampling
    found: list[U32 | None] = [None] * len(plan.logit_rows)
    bare = sampling.num_logprobs[sampling.mask_rows] < 0
    samples = np.bincount(sampling.rows, minlength=len(found))
    samples[plan.scores.rows] += 1
    for row, mask, is_bare in zip(sampling.rows[sampling.mask_rows], masks, bare, strict=True):
        if is_bare and samples[row] == 1:
            found[row] = mask
    return found


def _join(parts: list[Logprobs]) -> Logprobs:
    """Chunks of scored rows end to end; each has as many alternatives as its own rows asked for, so they are padded."""
    width = max(part.top_ids.shape[1] for part in parts)

    def widen(table: npt.NDArray[Any], padding: float) -> npt.NDArray[Any]:
        return np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=padding)

    return Logprobs(
        chosen=np.concatenate([part.chosen for part in parts]),
        top_ids=np.concatenate([widen(part.top_ids, -1) for part in parts]),
        top_values=np.concatenate([widen(part.top_values, -np.inf) for part in parts]),
    )


def _empty_sampling() -> SamplingBatch:
    names = SamplingBatch.__dataclass_fields__
    floats = {"temperature", "top_p", "min_p", "typical_p", "bias_values"} | {
        n for n in names if n.endswith("_penalty")
    }
    kinds: dict[str, Any] = {name: np.float32 if name in floats else np.int32 for name in names} | {
        "seeds": np.uint64
    }
    arrays: dict[str, Any] = {name: np.zeros(0, kind) for name, kind in kinds.items()}
    return SamplingBatch(**arrays)


_NO_SCORES = ScoreRows(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))
_NO_SAMPLING = _empty_sampling()
