"""The native linear layers alone: every kind of weight, shape and number of rows, against the definition in the reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from native_models import ModelKind, make_pool, make_weights, stored

from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.cpu.library import instruction_sets, load
from radixlm.kernels.cpu.model import NativeModel
from radixlm.kernels.ops import Linear, QuantizedWeight
from radixlm.kernels.reference.linear import rounded

REASON = BACKEND.unavailable_reason("cpu")
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))
ISAS = [] if REASON else instruction_sets(load())
STORED = ["f32", "bf16", "q4", "q8", "q8 with minimums"]
SHAPES = [(83, 32), (16, 96), (250, 1600)]


def head_of(how: str, num_out: int, num_in: int) -> Linear:
    """A random linear; its values reach the ends of what the kind can hold."""
    generator = torch.Generator().manual_seed(num_in)
    values = torch.randn(num_out, num_in, generator=generator)
    bias = torch.randn(num_out, generator=generator) if num_out % 2 == 0 else None
    if how != "q8 with minimums":
        return Linear(stored(values, how), bias)
    plain = stored(values, "q8")
    assert isinstance(plain, QuantizedWeight)
    codes = plain.codes.clone()
    codes[::3] = -128
    return Linear(QuantizedWeight(codes, plain.scales, (plain.scales * 7).half()), bias)


def native(head: Linear, isa: str, num_threads: int = 2) -> NativeModel:
    """A model with that head, whose linear `logits` computes."""
    num_out, num_in = head.weight.shape
    kind = ModelKind(hidden=num_in, vocab=num_out, num_layers=1)
    weights = replace(make_weights(kind), embedding=head.weight, head=head)
    return NativeModel(weights, make_pool(weights, 1), num_threads, isa)


def rows_of(num_rows: int, num_in: int) -> torch.Tensor:
    """Rows with outliers, halves of zeros, and a row of zeros."""
    generator = torch.Generator().manual_seed(num_rows)
    rows = torch.randn(num_rows, num_in, generator=generator)
    rows *= torch.exp(2 * torch.randn(num_rows, num_in // 16, generator=generator)).repeat_interleave(16, 1)  # fmt: skip
    rows[0, :16] = 0
    rows[num_rows // 2, -1] = 1000
    if num_rows > 2:
        rows[2] = 0
    return rows


def defined(rows: torch.Tensor, head: Linear) -> torch.Tensor:
    """The linear by its definition, in float64."""
    is_quantized = isinstance(head.weight, QuantizedWeight)
    weight = head.weight.to_floats() if isinstance(head.weight, QuantizedWeight) else head.weight
    product = (rounded(rows) if is_quantized else rows).double() @ weight.double().T
    return product if head.bias is None else product + head.bias.double()


def magnitude_of(head: Linear) -> torch.Tensor:
    weight = head.weight
    if not isinstance(weight, QuantizedWeight):
        return weight.double().abs()
    bare = QuantizedWeight(weight.codes, weight.scales).to_floats().double().abs()
    minimums = weight.scales if weight.minimums is None else weight.minimums
    return bare + minimums.double().abs().repeat_interleave(32, 1)


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


def test_the_rounding_of_activations_keeps_small_halves_beside_an_outlier() -> None:
    rows = torch.randn(4, 64, generator=torch.Generator().manual_seed(5))
    rows[:, 3] = 300.0
    error = (rounded(rows) - rows).abs()
    assert (
        error[:, 16:].max() < 4 / 127
    )  # its own largest value / 127 / 2 and a little, not the outlier's 300 / 127 / 2
    assert error[:, :16].max() <= 300 / 127 / 2 * 1.001
    assert (rounded(torch.zeros(1, 32)) == 0).all()
