"""Runs steps on the native kernels without torch: plan in, tokens out. A `runner_protocol.Runner` in numpy.

Owns the decoder, its pool, and the buffer of logits that is used again in every step. Knows nothing of requests, text or the prefix tree.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import ConfigError
from ..kernels.cpu.decoder import NativeDecoder
from ..kernels.cpu.library import FLOAT_KINDS, instruction_sets, load
from ..kernels.cpu.packed import PackedModel
from ..kernels.cpu.pool import KV_KINDS, allocate, page_bytes
from .model_files import ModelFiles
from .native_sampler import NativeSampler
from .packed_weights import WEIGHT_DTYPES, PackedWeights
from .plan import F32, I32, U32, BatchPlan, SamplingBatch, ScoreRows, StepResult
from .runner_protocol import ModelFacts
from .runner_steps import Masks, sample_step, step_batch

Sample = Callable[[F32, SamplingBatch, "U32 | None", ScoreRows], StepResult]

SCORED_ROWS_PER_CHUNK = 64
"""Rows of the head computed at a time when rows are only scored: 12 MiB of logits for a vocabulary of 49,152."""


@dataclass(frozen=True, slots=True)
class NativeStep:
    """A step that was computed, or is being: its plan and the hidden states [R, hidden] of its wanted rows."""

    plan: BatchPlan
    hidden: F32 | Future[F32]


class NativeRunner:
    """A packed model with `num_pages` pages of K/V (0: as many as `kv_bytes` holds), ready for `launch` and `finish`.

    `instruction_set` "" takes the best. With `has_spare_core` a step whose rows have
    masks is computed on a thread beside the caller's, who fills them meanwhile. `sample` replaces the sampler (tests). ConfigError for a pool that cannot be.
    """

    def __init__(
        self,
        packed: PackedModel,
        *,
        num_pages: int = 0,
        kv_bytes: int = 0,
        page_size: int = 16,
        dtype: str = "float32",
        kv_dtype: str = "auto",
        threads: int = 1,
        pin_threads: bool = False,
        kv_ready_bytes: int = 0,
        instruction_set: str = "",
        has_spare_core: bool = False,
        sample: Sample | None = None,
    ) -> None:
        shape = packed.shape
        kv_dtype = preferred_kv_dtype(packed) if kv_dtype == "auto" else kv_dtype
        check_instruction_set(instruction_set)
        num_bytes = page_bytes(shape, page_size, kv_dtype)
        num_pages = num_pages or kv_bytes // max(num_bytes, 1)
        pool = allocate(shape, num_pages, page_size, kv_dtype)
        self._decoder = NativeDecoder(
            packed, pool, threads, instruction_set, kv_ready_bytes, pin_threads
        )
        self._sample = sample or NativeSampler(self._decoder)
        self._beside = ThreadPoolExecutor(1, "forward") if has_spare_core else None
        self._running: Future[F32] | None = None
        self._logits: F32 = np.empty((0, shape.vocab_size), np.float32)
        self.facts = ModelFacts(
            vocab_size=shape.vocab_size,
            context_length=shape.context_length,
            num_pages=num_pages,
            page_size=page_size,
            page_bytes=num_bytes,
            kernels="cpu",
            dtype=dtype,
            kv_dtype=kv_dtype,
        )

    def time_calls(self, spent: dict[str, float]) -> None:
        """From now on add up in `spent` the seconds of native calls: step, logits, sample."""
        self._decoder.time_calls(spent)

    def launch(self, plan: BatchPlan) -> NativeStep:
        """Copy pages, then compute the plan's new tokens."""
        if self._running is not None:  # of a step that nobody finished
            wait([self._running])
            self._running = None
        self._decoder.copy_pages(plan.page_copies)
        batch = step_batch(plan)
        if self._beside is None or not plan.sampling.mask_rows.size:
            return NativeStep(plan, self._decoder.forward(batch))
        self._running = self._beside.submit(self._decoder.forward, batch)
        return NativeStep(plan, self._running)

    def finish(self, pending: NativeStep, masks: U32 | None) -> StepResult:
        """See Runner."""
        hidden = pending.hidden
        if isinstance(hidden, Future):
            hidden = hidden.result()
            self._running = None

        def logits_of(rows: I32 | None, masks: Masks) -> F32:
            wanted = hidden if rows is None else hidden[rows]
            if len(self._logits) < len(wanted):
                self._logits = np.empty((len(wanted), self.facts.vocab_size), np.float32)
            return self._decoder.logits(wanted, self._logits[: len(wanted)], masks)

        return sample_step(pending.plan, logits_of, self._sample, masks, SCORED_ROWS_PER_CHUNK)


def missing_library() -> str | None:
    """Why the native library cannot be loaded; None when it can."""
    try:
        load()
    except OSError as error:
        return str(error)
    return None


def can_serve(dtype: str, kv_dtype: str) -> bool:
    """Whether the kernels were built, take float weights of type `dtype`, and keep keys and values as `kv_dtype`, "auto" or a type."""
    if dtype not in WEIGHT_DTYPES or kv_dtype not in ("auto", *KV_KINDS):
        return False
    return missing_library() is None


def preferred_kv_dtype(packed: PackedModel) -> str:
    """Of keys and values where none is asked for: int8 beside weights that are codes too, else bfloat16."""
    linears = ("qkv", "attention_out", "gate_up", "down")
    kinds = {layer[name]["kind"] for layer in packed.layers for name in linears}
    return "bfloat16" if kinds <= FLOAT_KINDS else "int8"


def check_instruction_set(name: str) -> None:
    """ConfigError for a name that is not empty and no instruction set of this machine. OSError where the kernels were not built."""
    usable = instruction_sets(load())
    if name and name not in usable:
        raise ConfigError(
            f"instruction_set={name!r} is not one of {', '.join(usable)}",
            place="instruction_set",
            hint="Leave it empty for the best that this machine has",
        )


def open_native_runner(
    files: ModelFiles,
    *,
    cache_dir: Path,
    dtype: str,
    quantization: str,
    kv_dtype: str = "auto",
    num_pages: int = 0,
    kv_bytes: int = 0,
    page_size: int = 16,
    threads: int = 1,
    pin_threads: bool = False,
    kv_ready_bytes: int = 0,
    instruction_set: str = "",
    has_spare_core: bool = False,
    sample: Sample | None = None,
) -> NativeRunner | None:
    """The model on the native kernels; None where they were not built or do not take it. Errors as for the model's files and the pool."""
    if not can_serve(dtype, kv_dtype):
        return None
    check_instruction_set(instruction_set)
    packed = PackedWeights(files, dtype, quantization, cache_dir, instruction_set).load()
    if packed is None:
        return None
    return NativeRunner(
        packed,
        num_pages=num_pages,
        kv_bytes=kv_bytes,
        page_size=page_size,
        dtype=dtype,
        kv_dtype=kv_dtype,
        threads=threads,
        pin_threads=pin_threads,
        kv_ready_bytes=kv_ready_bytes,
        instruction_set=instruction_set,
        has_spare_core=has_spare_core,
        sample=sample,
    )
