"""A model bound to the native library: a step is one call, the LM head another.

Owns the packed weights, their structs and the runner behind them. Knows nothing of plans, requests or files.
"""

from __future__ import annotations

import weakref
from ctypes import byref

import numpy as np
import torch
from torch import Tensor

from ...errors import ServiceError
from ..ops import I32, DecoderShape, DecoderWeights, KvPool, LayerWeights, Linear, StepBatch
from ..reference import elementwise
from .library import LayerStruct, ShapeStruct, StepStruct, WeightsStruct, instruction_sets, load
from .packing import Packed, pack


class NativeModel:
    """See PreparedModel. `isa` names one of `library.instruction_sets`; "" takes the best."""

    def __init__(
        self, weights: DecoderWeights, kv: KvPool, num_threads: int, isa: str = ""
    ) -> None:
        self._library = load()
        self._shape = weights.shape
        self._kv = kv
        self._memory: list[object] = []  # what the structs point into
        layers = [self._layer(layer) for layer in weights.layers]
        self._layers = (LayerStruct * len(layers))(*layers)
        head = self._pack(weights.head)
        embedding = (
            head
            if weights.embedding is weights.head.weight
            else self._pack(Linear(weights.embedding))
        )
        rotary = weights.rope.inverse_frequencies
        angles = torch.arange(self._shape.context_length).float()[:, None] * rotary.float()
        struct = WeightsStruct(
            shape=self._shape_struct(2 * len(rotary), num_threads),
            layers=self._layers,
            embedding=embedding.struct,
            head=head.struct,
            final_norm=self._keep(weights.final_norm.float()),
            cosines=self._keep(angles.cos() * weights.rope.scale),
            sines=self._keep(angles.sin() * weights.rope.scale),
            kv=kv.storage.data_ptr(),
        )
        chosen = isa or instruction_sets(self._library)[0]
        self.instruction_set = chosen
        self._runner = self._library.radix_open(byref(struct), chosen.encode())
        if not self._runner:
            raise ServiceError(f"the native kernels for {chosen} could not be set up")
        weakref.finalize(self, self._library.radix_close, self._runner)

    @property
    def shape(self) -> DecoderShape:
        """The model's integers."""
        return self._shape

    def copy_pages(self, copies: I32) -> None:
        """See PreparedModel."""
        elementwise.copy_pages(self._kv, copies)

    def forward(self, batch: StepBatch) -> Tensor:
        """See PreparedModel."""
        hidden = torch.empty((len(batch.logit_rows), self._shape.hidden_size))
        starts = np.zeros(len(batch.groups) + 1, np.int32)
        np.cumsum([len(group.sequences) for group in batch.groups], out=starts[1:])
        members = [np.asarray(group.sequences, np.int32) for group in batch.groups]
        arrays = {
            "token_ids": np.ascontiguousarray(batch.token_ids, np.int32),
            "positions": np.ascontiguousarray(batch.positions, np.int32),
            "slot_ids": np.ascontiguousarray(batch.slot_ids, np.int64),
            "query_starts": np.ascontiguousarray(batch.query_starts, np.int32),
            "context_lens": np.ascontiguousarray(batch.context_lens, np.int32),
            "page_tables": np.ascontiguousarray(batch.page_tables, np.int32),
            "logit_rows": np.ascontiguousarray(batch.logit_rows, np.int32),
            "group_starts": starts,
            "group_members": np.concatenate(members) if members else starts,
            "group_pages": np.array([g.num_shared_pages for g in batch.groups], np.int32),
        }
        step = StepStruct(
            num_tokens=len(batch.token_ids),
            num_sequences=len(batch.context_lens),
            num_rows=len(batch.logit_rows),
            page_stride=batch.page_tables.shape[1],
            num_groups=len(batch.groups),
            hidden=hidden.data_ptr(),
            **{name: array.ctypes.data for name, array in arrays.items()},
        )
        if self._library.radix_step(self._runner, byref(step)):
            raise MemoryError("the native step ran out of memory")
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """See PreparedModel."""
        rows = hidden.contiguous()
        out = torch.empty((len(rows), self._shape.vocab_size))
        if len(rows) and self._library.radix_logits(
            self._runner, rows.data_ptr(), len(rows), out.data_ptr()
        ):
            raise MemoryError("the native head ran out of memory")
        return out

    def _layer(self, layer: LayerWeights) -> LayerStruct:
        return LayerStruct(
            attention_norm=self._keep(layer.attention_norm.float()),
            mlp_norm=self._keep(layer.mlp_norm.float()),
            qkv=self._pack(layer.qkv).struct,
            attention_out=self._pack(layer.attention_out).struct,
            gate_up=self._pack(layer.gate_up).struct,
            down=self._pack(layer.down).struct,
        )

    def _pack(self, linear: Linear) -> Packed:
        packed = pack(linear)
        self._memory.append(packed)
        return packed

    def _keep(self, values: Tensor) -> int:
        values = values.contiguous()
        self._memory.append(values)
        return values.data_ptr()

    def _shape_struct(self, num_rotary: int, num_threads: int) -> ShapeStruct:
        shape = self._shape
        return ShapeStruct(
            num_layers=shape.num_layers,
            hidden=shape.hidden_size,
            num_heads=shape.num_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
            inner=shape.intermediate_size,
            vocab=shape.vocab_size,
            context=shape.context_length,
            num_rotary=num_rotary,
            page_size=self._kv.page_size,
            kv_kind=0 if self._kv.storage.dtype == torch.float32 else 1,
            num_threads=num_threads,
            num_slots=self._kv.storage.shape[2],
            epsilon=shape.rms_epsilon,
        )
