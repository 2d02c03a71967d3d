"""Weights rounded to what the native kernels multiply: 8 or 4 bits in groups of 32 inputs, scales and minimums in float16.

Owns the choice of scales. A group gets the scale, of a few, whose squared error is least; codes are rounded against the scale as float16
holds it, so the rounding of the scale itself costs nothing. Parts of a file (`weight_groups`) that fit are kept as they are.

What a group loses at most, in units of its largest magnitude (8 bits) or of its range (8 and 4 bits with a minimum): 1/254, 1/510, 1/30.
Where a file's groups are 16 wide, two of them share a scale of 8 bits: kernels/README.md says what that adds to the format's own error.
Must not know names of weights or formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from ...kernels.ops import QuantizedWeight
from .weight_groups import Groups

GROUP = 32
_PART = 1 << 22  # weights in hand at a time, so that a large matrix needs no copies of itself
_SMALLEST = 2.0**-24  # of float16; a group of zeros gets it
_LARGEST = 2.0**15  # of a weight; its scale, and any minimum, fit float16
_TRIALS_8 = (1.0, 1.004, 1.008, 1.012, 1.016, 1.02, 1.024, 1.028)
_TRIALS_4 = (1.0, 0.97, 0.94, 0.91, 0.88, 0.84, 0.8)

Rounding = Callable[[Tensor], QuantizedWeight]


def by_rows(weight: Tensor, rounding: Rounding) -> QuantizedWeight | None:
    """`rounding` of float weights [out, in], some rows at a time.

    None for what cannot be rounded so: rows that are no whole groups, values that are not finite or beyond what a float16 scale reaches.
    """
    if weight.shape[1] % GROUP:
        return None
    found: list[QuantizedWeight] = []
    for part in weight.split(max(1, _PART // weight.shape[1])):
        values = part.float()
        if not values.abs().amax() <= _LARGEST:
            return None
        found.append(rounding(values))
    return stack(found)


def stack(weights: Iterable[QuantizedWeight]) -> QuantizedWeight:
    """Rows of all, one below the other. Codes of 4 bits beside codes of 8 become codes of 8: the same values."""
    parts = list(weights)
    is_wide = any(part.codes.dtype == torch.int8 for part in parts)
    codes = [part.codes.to(torch.int8) if is_wide else part.codes for part in parts]
    minimums = None
    if any(part.minimums is not None for part in parts):
        found = [
            torch.zeros_like(part.scales) if part.minimums is None else part.minimums
            for part in parts
        ]
        minimums = torch.cat(found)
    return QuantizedWeight(torch.cat(codes), torch.cat([p.scales for p in parts]), minimums)


def kept(groups: Groups) -> QuantizedWeight | None:
    """The groups as they are, scales rounded to float16; None where they are not 32 wide or a scale is beyond float16."""
    if groups.width != GROUP:
        return None
    scales = groups.scales.half()
    minimums = None if groups.minimums is None else groups.minimums.half()
    if not (scales.isfinite().all() and (minimums is None or minimums.isfinite().all())):
        return None
    has_four_bits = groups.codes.dtype == torch.uint8 and minimums is not None
    if has_four_bits and int(groups.codes.max()) > 15:
        return QuantizedWeight(groups.codes.to(torch.int8), scales, minimums)
    return QuantizedWeight(groups.codes, scales, minimums)


def from_groups(groups: Groups) -> QuantizedWeight | None:
    """The groups as they are where they fit, else rounded to 8 bits; None where `by_rows` gives none."""
    found = kept(groups)
    if found is not None:
        return found
    rounding = to_8_bits if groups.minimums is None else to_8_bits_with_minimums
    return by_rows(groups.to_floats(), rounding)


def to_8_bits(values: Tensor) -> QuantizedWeight:
    """float32 [out, in] as int8 with scales alone."""
    groups = values.unflatten(1, (-1, GROUP))
    base = groups.abs().amax(-1) / 127
    best = _Best(groups)
    for trial in _TRIALS_8:
        scales = _upwards(base * trial)
        codes = (groups / scales.float()[..., None]).round().clamp(-127, 127)
        best.meet(codes, scales, None)
    return best.weight(torch.int8)


def to_8_bits_with_minimums(values: Tensor) -> QuantizedWeight:
    """float32 [out, in] as int8 with scales and minimums: of groups whose values lie to one side, a finer step."""
    groups = values.unflatten(1, (-1, GROUP))
    low, high = groups.amin(-1), groups.amax(-1)
    scales = _upwards((high - low) / 255)
    minimums = (low + 128 * scales.float()).half()
    codes = (groups - minimums.float()[..., None]) / scales.float()[..., None]
    return QuantizedWeight(
        codes.round().clamp(-128, 127).flatten(1).to(torch.int8), scales, minimums
    )


def to_4_bits(values: Tensor) -> QuantizedWeight:
    """float32 [out, in] as 4 bits with scales and minimums. The range is narrowed step by step, each time fitted to its codes."""
    groups = values.unflatten(1, (-1, GROUP))
    low, high = groups.amin(-1), groups.amax(-1)
    best = _Best(groups)
    for trial in _TRIALS_4:
        middle, half = (high + low) / 2, (high - low) / 2 * trial
        scales, minimums = _upwards(half * 2 / 15), (middle - half).half()
        codes = _four_bit_codes(groups, scales, minimums)
        best.meet(codes, scales, minimums)
        scales, minimums = _fitted(groups, codes, scales, minimums)
        best.meet(_four_bit_codes(groups, scales, minimums), scales, minimums)
    return best.weight(torch.uint8)


def _four_bit_codes(groups: Tensor, scales: Tensor, minimums: Tensor) -> Tensor:
    codes = (groups - minimums.float()[..., None]) / scales.float()[..., None]
    return codes.round().clamp(0, 15)


def _fitted(
    groups: Tensor, codes: Tensor, scales: Tensor, minimums: Tensor
) -> tuple[Tensor, Tensor]:
    """Least squares of value = scale * code + minimum; as it was where all codes are one."""
    code_mean, mean = codes.mean(-1), groups.mean(-1)
    spread = (codes - code_mean[..., None]).square().sum(-1)
    slope = ((codes - code_mean[..., None]) * (groups - mean[..., None])).sum(-1) / spread
    is_usable = (spread > 0) & (slope > _SMALLEST)
    slope = slope.where(is_usable, scales.float()).half()
    return slope, (mean - slope.float() * code_mean).half().where(is_usable, minimums)


class _Best:
    """For each group the codes, scale and minimum with the least squared error of those met."""

    def __init__(self, groups: Tensor) -> None:
        self._groups = groups
        self._error = torch.full(groups.shape[:2], torch.inf)
        self._codes = torch.zeros(groups.shape)
        self._scales = torch.zeros(groups.shape[:2], dtype=torch.float16)
        self._minimums: Tensor | None = None

    def meet(self, codes: Tensor, scales: Tensor, minimums: Tensor | None) -> None:
        values = codes * scales.float()[..., None]
        if minimums is not None:
            values = values + minimums.float()[..., None]
        error = (values - self._groups).square().sum(-1)
        is_better = error < self._error
        self._error = error.where(is_better, self._error)
        self._codes = codes.where(is_better[..., None], self._codes)
        self._scales = scales.where(is_better, self._scales)
        if minimums is not None:
            before = torch.zeros_like(minimums) if self._minimums is None else self._minimums
            self._minimums = minimums.where(is_better, before)

    def weight(self, kind: torch.dtype) -> QuantizedWeight:
        return QuantizedWeight(self._codes.flatten(1).to(kind), self._scales, self._minimums)


def _upwards(scales: Tensor) -> Tensor:
    """As float16, not smaller than asked: no code leaves its range."""
    near = scales.clamp(min=_SMALLEST).half()
    above = (near.view(torch.int16) + 1).view(torch.float16)
    return near.where(near.float() >= scales, above)
