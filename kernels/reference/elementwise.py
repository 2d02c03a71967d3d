"""Reference of the small ops: norms, rotary embedding with the K/V write, SiLU gate, page copies.

Plain torch, float32 arithmetic. Sources: RMSNorm, Zhang and Sennrich 2019; rotary embedding, Su et al. 2021; SwiGLU, Shazeer 2020.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..ops import I32, KvPool


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """x * rsqrt(mean(x^2) + epsilon) * weight: [..., hidden]."""
    if x.dtype == torch.float32:
        return F.rms_norm(x, weight.shape, weight, epsilon)
    return F.rms_norm(x.float(), weight.shape, weight.float(), epsilon).to(x.dtype)


def add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """(rms_norm(x + residual), x + residual); the sum is a new tensor."""
    summed = x + residual
    return rms_norm(summed, weight, epsilon), summed


def rotations(positions: Tensor, inverse_frequencies: Tensor, scale: float) -> Tensor:
    """complex64 [T, 1, rotary / 2]: scale * exp(i * position * frequency), the factor of each pair of each head."""
    angles = positions.to(torch.float32)[:, None] * inverse_frequencies
    return torch.complex(angles.cos() * scale, angles.sin() * scale)[:, None, :]


def rotate(heads: Tensor, factors: Tensor) -> Tensor:
    """Turn pairs (2i, 2i+1) of heads [T, H, D]; dimensions beyond 2 * factors.shape[-1] stay. Returns the type of `heads`."""
    num_rotary = 2 * factors.shape[-1]
    turned = heads[..., :num_rotary].float()
    pairs = torch.view_as_complex(turned.unflatten(-1, (-1, 2)))
    result = torch.view_as_real(pairs * factors).flatten(-2).to(heads.dtype)
    if num_rotary == heads.shape[-1]:
        return result
    return torch.cat((result, heads[..., num_rotary:]), dim=-1)


def rotate_and_store(
    qkv: Tensor, num_heads: int, kv: KvPool, layer: int, factors: Tensor, slot_ids: Tensor
) -> Tensor:
    """Split [T, (Hq + 2 Hk) * D], turn queries and keys, write K/V of the layer at slot_ids; returns queries [T, Hq, D]."""
    num_kv_heads, head_dim = kv.storage.shape[3:]
    heads = qkv.view(qkv.shape[0], -1, head_dim)
    turned = rotate(heads[:, : num_heads + num_kv_heads], factors)
    for kind, x in enumerate((turned[:, num_heads:], heads[:, num_heads + num_kv_heads :])):
        if kv.scales is not None:
            x, scales = quantize_heads(x)
            kv.scales[layer, kind].index_copy_(0, slot_ids, scales)
        kv.storage[layer, kind].index_copy_(0, slot_ids, x.to(kv.storage.dtype))
    return turned[:, :num_heads]


def quantize_heads(x: Tensor) -> tuple[Tensor, Tensor]:
    """int8 codes [T, H, D] and scales [T, H] of heads: each by its own amax / 127."""
    most = x.float().abs().amax(-1)
    codes = (x.float() * (127 / most.where(most > 0, 1))[..., None]).round()
    return codes.to(torch.int8), most / 127


def silu_mul(gate_up: Tensor) -> Tensor:
    """silu(gate) * up of [T, gate | up]: [T, intermediate]."""
    gate, up = gate_up.chunk(2, dim=-1)
    if gate_up.dtype == torch.float32:
        return F.silu(gate).mul_(up)
    return F.silu(gate.float()).mul_(up.float()).to(gate_up.dtype)


def copy_pages(kv: KvPool, copies: I32) -> None:
    """Rows (source page, destination page, n): copy the first n slots in all layers, as one gather and one scatter."""
    if not len(copies):
        return
    counts = copies[:, 2].astype(np.int64)
    # slot numbers of all copies end to end: base repeated n times, plus 0 .. n-1
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    sources = np.repeat(copies[:, 0].astype(np.int64) * kv.page_size, counts) + offsets
    targets = np.repeat(copies[:, 1].astype(np.int64) * kv.page_size, counts) + offsets
    device = kv.storage.device
    source_ids, target_ids = (torch.from_numpy(ids).to(device) for ids in (sources, targets))
    for part in (kv.storage, kv.scales):
        if part is not None:
            part.index_copy_(2, target_ids, part.index_select(2, source_ids))
