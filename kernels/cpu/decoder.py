"""A model bound to the native library: a step is one call, the LM head another, sampling a third. numpy only.

Owns the structs, the runner behind them, and the pool that it writes. Knows nothing of plans, requests, files or torch.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from ctypes import byref, c_void_p

import numpy as np
import numpy.typing as npt

from ...errors import ServiceError
from ..step import I32, U32, DecoderShape, StepBatch
from .library import SamplingStruct, StepStruct, address_of, instruction_sets, load
from .packed import PackedModel
from .pool import KV_KINDS, NativePool

F32 = npt.NDArray[np.float32]
MAX_HEAD_DIM = 256


def refusal(shape: DecoderShape, kind: str) -> str | None:
    """None when the kernels take a model of that shape with keys and values of type `kind`, else why not."""
    if kind not in KV_KINDS:
        return f"it keeps keys and values as {' or '.join(KV_KINDS)}, not {kind}"
    if shape.head_dim % 8 or shape.head_dim > MAX_HEAD_DIM:
        return f"it takes heads of a multiple of 8 up to {MAX_HEAD_DIM}, not {shape.head_dim}"
    return None


class NativeDecoder:
    """Runs steps of `packed` on `pool`. `isa` names one of `library.instruction_sets`; "" takes the best."""

    def __init__(
        self, packed: PackedModel, pool: NativePool, num_threads: int, isa: str = ""
    ) -> None:
        self._library = load()
        self.shape = packed.shape
        self._pool = pool
        weights, self._layers = packed.bind()
        self._memory = packed.blocks  # what the structs point into
        weights.kv = pool.storage.ctypes.data
        weights.kv_scales = None if pool.scales is None else pool.scales.ctypes.data
        weights.shape.page_size = pool.page_size
        weights.shape.kv_kind = KV_KINDS[pool.kind]
        weights.shape.num_slots = pool.storage.shape[2]
        weights.shape.num_threads = num_threads
        self.instruction_set = isa or instruction_sets(self._library)[0]
        self._runner = self._library.radix_open(byref(weights), self.instruction_set.encode())
        if not self._runner:
            raise ServiceError(f"the native kernels for {self.instruction_set} could not be set up")
        weakref.finalize(self, self._library.radix_close, self._runner)

    def copy_pages(self, copies: I32) -> None:
        """See PreparedModel."""
        self._pool.copy_pages(copies)

    def forward(self, batch: StepBatch) -> F32:
        """See PreparedModel."""
        hidden = np.empty((len(batch.logit_rows), self.shape.hidden_size), np.float32)
        starts = np.zeros(len(batch.groups) + 1, np.int32)
        members = starts
        if batch.groups:
            np.cumsum([len(group.sequences) for group in batch.groups], out=starts[1:])
            members = np.concatenate([group.sequences for group in batch.groups])
        arrays = {
            "token_ids": np.ascontiguousarray(batch.token_ids, np.int32),
            "positions": np.ascontiguousarray(batch.positions, np.int32),
            "slot_ids": np.ascontiguousarray(batch.slot_ids, np.int64),
            "query_starts": np.ascontiguousarray(batch.query_starts, np.int32),
            "context_lens": np.ascontiguousarray(batch.context_lens, np.int32),
            "page_tables": np.ascontiguousarray(batch.page_tables, np.int32),
            "logit_rows": np.ascontiguousarray(batch.logit_rows, np.int32),
            "group_starts": starts,
            "group_members": np.ascontiguousarray(members, np.int32),
            "group_pages": np.array([g.num_shared_pages for g in batch.groups], np.int32),
        }
        step = StepStruct(
            num_tokens=len(batch.token_ids),
            num_sequences=len(batch.context_lens),
            num_rows=len(batch.logit_rows),
            page_stride=batch.page_tables.shape[1],
            num_groups=len(batch.groups),
            hidden=address_of(hidden),
            **{name: address_of(array) for name, array in arrays.items()},
        )
        if self._library.radix_step(self._runner, byref(step)):
            raise MemoryError("the native step ran out of memory")
        return hidden

    def logits(
        self, hidden: F32, out: F32 | None = None, masks: Sequence[U32 | None] | None = None
    ) -> F32:
        """See PreparedModel. `out`: where to write them, [M, vocab]."""
        rows = np.ascontiguousarray(hidden, np.float32)
        if out is None:
            out = np.empty((len(rows), self.shape.vocab_size), np.float32)
        table = None
        if masks is not None:
            places = [None if mask is None else mask.ctypes.data for mask in masks]
            table = (c_void_p * len(places))(*places)
        if len(rows) and self._library.radix_logits(
            self._runner, address_of(rows), len(rows), table, address_of(out)
        ):
            raise MemoryError("the native head ran out of memory")
        return out

    def sample(self, sampling: SamplingStruct) -> None:
        """Fill the results that `sampling` points to; see `src/sampling.inl`."""
        if self._library.radix_sample(self._runner, byref(sampling)):
            raise MemoryError("the native sampler ran out of memory")
