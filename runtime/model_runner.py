"""Runs steps of a real model: plan in, tokens out. The torch side of the seam in `runner_protocol`.

Owns the prepared model and its K/V pool. Knows nothing of requests, text or the prefix tree: pages and rows are numbers in the plan.

A step: page copies, forward pass over all new tokens, LM head on the wanted rows only, sampling. The head's result is by far the largest
tensor of a step (a row of 49,152 logits is 192 KiB), so rows that are only scored go through it in chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..errors import ConfigError
from ..kernels.ops import PreparedModel
from ..kernels.registry import AUTO, usable_backends
from .kv_buffers import allocate_pool, num_pool_bytes
from .model_files import ModelFiles
from .models.registry import open_weights
from .plan import I32, U32, BatchPlan, SamplingBatch, ScoreRows, StepResult
from .runner_protocol import ModelFacts
from .runner_steps import Masks, sample_step, step_batch
from .sampler import sample

Sample = Callable[[Tensor, SamplingBatch, "U32 | None", ScoreRows], StepResult]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
KV_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8}

SCORED_ROWS_PER_CHUNK = 256
"""Rows of the head computed at a time when rows are only scored: 48 MiB of logits for a vocabulary of 49,152."""


@dataclass(frozen=True, slots=True)
class PendingStep:
    """A step that was launched: its plan and the hidden states [R, hidden] of its wanted rows."""

    plan: BatchPlan
    hidden: Tensor


class ModelRunner:
    """A model with `num_pages` pages of K/V, ready for `launch` and `finish`.

    `num_pages` 0: as many as `kv_bytes` holds. `quantization`: "file" lets a backend that can compute with a file's quantized weights do so,
    "none" makes floats of them, "int8" and "int4" round what has more bits. `kv_dtype` "auto": what the backend prefers. `threads` 0: torch's own choice; otherwise set for the whole process. `sample` replaces
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
        kv_dtype: str = AUTO,
        threads: int = 0,
        device: str = "cpu",
        sample: Sample = sample,
    ) -> None:
        if dtype not in DTYPES:
            raise ConfigError(f"dtype={dtype!r} is not one of {', '.join(DTYPES)}", place="dtype")
        if kv_dtype not in (AUTO, *KV_DTYPES):
            raise ConfigError(
                f"kv_dtype={kv_dtype!r} is not one of {', '.join((AUTO, *KV_DTYPES))}",
                place="kv_dtype",
            )
        if threads:
            torch.set_num_threads(threads)
        self._sample = sample
        for backend in usable_backends(kernels, device):
            read_as = quantization
            if quantization == "file" and not backend.takes_quantized:
                read_as = "none"
            stored = KV_DTYPES.get(kv_dtype, backend.kv_dtype or DTYPES[dtype])
            with open_weights(files, DTYPES[dtype], read_as) as weights:
                shape = weights.shape
                refusal = backend.refusal(shape, stored)
                if refusal is not None and kernels != AUTO:
                    raise ConfigError(
                        f"the kernel backend {kernels!r} cannot run this model: {refusal}",
                        place="kernels",
                        hint="Leave the choice to kernels='auto'",
                    )
                if refusal is not None:
                    continue
                page_bytes = num_pool_bytes(shape, 1, page_size, stored)
                num_pages = num_pages or kv_bytes // max(page_bytes, 1)
                pool = allocate_pool(shape, num_pages, page_size, stored, device)
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
            kv_dtype=str(stored).removeprefix("torch."),
        )

    def launch(self, plan: BatchPlan) -> PendingStep:
        """Copy pages, then run the forward pass of the plan's new tokens."""
        self._model.copy_pages(plan.page_copies)
        return PendingStep(plan, self._model.forward(step_batch(plan)))

    @torch.inference_mode()
    def finish(self, pending: PendingStep, masks: U32 | None) -> StepResult:
        """Logits of the wanted rows, masked, sampled and scored. `masks` [M, ceil(V / 32)] in the order of plan.sampling.mask_rows."""
        plan, hidden = pending.plan, pending.hidden

        def logits_of(rows: I32 | None, masks: Masks) -> Tensor:
            if rows is None:
                return self._model.logits(hidden, masks)
            index = torch.from_numpy(rows.astype(np.int64)).to(hidden.device)
            return self._model.logits(hidden.index_select(0, index))

        return sample_step(plan, logits_of, self._sample, masks, SCORED_ROWS_PER_CHUNK)
