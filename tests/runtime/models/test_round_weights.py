"""Weights rounded to 8 and 4 bits: how far they move, what is kept as it is, and what is left to floats."""

from __future__ import annotations

import pytest
import torch

from radixlm.kernels.ops import QuantizedWeight
from radixlm.runtime.models import round_weights
from radixlm.runtime.models.round_weights import (
    by_rows,
    from_groups,
    kept,
    stack,
    to_4_bits,
    to_8_bits,
    to_8_bits_with_minimums,
)
from radixlm.runtime.models.weight_groups import Groups

WEIGHTS = torch.randn(24, 320, generator=torch.Generator().manual_seed(1)) * 0.02


def groups_of(values: torch.Tensor) -> torch.Tensor:
    return values.unflatten(1, (-1, 32))


def test_8_bits_move_a_weight_by_at_most_half_a_step() -> None:
    error = (to_8_bits(WEIGHTS).to_floats() - WEIGHTS).abs()
    most = groups_of(WEIGHTS).abs().amax(-1, keepdim=True)
    assert (groups_of(error) <= most / 254 * 1.03).all()
    assert error.square().mean().sqrt() < 0.0050 * WEIGHTS.square().mean().sqrt()


def test_8_bits_with_minimums_use_the_range_of_a_group() -> None:
    values = WEIGHTS.abs() + 3.0
    found = to_8_bits_with_minimums(values)
    span = groups_of(values).amax(-1, keepdim=True) - groups_of(values).amin(-1, keepdim=True)
    error = groups_of((found.to_floats() - values).abs())
    assert (error <= span / 510 * 1.01 + 3 * 2.0**-11).all()
    assert found.codes.dtype == torch.int8
    assert found.codes.amin() == -128


def test_4_bits_are_better_than_the_range_cut_into_15() -> None:
    found = to_4_bits(WEIGHTS)
    low, high = groups_of(WEIGHTS).amin(-1), groups_of(WEIGHTS).amax(-1)
    step = (high - low)[..., None] / 15
    plain = ((groups_of(WEIGHTS) - low[..., None]) / step).round() * step + low[..., None]
    error = (found.to_floats() - WEIGHTS).square().mean().sqrt()
    assert error < 0.95 * (plain - groups_of(WEIGHTS)).square().mean().sqrt()
    assert found.codes.dtype == torch.uint8
    assert found.codes.amax() <= 15


@pytest.mark.parametrize("rounding", [to_8_bits, to_8_bits_with_minimums, to_4_bits])
def test_groups_of_one_value_and_of_zeros_come_back(rounding) -> None:
    values = torch.zeros(2, 64)
    values[0, :32] = 0.25
    values[1, 32:] = -0.25
    found = rounding(values).to_floats()
    assert (found - values).abs().max() < 0.25 * 2.0**-10
    assert (found[0, 32:] == 0).all()


def test_values_on_a_grid_of_16_are_found_again() -> None:
    codes = torch.randint(0, 16, (8, 64), generator=torch.Generator().manual_seed(2))
    codes[:, ::32], codes[:, 1::32] = 0, 15  # whole ranges
    values = codes * 0.125 - 1.0
    assert torch.equal(to_4_bits(values).to_floats(), values)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 1e5])
def test_what_float16_scales_do_not_reach_is_left_to_floats(bad: float) -> None:
    values = WEIGHTS.clone()
    values[5, 7] = bad
    assert by_rows(values, to_8_bits) is None
    assert by_rows(WEIGHTS[:, :40], to_8_bits) is None  # no whole groups


def test_rounding_in_parts_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = by_rows(WEIGHTS, to_4_bits)
    monkeypatch.setattr(round_weights, "_PART", 3 * 320)
    parts = by_rows(WEIGHTS.bfloat16().float(), to_4_bits), by_rows(WEIGHTS, to_4_bits)
    assert whole is not None
    assert parts[1] is not None
    assert torch.equal(parts[1].to_floats(), whole.to_floats())


def test_rows_of_4_and_of_8_bits_stand_together_as_8_without_a_change() -> None:
    four, eight = to_4_bits(WEIGHTS), to_8_bits(WEIGHTS)
    found = stack([four, eight, four])
    expected = torch.cat([part.to_floats() for part in (four, eight, four)])
    assert found.codes.dtype == torch.int8
    assert torch.equal(found.to_floats(), expected)
    assert stack([four, four]).codes.dtype == torch.uint8
    assert stack([eight, eight]).minimums is None


def test_groups_that_fit_are_kept_and_others_rounded() -> None:
    codes = torch.randint(0, 16, (4, 64), generator=torch.Generator().manual_seed(3))
    scales, minimums = torch.full((4, 2), 0.5), torch.full((4, 2), -1.0)
    fitting = Groups(codes.to(torch.uint8), scales, minimums)
    found = kept(fitting)
    assert isinstance(found, QuantizedWeight)
    assert torch.equal(found.to_floats(), fitting.to_floats())
    wide = Groups((codes * 2).to(torch.uint8), scales, minimums)
    assert kept(wide).codes.dtype == torch.int8  # type: ignore[union-attr]
    narrow = Groups(codes.to(torch.int8), torch.rand(4, 4) + 0.5)
    assert kept(narrow) is None
    rounded = from_groups(narrow)
    assert rounded is not None
    assert (rounded.to_floats() - narrow.to_floats()).abs().max() < 0.1
    assert kept(Groups(fitting.codes, scales * 1e6, minimums)) is None
