"""Random decoder weights and batches for tests of kernel backends: every way a weight is stored, sequences over pages in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.cpu.decoder import NativeDecoder
from radixlm.kernels.cpu.library import packs_halves
from radixlm.kernels.cpu.pack_model import pack_model
from radixlm.kernels.cpu.packed import PackedModel
from radixlm.kernels.cpu.pool import allocate
from radixlm.kernels.ops import (
    DecoderShape,
    DecoderWeights,
    KvPool,
    LayerWeights,
    Linear,
    PrefixGroup,
    QuantizedWeight,
    Rope,
    StepBatch,
)
from radixlm.runtime.native_sampler import NativeSampler

PAGE = 16


@dataclass(frozen=True)
class ModelKind:
    """What varies between test models."""

    stored: str = "f32"  # f32 | bf16 | f16 | q4 | q8
    hidden: int = 64
    inner: int = 96
    num_heads: int = 4
    num_kv_heads: int = 2
    head_dim: int = 16
    vocab: int = 83
    num_layers: int = 2
    has_bias: bool = False
    rotary: int = 16


def make_weights(kind: ModelKind, seed: int = 0) -> DecoderWeights:
    """Random weights of that kind; embedding and head are one matrix."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    def linear(num_out: int, num_in: int) -> Linear:
        bias = normal(num_out) if kind.has_bias else None
        return Linear(stored(normal(num_out, num_in) / num_in**0.5, kind.stored), bias)

    width, kv_width = kind.num_heads * kind.head_dim, kind.num_kv_heads * kind.head_dim
    layers = [
        LayerWeights(
            attention_norm=1 + normal(kind.hidden) / 8,
            qkv=linear(width + 2 * kv_width, kind.hidden),
            attention_out=linear(kind.hidden, width),
            mlp_norm=1 + normal(kind.hidden) / 8,
            gate_up=linear(2 * kind.inner, kind.hidden),
            down=linear(kind.hidden, kind.inner),
        )
        for _ in range(kind.num_layers)
    ]
    table = stored(normal(kind.vocab, kind.hidden), "q8" if kind.stored == "q4" else kind.stored)
    shape = DecoderShape(
        num_layers=kind.num_layers,
        hidden_size=kind.hidden,
        num_heads=kind.num_heads,
        num_kv_heads=kind.num_kv_heads,
        head_dim=kind.head_dim,
        intermediate_size=kind.inner,
        vocab_size=kind.vocab,
        context_length=512,
        rms_epsilon=1e-5,
    )
    frequencies = 10000.0 ** (-torch.arange(kind.rotary // 2).float() / (kind.rotary // 2))
    return DecoderWeights(
        shape, Rope(frequencies), table, layers, 1 + normal(kind.hidden) / 8, Linear(table)
    )


def stored(values: torch.Tensor, how: str) -> torch.Tensor | QuantizedWeight:
    """`values` as a file would hold them."""
    if how == "f32":
        return values
    if how.startswith("bf16"):
        return values.bfloat16().float() if how == "bf16 as f32" else values.bfloat16()
    if how == "f16":
        return values.half()
    groups = values.unflatten(1, (-1, 32))
    if how == "q8":
        scales = (groups.abs().amax(-1) / 127).half()
        codes = (groups / scales[..., None].float()).round().clamp(-127, 127)
        return QuantizedWeight(codes.flatten(1).to(torch.int8), scales)
    low, high = groups.amin(-1), groups.amax(-1)
    scales, minimums = ((high - low) / 15).half(), low.half()
    codes = (groups - minimums[..., None].float()) / scales[..., None].float()
    return QuantizedWeight(codes.round().clamp(0, 15).flatten(1).to(torch.uint8), scales, minimums)


def make_pool(
    weights: DecoderWeights, num_pages: int = 128, dtype: torch.dtype = torch.float32
) -> KvPool:
    """An empty pool."""
    shape = weights.shape
    cells = (shape.num_layers, 2, num_pages * PAGE, shape.num_kv_heads)
    scales = torch.zeros(cells) if dtype == torch.int8 else None
    return KvPool(torch.zeros((*cells, shape.head_dim), dtype=dtype), PAGE, scales)


@dataclass
class Row:
    """A sequence: its pages, its tokens, and how many of them have K/V."""

    pages: list[int]
    token_ids: list[int]
    done: int = 0


def next_step(
    work: Sequence[tuple[Row, int]], groups: tuple[PrefixGroup, ...] = (), wanted: str = "last"
) -> StepBatch:
    """The next n tokens of each (row, n); moves the cursors. `wanted`: logit rows last, all or none."""
    starts = np.concatenate(([0], np.cumsum([n for _, n in work]))).astype(np.int32)
    spans = [np.arange(row.done, row.done + n) for row, n in work]
    tables = np.zeros((len(work), max(len(row.pages) for row, _ in work)), np.int32)
    for index, (row, _) in enumerate(work):
        tables[index, : len(row.pages)] = row.pages
    slots = [
        np.array(row.pages)[span // PAGE] * PAGE + span % PAGE
        for (row, _), span in zip(work, spans, strict=True)
    ]
    ids = [row.token_ids[row.done : row.done + n] for row, n in work]
    for row, n in work:
        row.done += n
    rows = {"last": starts[1:] - 1, "all": np.arange(starts[-1]), "none": starts[:0]}[wanted]
    return StepBatch(
        token_ids=np.concatenate(ids).astype(np.int32),
        positions=np.concatenate(spans).astype(np.int32),
        slot_ids=np.concatenate(slots).astype(np.int64),
        query_starts=starts,
        context_lens=np.array([row.done for row, _ in work], np.int32),
        page_tables=tables,
        logit_rows=rows.astype(np.int32),
        groups=groups,
    )


def packed_for(weights: DecoderWeights) -> PackedModel:
    """Packed for the best instruction set of this machine."""
    return pack_model(weights, packs_halves())


def native_sampler(num_threads: int = 2) -> NativeSampler:
    """The native sampler over a small model; the test is skipped where the kernels were not built."""
    reason = BACKEND.unavailable_reason("cpu")
    if reason is not None:
        pytest.skip(reason)
    weights = make_weights(ModelKind())
    pool = allocate(weights.shape, 1, PAGE, "float32")
    return NativeSampler(NativeDecoder(packed_for(weights), pool, num_threads))
