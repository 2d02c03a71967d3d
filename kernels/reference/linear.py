"""Reference of the linear layer: `F.linear`, or oneDNN on weights repacked once where torch offers that.

Repacked weights read 1.5 to 2.7 times faster at 1 to 64 rows on AVX2 machines, and no slower at 512; torch's own matrix product repacks
on every call. The two operators are torch's (its compiler emits them), not part of its documented interface: both are tried on a small
product first, and anything unexpected means plain `F.linear`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..ops import Linear, QuantizedWeight

SPAN = 128  # inputs whose scales share a unit
FACTORS = 4096  # the largest: 32 products of two int8 times it stay below 2^31


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """A weight in oneDNN's own layout (opaque tensor), bias [out] or None."""

    weight: Tensor
    bias: Tensor | None


@dataclass(frozen=True, slots=True)
class RoundedLinear:
    """A quantized weight as floats [out, in]; its inputs are `rounded` before they are multiplied."""

    weight: Tensor
    bias: Tensor | None


def prepare(linear: Linear, packs: bool) -> object:
    """The form that `apply` wants. The original may be dropped afterwards."""
    if isinstance(linear.weight, QuantizedWeight):
        return RoundedLinear(linear.weight.to_floats(), linear.bias)
    return pack(linear) if packs and linear.weight.dtype == torch.float32 else linear


def rounded(x: Tensor) -> Tensor:
    """`x` as an integer product sees it: int8 codes, with one scale for 16 values that is a power of two (1 to FACTORS) of the unit of 128.

    The unit is the largest of the 128 values / (127 * FACTORS); a factor is rounded up, so that no code exceeds 127. A scale for a block and
    powers of two for its parts: Rouhani et al., "With Shared Microexponents, A Little Shifting Goes a Long Way", 2023. 128 values of which one
    is not finite are not numbers.
    """
    return torch.cat([_rounded_span(span) for span in x.float().split(SPAN, -1)], -1)


def _rounded_span(x: Tensor) -> Tensor:
    halves = x.unflatten(-1, (-1, 16))
    most = halves.abs().amax(-1, keepdim=True)
    top = most.amax(-2, keepdim=True)
    is_finite = top.isfinite()  # the largest is not a number where one value is not
    is_zero = top <= 1e-30
    top = top.where(is_finite & ~is_zero, 1.0)
    wanted = (most * (FACTORS / top)).nan_to_num(1.0, 1.0).clamp(1.0, FACTORS)
    mantissa, exponent = torch.frexp(wanted)
    factors = torch.ldexp(torch.ones_like(wanted), exponent - (mantissa == 0.5).int())
    unit = top / (127 * FACTORS)
    numbers = (halves * ((1 / unit) / factors)).round() * (factors * unit)
    return numbers.where(~is_zero, 0.0).where(is_finite, torch.nan).flatten(-2)


def can_pack() -> bool:
    """Whether this torch multiplies float32 weights repacked by oneDNN, checked by one small product."""
    if not torch.backends.mkldnn.is_available():
        return False
    try:
        x = torch.arange(64, dtype=torch.float32).view(2, 32)
        weight = torch.arange(16 * 32, dtype=torch.float32).view(16, 32).remainder(7.0)
        packed = apply(x, pack(Linear(weight, torch.ones(16))))
        return bool(torch.allclose(packed, F.linear(x, weight, torch.ones(16))))
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False


def pack(linear: Linear) -> PackedLinear:
    """Repack a float32 weight on the CPU. The original may be dropped afterwards."""
    return PackedLinear(
        torch.ops.mkldnn._reorder_linear_weight(linear.weight.contiguous()), linear.bias
    )


def apply(x: Tensor, prepared: object) -> Tensor:
    """x [M, in] times what `prepare` returned: [M, out]."""
    if isinstance(prepared, RoundedLinear):
        return F.linear(rounded(x), prepared.weight, prepared.bias)
    if isinstance(prepared, PackedLinear):
        return torch.ops.mkldnn._linear_pointwise(x, prepared.weight, prepared.bias, "none", [], "")
    assert isinstance(prepared, Linear)  # what `prepare_linear` returned
    return F.linear(x, prepared.weight, prepared.bias)
