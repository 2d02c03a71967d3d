"""RMSNorm in Triton, with the residual addition before it when there is one: one program a row, one read and one write of the row.

Equal to `reference.elementwise.add_rms_norm` up to the order of the sum. Source: Zhang and Sennrich 2019.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def rms_norm_kernel(
    normed_ptr,
    summed_ptr,
    x_ptr,
    residual_ptr,
    weight_ptr,
    epsilon,
    hidden_size: tl.constexpr,
    block: tl.constexpr,  # power of two >= hidden_size
    has_residual: tl.constexpr,
):
    """Row program_id(0): summed = x + residual (when there is one), normed = summed * rsqrt(mean(summed^2) + epsilon) * weight."""
    columns = tl.arange(0, block)
    inside = columns < hidden_size
    offset = tl.program_id(0).to(tl.int64) * hidden_size
    x = tl.load(x_ptr + offset + columns, mask=inside, other=0.0).to(tl.float32)
    if has_residual:
        x += tl.load(residual_ptr + offset + columns, mask=inside, other=0.0).to(tl.float32)
        stored = x.to(summed_ptr.dtype.element_ty)
        tl.store(summed_ptr + offset + columns, stored, mask=inside)
        x = stored.to(tl.float32)  # the next layer reads the rounded sum, so the norm is of that
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / hidden_size + epsilon)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(
        normed_ptr + offset + columns,
        (x * scale * weight).to(normed_ptr.dtype.element_ty),
        mask=inside,
    )


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """See Ops.rms_norm. x [T, hidden], contiguous."""
    normed = torch.empty_like(x)
    _launch(normed, normed, x, x, weight, epsilon, has_residual=False)
    return normed


def add_rms_norm(
    x: Tensor, residual: Tensor, weight: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """See Ops.add_rms_norm; the sum is a new tensor."""
    normed, summed = torch.empty_like(x), torch.empty_like(x)
    _launch(normed, summed, x, residual, weight, epsilon, has_residual=True)
    return normed, summed


def _launch(
    normed: Tensor,
    summed: Tensor,
    x: Tensor,
    residual: Tensor,
    weight: Tensor,
    epsilon: float,
    has_residual: bool,
) -> None:
    num_rows, hidden_size = x.shape
    if not num_rows:
        return
    rms_norm_kernel[(num_rows,)](
        normed,
        summed,
        x.contiguous(),
        residual.contiguous(),
        weight,
        epsilon,
        hidden_size=hidden_size,
        block=triton.next_power_of_2(hidden_size),
        has_residual=has_residual,
        enable_fp_fusion=True,  # said aloud: the default differs between versions
    )
