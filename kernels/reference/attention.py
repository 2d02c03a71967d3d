"""Reference of paged attention with shared prefixes: runs the items of an `AttentionPlan` and merges what belongs to one row.

The definition is `attend_plain`: scores, log-sum-exp, weighted values, all float32. `attend_flash` is torch's own CPU kernel of the same
function (2.5 times faster on long chunks, half the traffic on decode); it returns the log-sum-exp that merging needs, which the documented
`scaled_dot_product_attention` does not, hence the operator below it. Source of the merge: online softmax, Milakov and Gimelshein 2018;
reading a shared prefix once: Juravsky et al. 2024 (Hydragen).

Query heads of one key/value head are folded into rows, so keys and values are never repeated.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from ..ops import KvPool
from .attention_plan import AttentionPlan, CausalItem, Item, PaddedItem, SharedItem, Span


class Attend(Protocol):
    """Attention of [B, H, M, D] over [B, H, N, D]: (output [B, H, M, D], log-sum-exp of the scaled scores, float32 [B, H, M])."""

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool
    ) -> tuple[Tensor, Tensor]:
        """`mask` broadcasts to [B, H, M, N] and is added; `causal`: row i sees keys 0 .. i (M == N)."""
        ...


def attend_plain(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """The definition, any device."""
    scores = torch.matmul(q.float(), k.float().transpose(-1, -2)) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    total = scores.logsumexp(-1)
    weights = torch.exp(scores - total.unsqueeze(-1))
    return torch.matmul(weights, v.float()).to(q.dtype), total


def attend_flash(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor]:
    """The same through torch's CPU kernel."""
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, 0.0, causal, attn_mask=mask
    )


def choose_attend(device: torch.device) -> Attend:
    """`attend_flash` where this torch has it and agrees with the definition on a small input."""
    if device.type != "cpu" or not hasattr(
        torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu"
    ):
        return attend_plain
    x = torch.linspace(-1.0, 1.0, 2 * 3 * 5 * 8).view(2, 3, 5, 8)
    mask = torch.zeros(2, 1, 5, 5).masked_fill_(
        torch.ones(5, 5, dtype=torch.bool).triu(1), -torch.inf
    )
    try:
        pairs = zip(
            attend_flash(x, x, x, mask, causal=False),
            attend_plain(x, x, x, None, causal=True),
            strict=True,
        )
        agrees = all(torch.allclose(fast, plain, atol=1e-5) for fast, plain in pairs)
    except (RuntimeError, TypeError, ValueError):
        return attend_plain
    return attend_flash if agrees else attend_plain


def attention(q: Tensor, layer: int, kv: KvPool, plan: AttentionPlan, attend: Attend) -> Tensor:
    """q [T, Hq, D] over a layer of the pool: [T, Hq * D]."""
    if plan.whole:
        return _run(plan.items[0], q, layer, kv, attend)[0].reshape(plan.num_rows, -1)
    result = q.new_empty(q.shape, dtype=torch.float32)
    totals = q.new_empty(q.shape[:2], dtype=torch.float32)
    for item in plan.items:
        part, part_total = _run(item, q, layer, kv, attend)
        if not item.first:
            part, part_total = _merge(item.rows.of(result), item.rows.of(totals), part, part_total)
        item.rows.put(result, part)
        item.rows.put(totals, part_total)
    return result.to(q.dtype).view(plan.num_rows, -1)


def _merge(
    left: Tensor, left_total: Tensor, right: Tensor, right_total: Tensor
) -> tuple[Tensor, Tensor]:
    """Softmax averages of two key ranges [n, Hq, D] with log-sum-exps [n, Hq] into that of both."""
    total = torch.logaddexp(left_total, right_total)
    left_share = torch.exp(left_total - total).unsqueeze(-1)
    right_share = torch.exp(right_total - total).unsqueeze(-1)
    return left * left_share + right * right_share, total


