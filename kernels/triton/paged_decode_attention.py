"""Paged decode attention in Triton: one new token a sequence, keys and values read through the page table.

One program a (sequence, key/value head); the query heads that share the head are its rows. Keys come in blocks of 64, aligned to absolute
position. Each block gives its own (max, sum, values), and blocks merge left to right: the same order whatever else is in the batch, so a
row's bits do not depend on its neighbours, on the page size or on where its pages lie. Source of the merge: Milakov and Gimelshein 2018;
of paging: Kwon et al. 2023.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl
from torch import Tensor

from ..ops import KEY_BLOCK

_MIN_DOT_ROWS = 16  # tl.dot wants at least 16 rows; unused ones are masked


@triton.jit
def paged_decode_attention_kernel(
    out_ptr,  # [T, Hq, D]
    q_ptr,  # [T, Hq, D], rows q_stride elements apart
    keys_ptr,  # [N, Hk, D]
    values_ptr,  # [N, Hk, D]
    rows_ptr,  # int64 [S]: the sequence's row of T
    context_lens_ptr,  # int32 [S]
    page_tables_ptr,  # int32 [S, P]
    q_stride,
    table_stride,
    scale,
    num_kv_heads: tl.constexpr,
    group_size: tl.constexpr,  # Hq / Hk
    group_block: tl.constexpr,  # power of two >= group_size and >= 16
    head_dim: tl.constexpr,
    head_block: tl.constexpr,  # power of two >= head_dim and >= 16
    page_size: tl.constexpr,
    key_block: tl.constexpr,
):
    """Writes out[row, heads of program_id(1)] for sequence program_id(0)."""
    sequence, kv_head = tl.program_id(0), tl.program_id(1)
    row = tl.load(rows_ptr + sequence)
    length = tl.load(context_lens_ptr + sequence)
    heads, dims = tl.arange(0, group_block), tl.arange(0, head_block)
    whole = (heads < group_size)[:, None] & (dims < head_dim)[None, :]
    places = (kv_head * group_size + heads)[:, None] * head_dim + dims[None, :]
    q = tl.load(q_ptr + row * q_stride + places, mask=whole, other=0.0).to(tl.float32)

    best = tl.full((group_block,), float("-inf"), tl.float32)
    total = tl.zeros((group_block,), tl.float32)
    result = tl.zeros((group_block, head_block), tl.float32)
    for start in range(0, length, key_block):
        positions = start + tl.arange(0, key_block)
        inside = positions < length
        table = page_tables_ptr + sequence.to(tl.int64) * table_stride
        pages = tl.load(table + positions // page_size, mask=inside, other=0).to(tl.int64)
        slots = pages * page_size + positions % page_size
        cells = (slots * num_kv_heads + kv_head)[:, None] * head_dim + dims[None, :]
        present = inside[:, None] & (dims < head_dim)[None, :]
        k = tl.load(keys_ptr + cells, mask=present, other=0.0).to(tl.float32)
        v = tl.load(values_ptr + cells, mask=present, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        # the block alone
        block_best = tl.max(scores, axis=1)
        weights = tl.exp(scores - block_best[:, None])
        block_total = tl.sum(weights, axis=1)
        block_result = tl.dot(weights, v, input_precision="ieee")
        # then merged with what lies left of it
        merged = tl.maximum(best, block_best)
        left, right = tl.exp(best - merged), tl.exp(block_best - merged)
        total = total * left + block_total * right
        result = result * left[:, None] + block_result * right[:, None]
        best = merged
    out = (result / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * (num_kv_heads * group_size * head_dim) + places, out, mask=whole)


def paged_decode_attention(
    out: Tensor,
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    rows: Tensor,
    context_lens: Tensor,
    page_tables: Tensor,
    page_size: int,
) -> None:
    """Write the listed rows of out [T, Hq * D]: q [T, Hq, D] over pools [N, Hk, D].

    `rows` int64 [S], `context_lens` int32 [S] (the new token included), `page_tables` int32 [S, P], all on the device.
    """
    num_heads, head_dim = q.shape[1:]
    num_kv_heads = keys.shape[1]
    group_size = num_heads // num_kv_heads
    paged_decode_attention_kernel[(len(rows), num_kv_heads)](
        out,
        q,
        keys,
        values,
        rows,
        context_lens,
        page_tables,
        q.stride(0),
        page_tables.stride(0),
        1.0 / math.sqrt(head_dim),
        num_kv_heads=num_kv_heads,
        group_size=group_size,
        group_block=max(_MIN_DOT_ROWS, triton.next_power_of_2(group_size)),
        head_dim=head_dim,
        head_block=max(_MIN_DOT_ROWS, triton.next_power_of_2(head_dim)),
        page_size=page_size,
        key_block=KEY_BLOCK,
        enable_fp_fusion=True,  # said aloud: the default differs between versions
    )
