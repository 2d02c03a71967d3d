"""GGUF blocks taken apart: whole-number codes, and a scale and a minimum for each group of 16 or 32 weights.

    weight = code * scale (+ minimum)

Owns the bit layouts. Source: the GGML quantization formats of the GGUF specification. `h` is a float16, sizes are bytes of a block:

    Q4_0    h scale, 16 codes                       32 weights    low nibbles are weights 0 .. 15, high nibbles 16 .. 31; minimum -8 * scale
    Q4_1    h scale, h minimum, 16 codes            32
    Q5_0    h scale, 4 fifth bits, 16 codes         32            codes - 16
    Q5_1    h scale, h minimum, 4, 16               32
    Q8_0    h scale, 32 codes                       32            signed
    IQ4_NL  h scale, 16 codes                       32            codes number a table of 16 signed values
    Q2_K    16 scales, 64 codes, h d, h dmin        256 in 16s    4-bit scale of d, 4-bit scale of dmin; minimums are negative
    Q3_K    32 high bits, 64, 12 scales, h d        256 in 16s    6-bit scales - 32; codes - 4
    Q4_K    h d, h dmin, 12 scales, 128 codes       256 in 32s    6-bit scales of d and of dmin; minimums are negative
    Q5_K    h d, h dmin, 12, 32 fifth bits, 128     256 in 32s
    Q6_K    128 low bits, 64 high, 16 scales, h d   256 in 16s    signed 8-bit scales; codes - 32
    Q8_K    float32 scale, 256 codes, 32 sums       256           the sums are not needed
    IQ4_XS  h d, 2 and 4 of scales, 128 codes       256 in 32s    6-bit scales - 32; the table of IQ4_NL

Scales and minimums are the float32 products that the format defines, so `Groups.to_floats` equals the `gguf` library's results bit for bit (a test).
Knows nothing of files, kernels or what becomes of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from .weight_groups import Groups

_NL_VALUES = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def take_apart(type_name: str, data: Tensor) -> Groups | None:
    """The parts of uint8 [rows, bytes of a row]; None for a type without this form."""
    known = _TYPES.get(type_name)
    if known is None:
        return None
    size, split = known
    groups = split(data.reshape(-1, size))
    rows = data.shape[0]
    minimums = None if groups.minimums is None else groups.minimums.reshape(rows, -1)
    return Groups(groups.codes.reshape(rows, -1), groups.scales.reshape(rows, -1), minimums)


def _half(blocks: Tensor, at: int) -> Tensor:
    """float32 [blocks, 1] of the float16 at byte `at` of each block."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(packed: Tensor) -> Tensor:
    """[..., n] -> [..., 2 n]: low nibbles, then high nibbles."""
    return torch.cat((packed & 15, packed >> 4), dim=-1)


def _bits(packed: Tensor, shifts: range, mask: int) -> Tensor:
    """[..., n] -> [..., shifts, n]: the bits at each shift."""
    at = torch.tensor(tuple(shifts), dtype=torch.uint8)[:, None]
    return (packed[..., None, :] >> at) & mask


def _fifth_bits(blocks: Tensor, at: int) -> Tensor:
    """[blocks, 32] 0 or 16: bit i of the four bytes belongs to code i."""
    return _bits(blocks[:, at : at + 4], range(8), 1).transpose(1, 2).flatten(1) << 4


def _by_table(codes: Tensor) -> Tensor:
    return torch.tensor(_NL_VALUES, dtype=torch.int8)[codes.int()]


def _signed(codes: Tensor, zero: int) -> Tensor:
    return codes.to(torch.int8) - zero


# ------------------------------------------------------------------------------------------ blocks of 32


def _q4_0(blocks: Tensor) -> Groups:
    scales = _half(blocks, 0)
    return Groups(_nibbles(blocks[:, 2:]), scales, scales * -8)


def _q4_1(blocks: Tensor) -> Groups:
    return Groups(_nibbles(blocks[:, 4:]), _half(blocks, 0), _half(blocks, 2))


def _q5_0(blocks: Tensor) -> Groups:
    codes = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)
    return Groups(_signed(codes, 16), _half(blocks, 0))


def _q5_1(blocks: Tensor) -> Groups:
    codes = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4)
    return Groups(codes, _half(blocks, 0), _half(blocks, 2))


def _q8_0(blocks: Tensor) -> Groups:
    return Groups(blocks[:, 2:].view(torch.int8), _half(blocks, 0))


