"""Weights into the layouts of `src/abi.h`: blocks of 16 output rows, padded with zeros.

Owns the packing, in numpy and torch, of whole tensors. Quantized weights keep the codes, scales and minimums of the file; nothing is
quantized here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..ops import Linear, QuantizedWeight
from .library import KINDS, LinearStruct

BLOCK = 16
GROUP = 32
U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed linear and the memory its struct points into."""

    struct: LinearStruct
    memory: tuple[object, ...]


def pack(linear: Linear, in_halves: bool) -> Packed:
    """The struct of `linear`; its memory must be kept alive as long as the struct is used. `in_halves`: as `library.reads_halves` says."""
    weight = linear.weight
    bias = None if linear.bias is None else linear.bias.float().contiguous()
    if isinstance(weight, QuantizedWeight):
        kind, codes, scales, minimums = _quantized(weight, in_halves)
    else:
        kind, codes = _floats(weight)
        scales = minimums = None
    num_out, num_in = weight.shape
    struct = LinearStruct(
        kind=KINDS[kind],
        num_out=num_out,
        num_in=num_in,
        codes=codes.data_ptr(),
        scales=None if scales is None else scales.data_ptr(),
        minimums=None if minimums is None else minimums.data_ptr(),
        bias=None if bias is None else bias.data_ptr(),
    )
    return Packed(struct, (codes, scales, minimums, bias))


def _floats(weight: Tensor) -> tuple[str, Tensor]:
    """[out, in] -> [out / 16, in, 16]."""
    kind = {torch.bfloat16: "bf16", torch.float16: "f16"}.get(weight.dtype, "f32")
    values = weight.float() if kind == "f32" else weight
    blocks = _padded(values).view(-1, BLOCK, weight.shape[1]).transpose(1, 2)
    return kind, _aligned(blocks.contiguous())


def _quantized(
    weight: QuantizedWeight, in_halves: bool
) -> tuple[str, Tensor, Tensor, Tensor | None]:
    """Codes, scales and minimums, in blocks."""
    codes, scales = _padded(weight.codes), _by_group(weight.scales)
    minimums = None if weight.minimums is None else _by_group(weight.minimums)
    has_8_bits = weight.codes.dtype == torch.int8
    if in_halves:
        halves = _by_halves((codes.to(torch.int16) + 128).to(torch.uint8) if has_8_bits else codes)
        if not has_8_bits:
            halves = halves[:, :, :, 0] | (halves[:, :, :, 1] << 4)
        return "q8 halves" if has_8_bits else "q4 halves", _aligned(halves), scales, minimums
    words = _by_words(codes)
    if has_8_bits:
        return "q8", _aligned(words), scales, minimums
    return "q4", _aligned(words[:, :, :4] | (words[:, :, 4:] << 4)), scales, minimums


def _by_words(codes: Tensor) -> Tensor:
    """[out, in] -> [out / 16, in / 32, 8, 16, 4]: word s of a row holds inputs 2 s, 2 s + 1, 16 + 2 s, 16 + 2 s + 1 of a group."""
    num_out, num_in = codes.shape
    parts = codes.view(
        num_out // BLOCK, BLOCK, num_in // GROUP, 2, 8, 2
    )  # [.., row, group, half, s, two]
    return parts.permute(0, 2, 4, 1, 3, 5).reshape(num_out // BLOCK, num_in // GROUP, 8, BLOCK, 4)


def _by_halves(codes: Tensor) -> Tensor:
    """[out, in] -> [out / 16, in / 32, 4, 2, 16, 4]: word j of half h holds inputs 2 j, 2 j + 1, 8 + 2 j, 9 + 2 j of that half."""
    num_out, num_in = codes.shape
    parts = codes.view(
        num_out // BLOCK, BLOCK, num_in // GROUP, 2, 2, 4, 2
    )  # [.., row, group, half, eight, j, two]
    return parts.permute(0, 2, 5, 3, 1, 4, 6).reshape(
        num_out // BLOCK, num_in // GROUP, 4, 2, BLOCK, 4
    )


def _by_group(values: Tensor) -> Tensor:
    """float16 [out, groups] -> [out / 16, groups, 16]."""
    blocks = _padded(values.to(torch.float16)).view(-1, BLOCK, values.shape[1]).transpose(1, 2)
    return _aligned(blocks.contiguous())


def _padded(values: Tensor) -> Tensor:
    missing = -values.shape[0] % BLOCK
    if not missing:
        return values.contiguous()
    return torch.cat((values, values.new_zeros((missing, values.shape[1]))))


def _aligned(values: Tensor) -> Tensor:
    """The same values at an address that is a multiple of 64."""
    values = values.contiguous()
    if values.data_ptr() % 64 == 0:
        return values
    spare = 64 // values.element_size()
    memory = torch.empty(values.numel() + spare, dtype=values.dtype)
    start = (-memory.data_ptr() % 64) // values.element_size()
    copy = memory[start : start + values.numel()].view(values.shape)
    copy.copy_(values)
    return copy