def _run(item: Item, q: Tensor, layer: int, kv: KvPool, attend: Attend) -> tuple[Tensor, Tensor]:
    """Output [n, Hq, D] and log-sum-exp [n, Hq] of the item's rows over its keys."""
    k, v = (_read(kv, layer, kind, item.keys, q.dtype) for kind in (0, 1))
    if isinstance(item, PaddedItem):
        return _run_padded(item, q, k, v, attend)
    if isinstance(item, SharedItem):
        return _run_shared(item.rows.of(q), k, v, attend)
    return _run_causal(item, item.rows.of(q), k, v, attend)


def _read(kv: KvPool, layer: int, kind: int, keys: Span, dtype: torch.dtype) -> Tensor:
    """Keys (kind 0) or values (1) at some slots, [n, Hk, D] of the queries' type."""
    found = keys.of(kv.storage[layer, kind]).to(dtype)
    if kv.scales is None:
        return found
    return found * keys.of(kv.scales[layer, kind])[..., None].to(dtype)


def _run_shared(q: Tensor, k: Tensor, v: Tensor, attend: Attend) -> tuple[Tensor, Tensor]:
    (num_rows, num_heads, head_dim), num_kv_heads = q.shape, k.shape[1]
    # [n, Hk, G, D] -> [1, Hk, n * G, D]: all rows of all members against one copy of the keys
    folded = (
        q.unflatten(1, (num_kv_heads, -1)).transpose(0, 1).reshape(1, num_kv_heads, -1, head_dim)
    )
    out, total = attend(
        folded, k.transpose(0, 1)[None], v.transpose(0, 1)[None], None, causal=False
    )
    out = (
        out.view(num_kv_heads, num_rows, -1, head_dim)
        .transpose(0, 1)
        .reshape(num_rows, num_heads, head_dim)
    )
    return out, total.reshape(num_kv_heads, num_rows, -1).transpose(0, 1).reshape(
        num_rows, num_heads
    )


def _run_causal(
    item: CausalItem, q: Tensor, k: Tensor, v: Tensor, attend: Attend
) -> tuple[Tensor, Tensor]:
    num_rows, num_heads, head_dim = q.shape
    num_kv_heads = k.shape[1]
    # key/value heads as the batch, their query heads as heads: [Hk, G, n, D] over keys that expand over G without a copy
    grouped = q.unflatten(1, (num_kv_heads, -1)).permute(1, 2, 0, 3)
    shape = (*grouped.shape[:2], k.shape[0], head_dim)
    expanded = (x.transpose(0, 1).unsqueeze(1).expand(shape) for x in (k, v))
    out, total = attend(grouped, *expanded, None, causal=True)
    out = out.permute(2, 0, 1, 3).reshape(num_rows, num_heads, head_dim)
    return out, total.permute(2, 0, 1).reshape(num_rows, num_heads)


def _run_padded(
    item: PaddedItem, q: Tensor, k: Tensor, v: Tensor, attend: Attend
) -> tuple[Tensor, Tensor]:
    batch, (num_heads, head_dim), num_kv_heads = item.batch_size, q.shape[1:], k.shape[1]
    rows = item.padded_rows.of(q)
    width = rows.shape[0] // batch
    # [B * Q, Hk * G, D] -> [B, Hk, G * Q, D]
    folded = (
        rows.view(batch, width, num_kv_heads, -1, head_dim)
        .permute(0, 2, 3, 1, 4)
        .reshape(batch, num_kv_heads, -1, head_dim)
    )
    mask = None if item.mask is None else item.mask.to(q.dtype)
    k = k.view(batch, -1, num_kv_heads, head_dim).transpose(1, 2)
    v = v.view(batch, -1, num_kv_heads, head_dim).transpose(1, 2)
    out, total = attend(folded, k, v, mask, causal=False)
    out = (
        out.reshape(batch, num_kv_heads, -1, width, head_dim)
        .permute(0, 3, 1, 2, 4)
        .reshape(-1, num_heads, head_dim)
    )
    total = total.reshape(batch, num_kv_heads, -1, width).permute(0, 3, 1, 2).reshape(-1, num_heads)
    if item.existing is not None:
        out, total = out.index_select(0, item.existing), total.index_select(0, item.existing)
    return out, total