def _iq4_nl(blocks: Tensor) -> Groups:
    return Groups(_by_table(_nibbles(blocks[:, 2:])), _half(blocks, 0))


# ------------------------------------------------------------------------------------------ blocks of 256


def _scales_and_minimums(packed: Tensor) -> tuple[Tensor, Tensor]:
    """6-bit numbers [blocks, 8] each, out of 12 bytes: four low ones in plain, four with their upper two bits above those."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = torch.cat((first & 63, (third & 15) | ((first >> 6) << 4)), dim=1)
    minimums = torch.cat((second & 63, (third >> 4) | ((second >> 6) << 4)), dim=1)
    return scales.float(), minimums.float()


def _q4_k(blocks: Tensor) -> Groups:
    scales, minimums = _scales_and_minimums(blocks[:, 4:16])
    codes = _nibbles(blocks[:, 16:].unflatten(1, (4, 32))).flatten(1)
    return Groups(codes, _half(blocks, 0) * scales, -(_half(blocks, 2) * minimums))


def _q5_k(blocks: Tensor) -> Groups:
    scales, minimums = _scales_and_minimums(blocks[:, 4:16])
    codes = _nibbles(blocks[:, 48:].unflatten(1, (4, 32))).flatten(1)
    codes = codes | (_bits(blocks[:, 16:48], range(8), 1).flatten(1) << 4)
    return Groups(codes, _half(blocks, 0) * scales, -(_half(blocks, 2) * minimums))


def _q6_k(blocks: Tensor) -> Groups:
    low = _bits(blocks[:, :128].unflatten(1, (2, 64)), range(0, 8, 4), 15).flatten(1)
    high = _bits(blocks[:, 128:192].unflatten(1, (2, 32)), range(0, 8, 2), 3).flatten(1)
    scales = blocks[:, 192:208].view(torch.int8).float()
    return Groups(_signed(low | (high << 4), 32), _half(blocks, 208) * scales)


def _q3_k(blocks: Tensor) -> Groups:
    two = _bits(blocks[:, 32:96].unflatten(1, (2, 32)), range(0, 8, 2), 3).flatten(1)
    third = _bits(blocks[:, :32], range(8), 1).flatten(1)
    four = _nibbles(blocks[:, 96:104])
    upper = _bits(blocks[:, 104:108], range(0, 8, 2), 3).flatten(1)
    scales = (four | (upper << 4)).float() - 32
    return Groups(_signed(two | (third << 2), 4), _half(blocks, 108) * scales)


def _q2_k(blocks: Tensor) -> Groups:
    codes = _bits(blocks[:, 16:80].unflatten(1, (2, 32)), range(0, 8, 2), 3).flatten(1)
    scales, minimums = (blocks[:, :16] & 15).float(), (blocks[:, :16] >> 4).float()
    return Groups(codes, _half(blocks, 80) * scales, -(_half(blocks, 82) * minimums))


def _q8_k(blocks: Tensor) -> Groups:
    scales = blocks[:, :4].contiguous().view(torch.float32)
    return Groups(blocks[:, 4:260].view(torch.int8), scales.expand(-1, 8))


def _iq4_xs(blocks: Tensor) -> Groups:
    lower = _bits(blocks[:, 4:8], range(0, 8, 4), 15).transpose(1, 2).flatten(1)
    upper = _bits(blocks[:, 2:4], range(0, 8, 2), 3).transpose(1, 2).flatten(1)
    scales = (lower | (upper << 4)).float() - 32
    codes = _by_table(_nibbles(blocks[:, 8:].unflatten(1, (8, 16))).flatten(1))
    return Groups(codes, _half(blocks, 0) * scales)


_TYPES: Mapping[str, tuple[int, Callable[[Tensor], Groups]]] = {
    "Q4_0": (18, _q4_0),
    "Q4_1": (20, _q4_1),
    "Q5_0": (22, _q5_0),
    "Q5_1": (24, _q5_1),
    "Q8_0": (34, _q8_0),
    "IQ4_NL": (18, _iq4_nl),
    "Q2_K": (84, _q2_k),
    "Q3_K": (110, _q3_k),
    "Q4_K": (144, _q4_k),
    "Q5_K": (176, _q5_k),
    "Q6_K": (210, _q6_k),
    "Q8_K": (292, _q8_k),
    "IQ4_XS": (136, _iq4_xs),
}
