"""A step written as single ops: the default PreparedModel, for backends that have nothing faster.

Owns the order of operations of a pre-norm decoder with a gated MLP. Knows nothing of how an op is computed. In the last layer only the
rows whose logits are wanted pass the output projection and the MLP: nothing reads the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .ops import (
    I32,
    U32,
    DecoderShape,
    DecoderWeights,
    KvPool,
    LayerWeights,
    Ops,
    StepBatch,
    StepMeta,
)


@dataclass(frozen=True, slots=True)
class _Layer:
    attention_norm: Tensor
    qkv: object
    attention_out: object
    mlp_norm: Tensor
    gate_up: object
    down: object


class ComposedModel:
    """Runs steps of `weights` on `kv` through `ops`."""

    def __init__(self, ops: Ops, weights: DecoderWeights, kv: KvPool) -> None:
        self._ops = ops
        self._kv = kv
        self._rope = weights.rope
        self._shape = weights.shape
        self._embedding = weights.embedding
        self._final_norm = weights.final_norm
        self._layers = [self._prepare_layer(layer) for layer in weights.layers]
        self._head = ops.prepare_linear(weights.head)

    def _prepare_layer(self, layer: LayerWeights) -> _Layer:
        prepare = self._ops.prepare_linear
        return _Layer(
            layer.attention_norm,
            prepare(layer.qkv),
            prepare(layer.attention_out),
            layer.mlp_norm,
            prepare(layer.gate_up),
            prepare(layer.down),
        )

    @property
    def shape(self) -> DecoderShape:
        """The model's integers."""
        return self._shape

    def copy_pages(self, copies: I32) -> None:
        """See PreparedModel."""
        self._ops.copy_pages(self._kv, copies)

    @torch.inference_mode()
    def forward(self, batch: StepBatch) -> Tensor:
        """See PreparedModel."""
        ops, epsilon = self._ops, self._shape.rms_epsilon
        meta = ops.begin_step(batch, self._shape, self._rope, self._kv)
        residual = ops.embed(meta, self._embedding)
        normed = ops.rms_norm(residual, self._layers[0].attention_norm, epsilon)
        last = len(self._layers) - 1
        for index, layer in enumerate(self._layers):
            q = ops.rotate_and_store(ops.linear(normed, layer.qkv), index, self._kv, meta)
            if index == last and not len(batch.logit_rows):
                return residual.new_empty((0, self._shape.hidden_size))
            attended = ops.attention(q, index, self._kv, meta)
            if index == last:
                attended, residual = _wanted(attended, meta), _wanted(residual, meta)
            x = ops.linear(attended, layer.attention_out)
            normed, residual = ops.add_rms_norm(x, residual, layer.mlp_norm, epsilon)
            x = ops.linear(ops.silu_mul(ops.linear(normed, layer.gate_up)), layer.down)
            next_norm = (
                self._final_norm if index == last else self._layers[index + 1].attention_norm
            )
            normed, residual = ops.add_rms_norm(x, residual, next_norm, epsilon)
        return normed

    @torch.inference_mode()
    def logits(self, hidden: Tensor, masks: Sequence[U32 | None] | None = None) -> Tensor:
        """See PreparedModel. All of them, whatever the masks."""
        return self._ops.logits(hidden, self._head)


def _wanted(x: Tensor, meta: StepMeta) -> Tensor:
    rows = meta.logit_rows
    return x if rows is None else x.index_select(0, rows)
