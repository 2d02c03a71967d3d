"""The native linear layers alone: every kind of weight, shape and number of rows, against the definition in the reference."""

from __future__ import annotations

import pytest
import torch
from native_linears import (
    QUANTIZED,
    STORED,
    defined,
    head_of,
    magnitude_of,
    native,
    rows_of,
    with_a_spoiled_row,
)

from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.cpu.library import instruction_sets, load
from radixlm.kernels.reference.linear import apply, prepare, rounded

REASON = BACKEND.unavailable_reason("cpu")
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
ISAS = [] if REASON else instruction_sets(load())
SHAPES = [(83, 32), (16, 96), (250, 1600)]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("how", STORED)
def test_a_linear_is_what_the_reference_defines_for_any_shape_and_number_of_rows(
    how: str, isa: str
) -> None:
    for num_out, num_in in SHAPES:
        head = head_of(how, num_out, num_in)
        model = native(head, isa)
        for num_rows in (1, 2, 3, 4, 6, 8, 67):
            rows = rows_of(num_rows, num_in)
            wanted = defined(rows, head)
            # codes and factors are the same, products exact: what is left is float32 sums of the groups
            tolerance = 1e-6 if how.startswith("q") else 1e-5
            magnitude = rows.abs().double() @ magnitude_of(head).T
            assert ((model.logits(rows) - wanted).abs() <= tolerance * magnitude + 1e-9).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("how", STORED)
def test_a_row_has_the_same_bits_beside_any_number_of_rows_and_threads(how: str, isa: str) -> None:
    head = head_of(how, 83, 1600)
    models = [native(head, isa, num_threads) for num_threads in (1, 3)]
    rows = rows_of(300, 1600)
    whole = models[0].logits(rows)
    for model in models:
        for first, last in [(0, 1), (1, 3), (3, 6), (5, 9), (90, 297), (43, 300)]:
            assert torch.equal(model.logits(rows[first:last]), whole[first:last])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("how", QUANTIZED)
def test_a_row_with_a_value_that_is_not_finite_gives_no_numbers_and_leaves_the_others_alone(
    how: str, isa: str
) -> None:
    for num_out, num_in in [(83, 32), (48, 96), (250, 1600)]:  # without and with a bias
        model = native(head_of(how, num_out, num_in), isa)
        for num_rows in (1, 2, 5):
            rows = rows_of(num_rows, num_in)
            alone = torch.cat([model.logits(row[None]) for row in rows])
            row = num_rows // 2  # of 5: the row of zeros
            others = torch.arange(num_rows) != row
            for case, spoiled in with_a_spoiled_row(rows, row):
                out = model.logits(spoiled)
                assert out[row].isnan().all(), (case, num_in, num_rows)
                assert torch.equal(out[others], alone[others]), (case, num_in, num_rows)


@pytest.mark.parametrize("how", QUANTIZED)
def test_the_reference_of_such_a_row_gives_no_numbers_either(how: str) -> None:
    for num_out, num_in in [(83, 32), (48, 96)]:
        prepared = prepare(head_of(how, num_out, num_in), packs=True)
        rows = rows_of(5, num_in)
        whole, alone = apply(rows, prepared), torch.cat([rounded(row[None]) for row in rows])
        for row in (1, 2):  # 2: zeros
            others = torch.arange(5) != row
            for case, spoiled in with_a_spoiled_row(rows, row):
                out = apply(spoiled, prepared)
                assert out[row].isnan().all(), case
                assert torch.equal(out[others], whole[others]), case
                assert torch.equal(rounded(spoiled)[others], alone[others]), case


def test_the_rounding_of_activations_keeps_small_halves_beside_an_outlier() -> None:
    rows = torch.randn(4, 64, generator=torch.Generator().manual_seed(5))
    rows[:, 3] = 300.0
    error = (rounded(rows) - rows).abs()
    # half a scale, which may be twice what the largest value of the 16 needs, and not the outlier's 300 / 127
    assert error[:, 16:].max() <= rows[:, 16:].abs().max() / 127
    assert error[:, :16].max() <= 300 / 127 / 2 * 1.001
    assert (rounded(torch.zeros(1, 32)) == 0).all()


def test_a_scale_is_the_least_power_of_two_of_its_span_that_holds_its_16_values() -> None:
    x = torch.linspace(-1, 1, 16).repeat(3, 18)  # spans of 128, 128 and 32 values
    largest = torch.ones(3, 18)
    largest[0] = torch.tensor([127.0 * 2.0**-k for k in range(18)])
    largest[1] = torch.tensor([127.0, 63.6, 63.4] * 6)
    largest[2, 7:9] = 1e9
    x *= largest.repeat_interleave(16, 1)
    tops = torch.cat([part.amax(-1, True).expand_as(part) for part in largest.split(8, 1)], 1)
    wanted = (tops / 127 / 4096) * 2.0 ** (largest / tops * 4096).clamp(min=1).log2().ceil()
    scales = wanted.repeat_interleave(16, 1)
    assert torch.allclose(rounded(x), (x / scales).round() * scales, rtol=1e-6)


def test_what_is_far_below_the_largest_of_its_span_is_rounded_in_units_of_the_span() -> None:
    x = torch.full((1, 256), 127.0)
    small = torch.tensor([1, 3, 5, 7] * 4) * 2.0**-14
    x[0, 16:32] = x[0, 144:160] = small
    assert torch.equal(rounded(x)[0, 16:32], (small * 4096).round() / 4096)
    x[0, 128:144] = x[0, 160:] = 2.0**-11  # the other span has nothing large any more
    assert torch.equal(rounded(x)[0, 16:32], (small * 4096).round() / 4096)
    assert torch.allclose(rounded(x)[0, 144:160], small, rtol=0.1)
