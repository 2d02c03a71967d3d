"""Blocks taken apart give the numbers of the gguf library, bit for bit, whatever the bits of the block are."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch
from k_quants import encode, random_blocks

from radixlm.runtime.models.gguf_blocks import take_apart

IN_32 = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "Q4_K", "Q5_K", "IQ4_XS")
IN_16 = ("Q2_K", "Q3_K", "Q6_K")


@pytest.mark.parametrize("type_name", [*IN_32, *IN_16])
def test_any_block_means_what_the_library_says(type_name: str) -> None:
    data = random_blocks(type_name, 60).reshape(12, -1)
    groups = take_apart(type_name, torch.from_numpy(data))
    assert groups is not None
    assert groups.width == (16 if type_name in IN_16 else 32)
    assert groups.codes.dtype in (torch.uint8, torch.int8)
    expected = gguf.dequantize(data, gguf.GGMLQuantizationType[type_name])
    np.testing.assert_array_equal(groups.to_floats().numpy(), expected)


def test_a_block_of_q8_k_is_a_float32_scale_and_its_codes() -> None:
    codes = np.random.default_rng(0).integers(-128, 128, (3, 256), dtype=np.int8)
    scales = np.array([[0.5], [0.25], [3e-5]], np.float32)
    sums = np.zeros((3, 32), np.uint8)
    data = np.concatenate((scales.view(np.uint8), codes.view(np.uint8), sums), axis=1)
    groups = take_apart("Q8_K", torch.from_numpy(data))
    assert groups is not None
    np.testing.assert_array_equal(groups.to_floats().numpy(), codes * scales)


def test_other_types_have_no_such_form() -> None:
    assert take_apart("IQ2_S", torch.zeros(1, 82, dtype=torch.uint8)) is None


@pytest.mark.parametrize("type_name", ["Q4_K", "Q5_K", "Q6_K"])
def test_the_encoders_of_these_tests_write_what_the_library_reads(type_name: str) -> None:
    values = np.random.default_rng(1).normal(size=(4, 512)).astype(np.float32)
    read = gguf.dequantize(encode(values, type_name), gguf.GGMLQuantizationType[type_name])
    share = {"Q4_K": 0.09, "Q5_K": 0.05, "Q6_K": 0.03}[type_name]
    assert np.sqrt(np.square(read - values).mean()) < share
