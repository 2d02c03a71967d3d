"""Random attention steps over a page pool, and attention written out key by key: what every backend is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from radixlm.kernels.ops import DecoderShape, KvPool, PrefixGroup, StepBatch


@dataclass(frozen=True)
class AttentionCase:
    """A step whose K/V is all in the pool already."""

    batch: StepBatch
    kv: KvPool
    q: torch.Tensor  # [T, Hq, D]
    shape: DecoderShape


def decoder_shape(num_heads: int, num_kv_heads: int, head_dim: int) -> DecoderShape:
    """A one-layer shape of which only the heads matter."""
    return DecoderShape(
        1, num_heads * head_dim, num_heads, num_kv_heads, head_dim, 8, 11, 4096, 1e-5
    )


def attention_case(
    seed: int,
    sequences: list[tuple[int, int]],
    *,
    shape: DecoderShape,
    page_size: int = 4,
    shared_pages: list[tuple[list[int], int]] | None = None,
    consecutive: bool = False,
) -> AttentionCase:
    """`sequences`: (tokens before the step, new tokens). `shared_pages`: (members, pages) that begin alike, outermost first.

    Pages lie anywhere in the pool, or one after the other; pages that no sequence owns hold NaN.
    """
    random = np.random.default_rng(seed)
    context = np.array([past + new for past, new in sequences], np.int32)
    num_new = np.array([new for _, new in sequences])
    num_pages = -(-context // page_size)
    pool_pages = int(num_pages.sum()) + 3
    free = (range(pool_pages) if consecutive else random.permutation(pool_pages).tolist())[::-1]
    free = list(free)
    tables = np.zeros((len(sequences), int(num_pages.max())), np.int32)
    for row, count in enumerate(num_pages):
        tables[row, :count] = [free.pop() for _ in range(count)]
    groups = []
    for members, count in shared_pages or []:
        tables[members, :count] = tables[members[0], :count]
        groups.append(PrefixGroup(np.array(members, np.int32), count))
    storage = torch.full(
        (1, 2, pool_pages * page_size, shape.num_kv_heads, shape.head_dim), torch.nan
    )
    generator = torch.Generator().manual_seed(seed)
    for row, length in enumerate(context):
        slots = slots_of(tables[row], int(length), page_size)
        storage[:, :, slots] = torch.randn(
            1, 2, len(slots), *storage.shape[3:], generator=generator
        )
    starts = np.concatenate(([0], np.cumsum(num_new))).astype(np.int32)
    positions = np.concatenate([np.arange(past, past + new) for past, new in sequences]).astype(
        np.int32
    )
    rows = np.repeat(np.arange(len(sequences)), num_new)
    batch = StepBatch(
        token_ids=np.zeros(len(positions), np.int32),
        positions=positions,
        slot_ids=tables[rows, positions // page_size].astype(np.int64) * page_size
        + positions % page_size,
        query_starts=starts,
        context_lens=context,
        page_tables=tables,
        logit_rows=starts[1:] - 1,
        groups=tuple(groups),
    )
    q = torch.randn(len(positions), shape.num_heads, shape.head_dim, generator=generator)
    return AttentionCase(batch, KvPool(storage, page_size), q, shape)


def slots_of(table: np.ndarray, length: int, page_size: int) -> np.ndarray:
    """Slots of positions 0 .. length-1."""
    places = np.arange(length)
    return table[places // page_size].astype(np.int64) * page_size + places % page_size


def naive_attention(case: AttentionCase) -> torch.Tensor:
    """Attention of one row and head at a time over the positions up to its own, in float64: [T, Hq * D]."""
    batch, shape = case.batch, case.shape
    keys, values = case.kv.keys[0].double().numpy(), case.kv.values[0].double().numpy()
    queries = case.q.double().numpy()
    result = np.zeros((len(batch.positions), shape.num_heads, shape.head_dim))
    for sequence in range(len(batch.context_lens)):
        for row in range(batch.query_starts[sequence], batch.query_starts[sequence + 1]):
            slots = slots_of(
                batch.page_tables[sequence], int(batch.positions[row]) + 1, case.kv.page_size
            )
            for head in range(shape.num_heads):
                kv_head = head // (shape.num_heads // shape.num_kv_heads)
                scores = keys[slots, kv_head] @ queries[row, head] / math.sqrt(shape.head_dim)
                weights = np.exp(scores - scores.max())
                result[row, head] = weights / weights.sum() @ values[slots, kv_head]
    return torch.from_numpy(result).flatten(1)
