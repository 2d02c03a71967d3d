"""GGUF tensors as floats equal the gguf library's, bit for bit; as codes they lose what kernels/README.md says, and no more."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch
from k_quants import encode, random_blocks
from native_linears import magnitude_of, native, rows_of

from radixlm.errors import ModelError
from radixlm.kernels.cpu.backend import BACKEND
from radixlm.kernels.ops import Linear, QuantizedWeight
from radixlm.kernels.reference.linear import rounded
from radixlm.runtime.gguf_file import GgufTensor
from radixlm.runtime.models import dequantize as module
from radixlm.runtime.models.dequantize import dequantize, floats, quantized

EXACT = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL")
ROUNDED_SCALES = ("Q4_K", "Q5_K", "IQ4_XS")
ADDED = {"Q6_K": 0.25, "Q3_K": 0.03, "Q2_K": 0.02}
"""Of the types that are rounded anew: root mean square of what that adds, over that of the format's own rounding."""
HALF_ULP = 2.0**-11


def tensor_of(type_name: str, num_out: int = 20, num_in: int = 1024) -> GgufTensor:
    """A random matrix of that type."""
    kind = gguf.GGMLQuantizationType[type_name]
    width = gguf.GGML_QUANT_SIZES[kind][0]
    data = random_blocks(type_name, num_out * num_in // width).reshape(num_out, -1)
    return GgufTensor("t", (num_out, num_in), type_name, data)


def codes_of(tensor: GgufTensor) -> QuantizedWeight:
    found = quantized(tensor)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "type_name", ["F32", "F16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "BF16", "Q4_K", "Q6_K", "TQ1_0"]
)  # fmt: skip
@pytest.mark.parametrize("shape", [(3, 256), (256,)])
def test_blocks_equal_the_librarys(type_name: str, shape: tuple[int, ...]) -> None:
    kind = gguf.GGMLQuantizationType[type_name]
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    data = encode(values.reshape(-1, 256), type_name).view(np.uint8).reshape(*shape[:-1], -1)
    expected = gguf.dequantize(data, kind)
    data.flags.writeable = False
    found = dequantize(GgufTensor("t", shape, type_name, data))
    assert found.shape == shape
    np.testing.assert_array_equal(found.numpy(), expected)


def test_an_unreadable_type_names_the_tensor() -> None:
    for read in (dequantize, quantized):
        with pytest.raises(ModelError, match=r"blk\.0.*I32"):
            read(GgufTensor("blk.0", (2, 2), "I32", np.zeros((2, 8), np.uint8)))


@pytest.mark.parametrize("type_name", EXACT)
def test_groups_of_32_with_float16_scales_are_kept_exactly(type_name: str) -> None:
    tensor = tensor_of(type_name)
    assert torch.equal(codes_of(tensor).to_floats(), dequantize(tensor))


@pytest.mark.parametrize("type_name", ["Q4_0", "Q4_1", "Q4_K"])
def test_codes_of_four_bits_stay_of_four_bits(type_name: str) -> None:
    assert codes_of(tensor_of(type_name)).codes.dtype == torch.uint8


@pytest.mark.parametrize("type_name", ROUNDED_SCALES)
def test_scales_of_super_blocks_lose_the_rounding_to_float16(type_name: str) -> None:
    tensor = tensor_of(type_name)
    found = codes_of(tensor)
    error = (found.to_floats() - dequantize(tensor)).abs()
    scale = found.scales.float().abs().repeat_interleave(32, 1)
    bound = found.codes.float().abs() * scale
    if found.minimums is not None:
        bound = bound + found.minimums.float().abs().repeat_interleave(32, 1)
    assert (error <= HALF_ULP * bound + 2.0**-20).all()
    own = scale.square().mean().sqrt() / 12**0.5  # of rounding to whole codes
    assert error.square().mean().sqrt() < 0.06 * own


@pytest.mark.parametrize(("type_name", "share"), ADDED.items())
def test_groups_of_16_that_share_a_scale_add_little_to_the_formats_own_error(
    type_name: str, share: float
) -> None:
    tensor = tensor_of(type_name, 64, 4096)
    groups = module.take_apart(type_name, torch.from_numpy(tensor.data))
    assert groups is not None
    own = groups.scales.square().mean().sqrt() / 12**0.5
    added = (codes_of(tensor).to_floats() - dequantize(tensor)).square().mean().sqrt()
    assert added < share * own


def test_a_q6_k_matrix_of_real_weights_is_no_worse_for_being_rounded_again() -> None:
    weights = np.random.default_rng(3).normal(size=(16, 2048)).astype(np.float32) * 0.02
    tensor = GgufTensor("t", weights.shape, "Q6_K", encode(weights, "Q6_K"))
    exact, ours = dequantize(tensor), codes_of(tensor).to_floats()
    own = (exact - torch.from_numpy(weights)).square().mean().sqrt()
    whole = (ours - torch.from_numpy(weights)).square().mean().sqrt()
    assert whole < 1.03 * own


def test_a_type_without_groups_of_its_own_is_rounded_to_8_bits() -> None:
    values = np.random.default_rng(5).normal(size=(4, 512)).astype(np.float32)
    tensor = GgufTensor("t", values.shape, "TQ2_0", encode(values, "TQ2_0"))
    found, exact = codes_of(tensor), dequantize(tensor)
    assert found.codes.dtype == torch.int8
    assert (found.to_floats() - exact).abs().max() <= exact.abs().max() / 200


def test_floats_and_vectors_are_not_quantized_and_halves_stay_halves() -> None:
    values = np.random.default_rng(7).normal(size=(4, 64)).astype(np.float32)
    for type_name, kind in (("BF16", torch.bfloat16), ("F16", torch.float16)):
        data = gguf.quantize(values, gguf.GGMLQuantizationType[type_name]).view(np.uint8)
        tensor = GgufTensor("t", values.shape, type_name, data)
        assert quantized(tensor) is None
        kept = floats(tensor)
        assert kept is not None
        assert kept.dtype == kind
        assert torch.equal(kept.float(), dequantize(tensor))
    assert quantized(GgufTensor("t", (256,), "Q4_K", random_blocks("Q4_K", 1)[0])) is None
    assert floats(tensor_of("Q8_0")) is None


def test_scales_beyond_float16_leave_the_matrix_to_floats() -> None:
    tensor = tensor_of("Q4_K", 1, 256)
    data = tensor.data.copy()
    data[:, :2] = np.array([60000.0], np.float16).view(np.uint8)
    assert quantized(GgufTensor("t", (1, 256), "Q4_K", data)) is None


def test_a_large_matrix_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [tensor_of(name) for name in ("Q6_K", "Q4_K", "Q2_K")]
    whole = [(codes_of(tensor), dequantize(tensor)) for tensor in tensors]
    monkeypatch.setattr(module, "_PART_BYTES", 3000)
    for tensor, (weight, values) in zip(tensors, whole, strict=True):
        again = codes_of(tensor)
        assert torch.equal(again.codes, weight.codes)
        assert torch.equal(again.scales, weight.scales)
        assert torch.equal(dequantize(tensor), values)


@pytest.mark.skipif(BACKEND.unavailable_reason("cpu") is not None, reason="no native kernels")
@pytest.mark.parametrize("type_name", [*EXACT, *ROUNDED_SCALES, *ADDED])
def test_the_native_linear_on_such_codes_is_the_exact_one_within_what_they_lose(
    type_name: str,
) -> None:
    tensor = tensor_of(type_name, 83, 1024)
    weight, exact = codes_of(tensor), dequantize(tensor)
    model = native(Linear(weight), "")
    loss = (weight.to_floats() - exact).abs().double()
    for num_rows in (1, 5):
        rows = rows_of(num_rows, 1024)
        wanted = rounded(rows).double() @ exact.double().T
        bound = rows.abs().double() @ (1.01 * loss + 1e-6 * magnitude_of(Linear(weight))).T + 1e-9
        assert ((model.logits(rows) - wanted).abs() <= bound).all()
