"""Runs steps of a real model: plan in, tokens out. The torch side of the seam in `runner_protocol`.

Owns the prepared model and its K/V pool. Knows nothing of requests, text or the prefix tree: pages and rows are numbers in the plan.

A step: page copies, forward pass over all new tokens, LM head on the wanted rows only, sampling. The head's result is by far the largest
tensor of a step (a row of 49,152 logits is 192 KiB), so rows that are only scored go through it in chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..errors import ConfigError
from ..kernels.ops import PrefixGroup, PreparedModel, StepBatch
from ..kernels.registry import AUTO, usable_backends
from .kv_buffers import allocate_pool, num_pool_bytes
from .model_files import ModelFiles
from .models.registry import open_weights
from .plan import U32, BatchPlan, Logprobs, SamplingBatch, ScoreRows, StepResult
from .sampler import sample

Sample = Callable[[Tensor, SamplingBatch, "U32 | None", ScoreRows], StepResult]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

SCORED_ROWS_PER_CHUNK = 256
"""Rows of the head computed at a time when rows are only scored: 48 MiB of logits for a vocabulary of 49,152."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the rest of the engine must know of the model that was loaded."""

    vocab_size: int  # columns of the logits
    context_length: int  # tokens
    num_pages: int
    page_size: int  # tokens
    page_bytes: int  # keys and values of a page, all layers
    kernels: str  # name of the backend that serves
    dtype: str


@dataclass(frozen=True, slots=True)
class PendingStep:
    """A step that was launched: its plan and the hidden states [R, hidden] of its wanted rows."""

    plan: BatchPlan
    hidden: Tensor


class ModelRunner:
    """A model with `num_pages` pages of K/V, ready for `launch` and `finish`.

    `num_pages` 0: as many as `kv_bytes` holds. `quantization`: "file" lets a backend that can compute with a file's quantized weights do so,
    "none" makes floats of them. `threads` 0: torch's own choice; otherwise set for the whole process. `sample` replaces
    the sampler (tests). Raises ModelError for files that cannot be run and ConfigError for an option that cannot be met.
    """

    def __init__(
        self,
        files: ModelFiles,
        *,
        num_pages: int = 0,
        kv_bytes: int = 0,
        page_size: int = 16,
        kernels: str = AUTO,
        quantization: str = "file",
        dtype: str = "float32",
        threads: int = 0,
        device: str = "cpu",
        sample: Sample = sample,
    ) -> None:
        if dtype not in DTYPES:
            raise ConfigError(f"dtype={dtype!r} is not one of {', '.join(DTYPES)}", place="dtype")
        if threads:
            torch.set_num_threads(threads)
        self._sample = sample
        for backend in usable_backends(kernels, device):
            keeps = backend.takes_quantized and quantization == "file"
            with open_weights(files, DTYPES[dtype], keeps) as weights:
                shape = weights.shape
                refusal = backend.refusal(shape, DTYPES[dtype])
                if refusal is not None and kernels != AUTO:
                    raise ConfigError(
                        f"the kernel backend {kernels!r} cannot run this model: {refusal}",
                        place="kernels",
                        hint="Leave the choice to kernels='auto'",
                    )
                if refusal is not None:
                    continue
                page_bytes = num_pool_bytes(shape, 1, page_size, DTYPES[dtype])
                num_pages = num_pages or kv_bytes // max(page_bytes, 1)
                pool = allocate_pool(shape, num_pages, page_size, DTYPES[dtype], device)
                self._model: PreparedModel = backend.prepare(weights, pool)
                break
        self.facts = ModelFacts(
            vocab_size=shape.vocab_size,
            context_length=shape.context_length,
            num_pages=num_pages,
            page_size=page_size,
            page_bytes=page_bytes,
            kernels=backend.name,
            dtype=dtype,
        )

    def launch(self, plan: BatchPlan) -> PendingStep:
        """Copy pages, then run the forward pass of the plan's new tokens."""
        self._model.copy_pages(plan.page_copies)
        return PendingStep(plan, self._model.forward(_step_batch(plan)))

    @torch.inference_mode()
    def finish(self, pending: PendingStep, masks: U32 | None) -> StepResult:
        """Logits of the wanted rows, masked, sampled and scored. `masks` [M, ceil(V / 32)] in the order of plan.sampling.mask_rows."""
        plan, hidden = pending.plan, pending.hidden
        if len(hidden) <= SCORED_ROWS_PER_CHUNK:
            return self._sample(self._model.logits(hidden), plan.sampling, masks, plan.scores)
        rows, inverse = np.unique(plan.sampling.rows, return_inverse=True)
        sampling = replace(plan.sampling, rows=inverse.astype(np.int32).reshape(-1))
        sampled = self._sample(self._logits(hidden, rows), sampling, masks, _NO_SCORES)
        return replace(sampled, scores=self._score(hidden, plan.scores))

    def _score(self, hidden: Tensor, scores: ScoreRows) -> Logprobs | None:
        parts: list[Logprobs] = []
        for start in range(0, len(scores.rows), SCORED_ROWS_PER_CHUNK):
            chunk = slice(start, start + SCORED_ROWS_PER_CHUNK)
            rows = np.arange(len(scores.rows[chunk]), dtype=np.int32)
            asked = ScoreRows(rows, scores.token_ids[chunk], scores.num_logprobs[chunk])
            found = self._sample(
                self._logits(hidden, scores.rows[chunk]), _NO_SAMPLING, None, asked
            ).scores
            if found is not None:
                parts.append(found)
        return _join(parts) if parts else None

    def _logits(self, hidden: Tensor, rows: np.ndarray) -> Tensor:
        return self._model.logits(
            hidden.index_select(0, torch.from_numpy(rows.astype(np.int64)).to(hidden.device))
        )


def _step_batch(plan: BatchPlan) -> StepBatch:
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


def _join(parts: list[Logprobs]) -> Logprobs:
    """Chunks of scored rows end to end; each has as many alternatives as its own rows asked for, so they are padded."""
    width = max(part.top_ids.shape[1] for part in parts)

    def widen(table: np.ndarray, padding: float) -> np.ndarray:
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
    kinds = {name: np.float32 if name in floats else np.int32 for name in names} | {
        "seeds": np.uint64
    }
    return SamplingBatch(**{name: np.zeros(0, kind) for name, kind in kinds.items()})


_NO_SCORES = ScoreRows(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))
_NO_SAMPLING = _empty_sampling()
