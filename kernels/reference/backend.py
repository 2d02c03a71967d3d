"""The reference backend: every op in plain torch, on any device torch has.

Owns the choice between equal torch routes (packed linear, flash attention) and the per-step tensors. Knows nothing of other backends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..composed import ComposedModel
from ..ops import (
    I32,
    I64,
    DecoderShape,
    DecoderWeights,
    KvPool,
    Linear,
    PreparedModel,
    QuantizedWeight,
    Rope,
    StepBatch,
)
from . import elementwise, linear
from .attention import Attend, attention, choose_attend
from .attention_plan import AttentionPlan, PlanBuilder


@dataclass(frozen=True, slots=True)
class ReferenceMeta:
    """One step's tensors, the same for all layers."""

    token_ids: Tensor  # int64 [T]
    slot_ids: Tensor  # int64 [T]
    rotations: Tensor  # complex64 [T, 1, rotary / 2]
    logit_rows: Tensor | None  # int64 [R]; None when all rows are wanted
    num_heads: int
    plan: AttentionPlan


class ReferenceOps:
    """The definition of each op (see `ops.Ops`). `attend` and `pack` pick among equal routes; None: the fastest that works here."""

    def __init__(
        self, device: str = "cpu", *, attend: Attend | None = None, pack: bool | None = None
    ) -> None:
        self._device = torch.device(device)
        self._attend = attend or choose_attend(self._device)
        self._pack = (self._device.type == "cpu" and linear.can_pack()) if pack is None else pack

    def begin_step(
        self, batch: StepBatch, shape: DecoderShape, rope: Rope, kv: KvPool
    ) -> ReferenceMeta:
        """See Ops."""
        return self._reference_meta(batch, shape, rope, kv)

    def _reference_meta(
        self, batch: StepBatch, shape: DecoderShape, rope: Rope, kv: KvPool, skip: I64 | None = None
    ) -> ReferenceMeta:
        """The step's tensors; `skip`: sequences whose attention another kernel computes."""
        positions = self._tensor(batch.positions)
        all_rows = len(batch.logit_rows) == len(batch.token_ids)
        heads_per_kv = shape.num_heads // shape.num_kv_heads
        builder = PlanBuilder(batch, kv.page_size, heads_per_kv, self._device, skip)
        return ReferenceMeta(
            token_ids=self._tensor(batch.token_ids),
            slot_ids=self._tensor(batch.slot_ids),
            rotations=elementwise.rotations(positions, rope.inverse_frequencies, rope.scale),
            logit_rows=None if all_rows else self._tensor(batch.logit_rows),
            num_heads=shape.num_heads,
            plan=builder.build(),
        )

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(array.astype(np.int64)).to(self._device)

    def prepare_linear(self, linear_: Linear) -> object:
        """See Ops."""
        return linear.prepare(linear_, self._pack)

    def embed(self, meta: ReferenceMeta, table: Tensor | QuantizedWeight) -> Tensor:
        """See Ops."""
        if isinstance(table, QuantizedWeight):
            return table.rows(meta.token_ids).to_floats()
        return table.index_select(0, meta.token_ids)

    def rms_norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """See Ops."""
        return elementwise.rms_norm(x, weight, epsilon)

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, epsilon: float
    ) -> tuple[Tensor, Tensor]:
        """See Ops."""
        return elementwise.add_rms_norm(x, residual, weight, epsilon)

    def linear(self, x: Tensor, prepared: object) -> Tensor:
        """See Ops."""
        return linear.apply(x, prepared)

    def rotate_and_store(self, qkv: Tensor, layer: int, kv: KvPool, meta: ReferenceMeta) -> Tensor:
        """See Ops."""
        return elementwise.rotate_and_store(
            qkv, meta.num_heads, kv, layer, meta.rotations, meta.slot_ids
        )

    def attention(self, q: Tensor, layer: int, kv: KvPool, meta: ReferenceMeta) -> Tensor:
        """See Ops."""
        mixed = attention(q, layer, kv, meta.plan, self._attend)
        return mixed if kv.scales is None else elementwise.spread(mixed.view(q.shape)).flatten(1)

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """See Ops."""
        return elementwise.silu_mul(gate_up)

    def logits(self, hidden: Tensor, head: object) -> Tensor:
        """See Ops."""
        return linear.apply(hidden, head).float()

    def copy_pages(self, kv: KvPool, copies: I32) -> None:
        """See Ops."""
        elementwise.copy_pages(kv, copies)


@dataclass(frozen=True)
class ReferenceBackend:
    """Serves wherever torch runs; the last choice of "auto"."""

    name: str = "reference"
    priority: int = 0
    takes_quantized: bool = False
    kv_dtype: torch.dtype | None = None

    def unavailable_reason(self, device: str) -> str | None:
        """See Backend."""
        if device == "cuda" and not torch.cuda.is_available():
            return "torch sees no CUDA device"
        return None

    def refusal(self, shape: DecoderShape, kv_dtype: torch.dtype) -> str | None:
        """See Backend: it runs every model."""
        return None

    def prepare(self, weights: DecoderWeights, kv: KvPool) -> PreparedModel:
        """See Backend."""
        return ComposedModel(ReferenceOps(str(kv.storage.device)), weights, kv)


BACKEND = ReferenceBackend()
