"""Dequantized GGUF blocks equal the gguf library's, bit for bit."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from radixlm.errors import ModelError
from radixlm.runtime.gguf_file import GgufTensor
from radixlm.runtime.models.dequantize import dequantize


@pytest.mark.parametrize("type_name", ["F32", "F16", "Q8_0", "Q4_0", "Q4_1", "Q5_1", "BF16"])
@pytest.mark.parametrize("shape", [(3, 64), (96,)])
def test_blocks_equal_the_librarys(type_name: str, shape: tuple[int, ...]) -> None:
    kind = gguf.GGMLQuantizationType[type_name]
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    data = gguf.quantize(values, kind)
    expected = gguf.dequantize(data, kind)
    raw = data.view(np.uint8)
    raw.flags.writeable = False
    found = dequantize(GgufTensor("t", shape, type_name, raw))
    assert found.shape == shape
    np.testing.assert_array_equal(found.numpy(), expected)


def test_an_unreadable_type_names_the_tensor() -> None:
    with pytest.raises(ModelError, match=r"blk\.0.*I32"):
        dequantize(GgufTensor("blk.0", (4,), "I32", np.zeros(16, np.uint8)))
