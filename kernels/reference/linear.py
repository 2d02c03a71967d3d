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

MOST_APART = 12  # a group's two scales differ by at most 2^12: 32 products of two int8 times it stay below 2^31
LEAST_EXPONENT = -100
TOO_LARGE = 2.0**110


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
    """`x` as an integer product sees it: int8 codes, with a power of two as the scale of each 16 values.

    That is the least one that leaves no code above 127, but at least 2^-12 of the scale of the other half of the 32 values that share
    a weight's scale. (Powers of two as scales of small blocks: OCP Microscaling Formats 1.0.) 32 values of which one is not finite, or
    2^110 or more, are not numbers.
    """
    halves = x.float().unflatten(-1, (-1, 2, 16))
    most = halves.abs().amax(-1, keepdim=True)
    exponents = (torch.frexp(most / 127).exponent - 1).where(most > 0, LEAST_EXPONENT)
    exponents = exponents + (torch.ldexp(torch.full_like(most, 127.0), exponents) < most).int()
    exponents = exponents.clamp(min=LEAST_EXPONENT)
    exponents = exponents.maximum(exponents.flip(-2) - MOST_APART)
    codes = torch.ldexp(halves, -exponents).round()
    is_usable = (most < TOO_LARGE).all(-2, keepdim=True)
    return torch.ldexp(codes, exponents).where(is_usable, torch.nan).flatten(-3)


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
