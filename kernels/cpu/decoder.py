"""A model bound to the native library: a step is one call, the LM head another, sampling a third. numpy only.

Owns the structs, the runner behind them, and the pool that it writes. Knows nothing of plans, requests, files or torch.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from ctypes import CDLL, byref, c_void_p

import numpy as np
import numpy.typing as npt

from ...errors import ServiceError
from ..step import I32, U32, DecoderShape, StepBatch
from .library import SamplingStruct, StepStruct, address_of, gather, instruction_sets, load
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
    """Runs steps of `packed` on `pool`. `isa` names one of `library.instruction_sets`; "" takes the best.

    `ready_bytes`: of the pool, taken from the system in the background. `pins_threads`: each on a core of its own, the one that calls too.
    """

    def __init__(
        self,
        packed: PackedModel,
        pool: NativePool,
        num_threads: int,
        isa: str = "",
        ready_bytes: int = 0,
        pins_threads: bool = False,
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
        weights.shape.ready_bytes = min(ready_bytes, pool.storage.nbytes)
        weights.shape.page_cells, weights.shape.layer_cells, weights.shape.side_cells = pool.steps()
        weights.shape.num_threads = num_threads
        weights.shape.pins_threads = pins_threads
        self.instruction_set = isa or instruction_sets(self._library)[0]
        self._runner = self._library.radix_open(byref(weights), self.instruction_set.encode())
        if not self._runner:
            raise ServiceError(f"the native kernels for {self.instruction_set} could not be set up")
        weakref.finalize(self, self._library.radix_close, self._runner)
        self._call = _caller(self._library, self._runner)
        self._copies_whole_pages = bool(self._library.radix_copies_whole_pages(self._runner))

    def time_calls(self, spent: dict[str, float]) -> None:
        """From now on add up in `spent` the seconds of each native function: step, logits, sample."""
        self._call = _timed(self._call, spent)

    def copy_pages(self, copies: I32) -> None:
        """See PreparedModel."""
        if self._copies_whole_pages and len(copies):
            copies = copies.copy()
            copies[:, 2] = self._pool.page_size
        self._pool.copy_pages(copies)

    def forward(self, batch: StepBatch) -> F32:
        """See PreparedModel."""
        hidden = np.empty((len(batch.logit_rows), self.shape.hidden_size), np.float32)
        slot_ids = np.ascontiguousarray(batch.slot_ids, np.int64)
        groups = batch.groups
        starts = np.zeros(len(groups) + 1, np.int32)
        if groups:
            np.cumsum([len(group.sequences) for group in groups], out=starts[1:])
        memory, addresses = gather(
            np.int32,
            token_ids=batch.token_ids,
            positions=batch.positions,
            query_starts=batch.query_starts,
            context_lens=batch.context_lens,
            page_tables=batch.page_tables,
            logit_rows=batch.logit_rows,
            group_starts=starts,
            group_pages=np.array([group.num_shared_pages for group in groups], np.int32),
            group_members=np.concatenate([starts[:0], *(group.sequences for group in groups)]),
        )
        step = StepStruct(
            num_tokens=len(batch.token_ids),
            num_sequences=len(batch.context_lens),
            num_rows=len(batch.logit_rows),
            page_stride=batch.page_tables.shape[1],
            num_groups=len(groups),
            hidden=address_of(hidden),
            slot_ids=address_of(slot_ids),
            **addresses,
        )
        if self._call("step", byref(step)):
            raise MemoryError("the native step ran out of memory")
        del memory  # which the step read
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
            places = [None if mask is None else address_of(mask) for mask in masks]
            table = (c_void_p * len(places))(*places)
        if len(rows) and self._call("logits", address_of(rows), len(rows), table, address_of(out)):
            raise MemoryError("the native head ran out of memory")
        return out

    def sample(self, sampling: SamplingStruct) -> None:
        """Fill the results that `sampling` points to; see `src/sampling.inl`."""
        problem = self._call("sample", byref(sampling))
        if problem == 2:
            raise IndexError("a row or token to sample or score is outside the logits")
        if problem:
            raise MemoryError("the native sampler ran out of memory")


def _caller(library: CDLL, runner: int) -> Callable[..., int]:
    """Calls a function of the library by name on the runner."""
    functions = {
        "step": library.radix_step,
        "logits": library.radix_logits,
        "sample": library.radix_sample,
    }
    return lambda name, *arguments: functions[name](runner, *arguments)


def _timed(call: Callable[..., int], spent: dict[str, float]) -> Callable[..., int]:
    def timed(name: str, *arguments: object) -> int:
        began_s = time.perf_counter()
        failed = call(name, *arguments)
        spent[name] = spent.get(name, 0.0) + time.perf_counter() - began_s
        return failed

    return timed
