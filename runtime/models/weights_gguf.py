"""Weights out of a GGUF file: mapped into memory, one tensor at a time when it is read, dequantized unless it is to stay as it is.

Owns the way from GGUF blocks to tensors. Knows nothing of families. Sizes and offsets were checked when the file was opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from ...errors import ModelError
from ...kernels.ops import QuantizedWeight
from ..gguf_file import open_gguf
from .dequantize import dequantize, floats, quantized


class GgufWeights:
    """A WeightSource over one GGUF file; `dtype` is the type of the tensors it returns, `quantization` as in `open_weights`."""

    kind: Literal["gguf", "hf"] = "gguf"

    def __init__(self, path: Path, dtype: torch.dtype, quantization: str = "none") -> None:
        self._file = open_gguf(path)
        self._dtype = dtype
        self._keeps_quantized = quantization != "none"
        self._keeps_floats = quantization == "file" and dtype == torch.float32

    @property
    def settings(self) -> Mapping[str, Any]:
        """The file's metadata."""
        return self._file.metadata

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """See WeightSource."""
        tensor = self._file.tensors.get(name)
        return None if tensor is None else tensor.shape

    def read_weight(self, name: str) -> Tensor | QuantizedWeight:
        """See WeightSource."""
        tensor = self._file.tensors.get(name)
        kept: Tensor | QuantizedWeight | None = None
        if tensor is not None and self._keeps_quantized:
            kept = quantized(tensor)
        if tensor is not None and kept is None and self._keeps_floats:
            kept = floats(tensor)  # of 16 bits: the products are the same, half the memory is read
        return self.read(name) if kept is None else kept

    def read(self, name: str) -> Tensor:
        """See WeightSource."""
        tensor = self._file.tensors.get(name)
        if tensor is None:
            raise ModelError(f"the model has no tensor {name!r}", place=name)
        return dequantize(tensor).to(self._dtype)
