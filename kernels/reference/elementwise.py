"""Reference of the small ops: norms, rotary embedding with the K/V write, SiLU gate, page copies.

Plain torch, float32 arithmetic. Sources: RMSNorm, Zhang and Sennrich 2019; rotary embedding, Su et al. 2021; SwiGLU, Shazeer 2020; heads
spread before they are rounded, QuaRot (Ashkboos et al. 2024).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..ops import I32, KvPool

SMALLEST_SCALE = 2.0**-60
"""Of a value of an int8 pool: a head of a token whose values are all that small is 0."""


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
    """Split [T, (Hq + 2 Hk) * D], turn queries and keys, write K/V of the layer at slot_ids; returns queries [T, Hq, D].

    An int8 pool: queries, keys and values are spread (see `spread`); so are the values that attention mixes of them.
    """
    num_kv_heads, head_dim = kv.storage.shape[3:]
    heads = qkv.view(qkv.shape[0], -1, head_dim)
    turned = rotate(heads[:, : num_heads + num_kv_heads], factors)
    values = heads[:, num_heads + num_kv_heads :]
    if kv.scales is None:
        for kind, x in enumerate((turned[:, num_heads:], values)):
            kv.storage[layer, kind].index_copy_(0, slot_ids, x.to(kv.storage.dtype))
        return turned[:, :num_heads]
    turned = spread(turned)
    for kind, x in enumerate((turned[:, num_heads:], spread(values))):
        scales = key_scales(x) if kind == 0 else value_scales(x)
        kv.scales[layer, kind].index_copy_(0, slot_ids, scales)
        kv.storage[layer, kind].index_copy_(0, slot_ids, quantize_heads(x, scales))
    return turned[:, :num_heads]


def spread(heads: Tensor) -> Tensor:
    """Heads [T, H, D] times the orthonormal Hadamard matrix of the largest power of two that divides D, block by block.

    Some dimensions are far larger than the others; spread over all, they leave a scale that all share its precision. Products of two spread
    heads are what they were, and a head spread twice is the head. Returns the type of `heads`.
    """
    head_dim = heads.shape[-1]
    size = head_dim & -head_dim
    blocks = heads.float().unflatten(-1, (-1, size)) @ _hadamard(size).to(heads.device)
    return blocks.flatten(-2).to(heads.dtype)


@cache
def _hadamard(size: int) -> Tensor:
    matrix = torch.ones(1, 1)
    while len(matrix) < size:
        above = torch.cat((matrix, matrix), dim=1)
        matrix = torch.cat((above, torch.cat((matrix, -matrix), dim=1)))
    return matrix / size**0.5


def key_scales(x: Tensor) -> Tensor:
    """[T, H] of heads [T, H, D]: the largest magnitude / 127."""
    return x.float().abs().amax(-1) / 127


def value_scales(x: Tensor) -> Tensor:
    """The same rounded up to a power of two, so that attention may move it into the exponent of a weight; at least SMALLEST_SCALE."""
    fractions, exponents = torch.frexp(key_scales(x))
    powers = torch.ldexp(torch.ones_like(fractions), exponents - (fractions == 0.5).int())
    return powers.clamp(min=SMALLEST_SCALE).where(fractions.isfinite(), fractions)


def quantize_heads(x: Tensor, scales: Tensor) -> Tensor:
    """int8 codes [T, H, D] of heads in units of their scales [T, H]: 127 for what is no number, 0 where a scale has no inverse."""
    inverses = (1 / scales).where(scales >= 2.0**-126, 0.0)
    codes = (x.float() * inverses[..., None]).round().clamp(-127, 127)
    return codes.nan_to_num(127.0).to(torch.int8)


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
