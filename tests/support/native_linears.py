"""Linear layers on their own for tests of the native kernels: a model whose head is the linear, and its definition in float64."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from native_models import ModelKind, make_pool, make_weights, stored

from radixlm.kernels.cpu.model import NativeModel
from radixlm.kernels.ops import Linear, QuantizedWeight
from radixlm.kernels.reference.linear import rounded

STORED = ["f32", "bf16", "f16", "q4", "q8", "q8 with minimums"]
QUANTIZED = STORED[3:]


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
    """Rows with outliers, halves of zeros, a half that nearly vanishes beside its neighbour, and a row of zeros."""
    generator = torch.Generator().manual_seed(num_rows)
    rows = torch.randn(num_rows, num_in, generator=generator)
    rows *= torch.exp(2 * torch.randn(num_rows, num_in // 16, generator=generator)).repeat_interleave(16, 1)  # fmt: skip
    rows[0, :16] = 0
    rows[-1, 16:32] *= 1e-5
    rows[num_rows // 2, -1] = 1000
    if num_rows > 2:
        rows[2] = 0
    return rows


def with_a_spoiled_row(rows: torch.Tensor, row: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Copies in which that row holds a value that is no finite number, or nothing else."""
    for value in (torch.nan, torch.inf, -torch.inf):
        for place in (0, 13, 24, -1, slice(None)):
            spoiled = rows.clone()
            spoiled[row, place] = value
            yield f"{value} at {place} of row {row}", spoiled


def defined(rows: torch.Tensor, head: Linear) -> torch.Tensor:
    """The linear by its definition, in float64."""
    is_quantized = isinstance(head.weight, QuantizedWeight)
    weight = head.weight.to_floats() if isinstance(head.weight, QuantizedWeight) else head.weight
    product = (rounded(rows) if is_quantized else rows).double() @ weight.double().T
    return product if head.bias is None else product + head.bias.double()


def magnitude_of(head: Linear) -> torch.Tensor:
    """Of the weights: code * scale and minimum each by itself."""
    weight = head.weight
    if not isinstance(weight, QuantizedWeight):
        return weight.double().abs()
    bare = QuantizedWeight(weight.codes, weight.scales).to_floats().double().abs()
    minimums = weight.scales if weight.minimums is None else weight.minimums
    return bare + minimums.double().abs().repeat_interleave(32, 1)
