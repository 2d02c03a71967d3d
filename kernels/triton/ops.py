"""The ops of the Triton backend: its kernels where there are any, the reference for the rest.

Owns the split of a step's attention: sequences with one new token go to the decode kernel, chunks to the reference's plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..ops import DecoderShape, KvPool, Rope, StepBatch
from ..reference.backend import ReferenceMeta, ReferenceOps
from .paged_decode_attention import paged_decode_attention
from .rms_norm import add_rms_norm, rms_norm


@dataclass(frozen=True, slots=True)
class TritonMeta(ReferenceMeta):
    """The reference's tensors (its plan covers the chunks only), and those of the decoding sequences."""

    rows: Tensor  # int64 [S']
    context_lens: Tensor  # int32 [S']
    page_tables: Tensor  # int32 [S', P]


class TritonOps(ReferenceOps):
    """See Ops. On a CPU it runs under Triton's interpreter only (TRITON_INTERPRET=1 before the first import)."""

    def begin_step(
        self, batch: StepBatch, shape: DecoderShape, rope: Rope, kv: KvPool
    ) -> TritonMeta:
        """See Ops."""
        decoding = np.flatnonzero(np.diff(batch.query_starts) == 1)
        meta = self._reference_meta(batch, shape, rope, kv, skip=decoding)
        fields = {name: getattr(meta, name) for name in ReferenceMeta.__dataclass_fields__}
        return TritonMeta(
            **fields,
            rows=self._tensor(batch.query_starts[decoding]),
            context_lens=torch.from_numpy(batch.context_lens[decoding]).to(self._device),
            page_tables=torch.from_numpy(batch.page_tables[decoding]).to(self._device),
        )

    def rms_norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """See Ops."""
        return rms_norm(x, weight, epsilon)

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, epsilon: float
    ) -> tuple[Tensor, Tensor]:
        """See Ops."""
        return add_rms_norm(x, residual, weight, epsilon)

    def attention(self, q: Tensor, layer: int, kv: KvPool, meta: TritonMeta) -> Tensor:
        """See Ops."""
        out = super().attention(
            q, layer, kv, meta
        )  # rows of decoding sequences are not in its plan
        if len(meta.rows):
            paged_decode_attention(
                out,
                q,
                kv.keys[layer],
                kv.values[layer],
                meta.rows,
                meta.context_lens,
                meta.page_tables,
                kv.page_size,
            )
        return out
