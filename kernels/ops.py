"""The full list of tensor operations a model needs, and the shape of a backend that provides them.

Owns the vocabulary shared by the backends: weights, the K/V pool, the protocols; one step's integers are in `step.py`. Imports torch for
its types only; knows nothing of requests, plans, files or which backend serves.

A backend is asked for one thing: `prepare(weights, kv)`, once per model. What comes back runs whole steps. How it does so is its own
affair: `composed.ComposedModel` writes a step as single `Ops` calls (reference, triton); a native backend may resolve every pointer in
`prepare` and run a layer, or the whole step, as one call, and never offer single ops to anyone but the tests.

    backend.prepare(weights, kv) -> PreparedModel          weights are read once, layer by layer, and may be repacked
    prepared.copy_pages(copies)                            copy-on-write, before any write of the step
    prepared.forward(batch)  -> hidden [R, hidden]         writes K/V of all T tokens; only the rows whose logits are wanted come back
    prepared.logits(hidden, masks)  -> [R', vocab] float32 the LM head; callers choose the chunk of rows

Letters used below: T tokens of a step, S sequences, R wanted rows, Hq query heads, Hk key/value heads, D head size, L layers, N slots.

K/V pool: one tensor, so that a page copy is one operation for all layers.

    storage [L, 2, N, Hk, D]     N = num_pages * page_size; slot = page id * page_size + offset
             |  |  `-- slots: position p of sequence s lies at page_tables[s, p // page_size] * page_size + p % page_size
             |  `----- 0 keys (rotated), 1 values
             `-------- layer
    scales  [L, 2, N, Hk]        of an int8 pool: a token's head is its codes times its scale, for keys amax / 127, for values that rounded up
                                 to a power of two. Quantized when it is stored, by itself, so its bits do not depend on what is stored
                                 beside it. Keys and values are first multiplied by a Hadamard matrix, as are queries

Precision: every op computes in float32 whatever the storage type, sums included; a result is rounded once, when it is stored as the
weights' type. Logits are float32 always. Rotary pairs are adjacent dimensions (2i, 2i+1) of a head: loaders order rows so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from .step import I32, I64, KEY_BLOCK, U32, DecoderShape, PrefixGroup, StepBatch

__all__ = [
    "I32", "I64", "KEY_BLOCK", "U32", "Backend", "DecoderShape", "DecoderWeights", "KvPool", "LayerWeights", "Linear", "Ops", "PrefixGroup",
    "PreparedModel", "QuantizedWeight", "Rope", "StepBatch", "StepMeta",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class QuantizedWeight:
    """A weight as its file holds it, in groups of 32 inputs: scale * code + minimum (codes uint8 0..15), or scale * code (int8) without minimums."""

    codes: Tensor  # [out, in] uint8, or int8 without minimums
    scales: Tensor  # [out, in / 32] float16
    minimums: Tensor | None = None  # [out, in / 32] float16

    @property
    def shape(self) -> tuple[int, int]:
        """(out, in)."""
        return self.codes.shape[0], self.codes.shape[1]

    def rows(self, index: Tensor) -> QuantizedWeight:
        """Some rows."""
        minimums = None if self.minimums is None else self.minimums[index]
        return QuantizedWeight(self.codes[index], self.scales[index], minimums)

    def to_floats(self) -> Tensor:
        """The values, float32 [out, in]."""
        groups = self.codes.float().unflatten(1, (self.scales.shape[1], -1))
        values = groups * self.scales.float()[:, :, None]
        if self.minimums is not None:
            values = values + self.minimums.float()[:, :, None]
        return values.flatten(1)


@dataclass(frozen=True, slots=True)
class Linear:
    """y = x @ weight.T + bias. `weight` [out, in], `bias` [out] or None.

    Activations are not quantized, but where the weight is: then each 16 inputs of a row are rounded to int8 with a scale of their own (`reference.linear.rounded`).
    Quantized weights reach only backends that say `takes_quantized`.
    """

    weight: Tensor | QuantizedWeight
    bias: Tensor | None = None


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One decoder layer: norm, attention, residual, norm, gated MLP, residual."""

    attention_norm: Tensor  # [hidden]
    qkv: Linear  # [(Hq + 2 Hk) * D, hidden]: query rows, key rows, value rows
    attention_out: Linear  # [hidden, Hq * D]
    mlp_norm: Tensor  # [hidden]
    gate_up: Linear  # [2 * intermediate, hidden]: gate rows, up rows
    down: Linear  # [hidden, intermediate]


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary embedding: pair i of a head turns by position * inverse_frequencies[i]; cos and sin are multiplied by `scale`.

    `inverse_frequencies` float32 [rotary / 2], rotary <= D; the dimensions beyond stay as they are.
    """

    inverse_frequencies: Tensor
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """All weights of a model. `layers` is read once and in order, so that a loader can make one layer at a time."""

    shape: DecoderShape
    rope: Rope
    embedding: Tensor | QuantizedWeight  # [vocab, hidden]
    layers: Iterable[LayerWeights]
    final_norm: Tensor  # [hidden]
    head: Linear  # [vocab, hidden]; may share storage with `embedding`


@dataclass(frozen=True)
class KvPool:
    """Keys and values of all layers: storage [L, 2, N, Hk, D], and scales float32 [L, 2, N, Hk] where storage is int8."""

    storage: Tensor
    page_size: int
    scales: Tensor | None = None

    @cached_property
    def keys(self) -> tuple[Tensor, ...]:
        """Per layer a view [N, Hk, D]."""
        return tuple(self.storage[layer, 0] for layer in range(self.storage.shape[0]))

    @cached_property
    def values(self) -> tuple[Tensor, ...]:
        """Per layer a view [N, Hk, D]."""
        return tuple(self.storage[layer, 1] for layer in range(self.storage.shape[0]))


class StepMeta(Protocol):
    """What a backend derives from a StepBatch once per step and reads in every layer. Opaque outside the backend but for this."""

    @property
    def logit_rows(self) -> Tensor | None:
        """int64 [R], or None when every row of T is wanted."""
        ...


class Ops(Protocol):
    """The operations, each defined by `reference`. A result may alias an argument only where that is said."""

    def begin_step(self, batch: StepBatch, shape: DecoderShape, rope: Rope, kv: KvPool) -> StepMeta:
        """Everything that is the same for all layers: index tensors, cos and sin, the attention plan."""
        ...

    def prepare_linear(self, linear: Linear) -> object:
        """The form `linear` wants; may repack, so that the caller can drop the original."""
        ...

    def embed(self, meta: StepMeta, table: Tensor | QuantizedWeight) -> Tensor:
        """table[token_ids]: [T, hidden]."""
        ...

    def rms_norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """x * rsqrt(mean(x^2) + epsilon) * weight over the last dimension: [T, hidden]."""
        ...

    def add_rms_norm(
        self, x: Tensor, residual: Tensor, weight: Tensor, epsilon: float
    ) -> tuple[Tensor, Tensor]:
        """(rms_norm(x + residual), x + residual). The sum may be written into `x` or `residual`."""
        ...

    def linear(self, x: Tensor, prepared: object) -> Tensor:
        """x [M, in] times a prepared Linear: [M, out]."""
        ...

    def rotate_and_store(self, qkv: Tensor, layer: int, kv: KvPool, meta: StepMeta) -> Tensor:
        """Turn queries and keys [T, (Hq + 2 Hk) * D] by position, write keys and values into the pool; returns queries [T, Hq, D]."""
        ...

    def attention(self, q: Tensor, layer: int, kv: KvPool, meta: StepMeta) -> Tensor:
        """softmax(q . k / sqrt(D)) . v over each row's own positions 0 .. its own: [T, Hq * D].

        Query head h reads key/value head h // (Hq / Hk). Pages of a PrefixGroup are read once for all its members.
        """
        ...

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """silu(gate) * up of [T, gate | up]: [T, intermediate]."""
        ...

    def logits(self, hidden: Tensor, head: object) -> Tensor:
        """`linear` with float32 results: [M, vocab]."""
        ...

    def copy_pages(self, kv: KvPool, copies: I32) -> None:
        """Per row (source page, destination page, n): the first n slots, in all layers. Destinations are distinct and no source."""
        ...


class PreparedModel(Protocol):
    """A model bound to its K/V pool, ready to run steps."""

    @property
    def shape(self) -> DecoderShape:
        """The model's integers."""
        ...

    def copy_pages(self, copies: I32) -> None:
        """Run the step's copy-on-write [C, 3]; must come before `forward`."""
        ...

    def forward(self, batch: StepBatch) -> Tensor:
        """Write K/V of all T tokens; return hidden states after the final norm of `logit_rows`: [R, hidden]."""
        ...

    def logits(self, hidden: Tensor, masks: Sequence[U32 | None] | None = None) -> Tensor:
        """LM head of some of those rows: float32 [M, vocab].

        `masks`, one a row or None: tokens whose logits matter, bit i % 32 of word i // 32, contiguous; the others' may be -inf instead.
        """
        ...


@runtime_checkable
class Backend(Protocol):
    """One way to run models. Its folder's `backend.py` has `BACKEND`, by which `registry` finds it."""

    name: str
    priority: int  # the largest available one serves "auto"
    kv_dtype: (
        torch.dtype | None
    )  # of keys and values where none is asked for; None: that of the activations
    takes_quantized: bool  # whether `prepare` understands QuantizedWeight

    def unavailable_reason(self, device: str) -> str | None:
        """None when it can serve on `device` ("cpu" or "cuda"), else why not, as a sentence for the user."""
        ...

    def refusal(self, shape: DecoderShape, kv_dtype: torch.dtype) -> str | None:
        """None when it can run a model of that shape with keys and values of `kv_dtype`, else why not."""
        ...

    def prepare(self, weights: DecoderWeights, kv: KvPool) -> PreparedModel:
        """Bind a model to its pool. Reads `weights.layers` once."""
        ...
