"""GGUF blocks to float32, in torch and so on all threads for the common formats; the rest goes through the `gguf` library.

Owns the block layouts of Q4_0, Q4_1 and Q8_0 (source: the GGML quantization formats of the GGUF specification; each block is 32 weights):

    Q8_0  scale f16 | 32 x int8                       w = q * scale
    Q4_0  scale f16 | 16 bytes                        w = (q - 8) * scale      low nibbles are weights 0..15, high nibbles 16..31
    Q4_1  scale f16 | minimum f16 | 16 bytes          w = q * scale + minimum

The arithmetic and its order are the library's, so results are equal bit for bit (a test).
"""

from __future__ import annotations

import gguf
import numpy as np
import torch
from torch import Tensor

from ...errors import ModelError
from ...kernels.ops import QuantizedWeight
from ..gguf_file import GgufTensor

_BLOCK = 32


def dequantize(tensor: GgufTensor) -> Tensor:
    """float32 values in the tensor's shape. ModelError for a type the library does not know."""
    plain = {"F32": np.float32, "F16": np.float16}.get(tensor.type_name)
    if plain is not None:
        values = np.ascontiguousarray(tensor.data).view(plain).astype(np.float32)
        return torch.from_numpy(values).view(tensor.shape)
    unpack = {"Q8_0": _q8_0, "Q4_0": _q4_0, "Q4_1": _q4_1}.get(tensor.type_name)
    if unpack is not None:
        # the file is mapped read-only; torch wants writable memory, and a compressed copy is small
        return unpack(torch.from_numpy(np.array(tensor.data))).view(tensor.shape)
    return _by_library(tensor)


def quantized(tensor: GgufTensor) -> QuantizedWeight | None:
    """The tensor's own codes, scales and minimums; None for a type that is not kept quantized."""
    size = {"Q8_0": 2 + _BLOCK, "Q4_0": 2 + _BLOCK // 2, "Q4_1": 4 + _BLOCK // 2}.get(
        tensor.type_name
    )
    if size is None or len(tensor.shape) != 2:
        return None
    num_out, num_in = tensor.shape
    blocks = torch.from_numpy(np.array(tensor.data)).view(-1, size)

    def halves(at: int) -> Tensor:
        return blocks[:, at : at + 2].contiguous().view(torch.float16).view(num_out, -1)

    scales = halves(0)
    if tensor.type_name == "Q8_0":
        return QuantizedWeight(blocks[:, 2:].view(torch.int8).reshape(num_out, num_in), scales)
    packed = blocks[:, size - _BLOCK // 2 :]
    codes = torch.cat((packed & 15, packed >> 4), dim=1).view(num_out, num_in)
    return QuantizedWeight(codes, scales, halves(2) if tensor.type_name == "Q4_1" else scales * -8)


def _by_library(tensor: GgufTensor) -> Tensor:
    try:
        values = gguf.dequantize(tensor.data, gguf.GGMLQuantizationType[tensor.type_name])
    except (KeyError, NotImplementedError) as error:
        raise ModelError(
            f"tensor {tensor.name!r} is stored as {tensor.type_name}, which cannot be read",
            place=tensor.name,
            hint="Quantize the model as Q4_0, Q4_1, Q8_0, a K-quant, F16 or F32",
        ) from error
    return torch.from_numpy(np.ascontiguousarray(values, np.float32)).view(tensor.shape)


def _half(blocks: Tensor, at: int) -> Tensor:
    """float32 [blocks, 1] of the float16 at byte `at` of each block."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(packed: Tensor) -> Tensor:
    """float32 [blocks, 32] of 4-bit numbers: low nibbles, then high nibbles."""
    return torch.cat((packed & 15, packed >> 4), dim=1).float()


def _q8_0(data: Tensor) -> Tensor:
    blocks = data.view(-1, 2 + _BLOCK)
    return blocks[:, 2:].view(torch.int8).float().mul_(_half(blocks, 0))


def _q4_0(data: Tensor) -> Tensor:
    blocks = data.view(-1, 2 + _BLOCK // 2)
    return _nibbles(blocks[:, 2:]).sub_(8.0).mul_(_half(blocks, 0))


def _q4_1(data: Tensor) -> Tensor:
    blocks = data.view(-1, 4 + _BLOCK // 2)
    return _nibbles(blocks[:, 4:]).mul_(_half(blocks, 0)).add_(_half(blocks, 2))
