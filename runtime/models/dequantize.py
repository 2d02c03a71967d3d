"""GGUF tensors as floats, or as the native kernels multiply them: the file's own codes where they fit, else rounded to 8 bits.

Owns what becomes of each type of tensor (`gguf_blocks` takes blocks apart, `round_weights` rounds):

    F32, F16, BF16                      floats
    Q4_0, Q4_1, Q5_0, Q5_1, Q8_0        kept exactly; 5 bits as codes of 8
    IQ4_NL                              kept exactly, as 8 bits
    Q4_K, Q5_K, IQ4_XS, Q8_K            codes kept; scale and minimum of each 32 rounded to float16
    Q6_K, Q3_K                          rounded to 8 bits: pairs of groups of 16 share a scale
    Q2_K                                rounded to 8 bits with a minimum
    the rest that `gguf` reads          rounded to 8 bits with a minimum

Dequantized values equal the `gguf` library's bit for bit (a test).
"""

from __future__ import annotations

import gguf
import numpy as np
import torch
from torch import Tensor

from ...errors import ModelError
from ...kernels.ops import QuantizedWeight
from ..gguf_file import GgufTensor
from . import round_weights
from .gguf_blocks import take_apart
from .weight_groups import Groups

_FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_PART_BYTES = 1 << 22


def floats(tensor: GgufTensor) -> Tensor | None:
    """The tensor as its file holds it; None where that is not floats."""
    kind = _FLOATS.get(tensor.type_name)
    return None if kind is None else _bytes(tensor.data).view(kind).view(tensor.shape)


def dequantize(tensor: GgufTensor) -> Tensor:
    """float32 values in the tensor's shape. ModelError for a type the library does not know."""
    plain = floats(tensor)
    if plain is not None:
        return plain.float()
    data = tensor.data.reshape(-1, tensor.data.shape[-1])
    parts = [_part(tensor, part) for part in _parts(data)]
    values = [part.to_floats() if isinstance(part, Groups) else part for part in parts]
    return torch.cat(values).view(tensor.shape)


def quantized(tensor: GgufTensor) -> QuantizedWeight | None:
    """The tensor for kernels that multiply codes; None for floats, for what is no matrix, and for what float16 scales do not reach."""
    if tensor.type_name in _FLOATS or len(tensor.shape) != 2:
        return None
    found: list[QuantizedWeight] = []
    for data in _parts(tensor.data):
        weight = _rounded(_part(tensor, data))
        if weight is None:
            return None
        found.append(weight)
    return round_weights.stack(found)


def _rounded(part: Groups | Tensor) -> QuantizedWeight | None:
    if isinstance(part, Groups):
        return round_weights.from_groups(part)
    return round_weights.by_rows(part, round_weights.to_8_bits_with_minimums)


def _parts(data: np.ndarray) -> list[np.ndarray]:
    """Some rows at a time."""
    rows = max(1, _PART_BYTES // data.shape[1])
    return [data[start : start + rows] for start in range(0, len(data), rows)]


def _part(tensor: GgufTensor, data: np.ndarray) -> Groups | Tensor:
    """Some rows, taken apart; or their float32 values by the library."""
    groups = take_apart(tensor.type_name, _bytes(data))
    if groups is not None:
        return groups
    try:
        values = gguf.dequantize(data, gguf.GGMLQuantizationType[tensor.type_name])
    except (KeyError, NotImplementedError) as error:
        raise ModelError(
            f"tensor {tensor.name!r} is stored as {tensor.type_name}, which cannot be read",
            place=tensor.name,
            hint="Quantize the model as Q4_0, Q4_1, Q8_0, a K-quant, BF16, F16 or F32",
        ) from error
    return torch.from_numpy(np.ascontiguousarray(values, np.float32))


def _bytes(data: np.ndarray) -> Tensor:
    # the file is mapped read-only; torch wants writable memory
    return torch.from_numpy(np.array(data))
