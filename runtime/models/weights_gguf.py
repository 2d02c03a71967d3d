"""Weights out of a GGUF file: mapped into memory, dequantized one tensor at a time when it is read.

Owns the way from GGUF blocks to tensors. Knows nothing of families. Sizes and offsets were checked when the file was opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from ...errors import ModelError
from ..gguf_file import open_gguf
from .dequantize import dequantize


class GgufWeights:
    """A WeightSource over one GGUF file; `dtype` is the type of the tensors it returns."""

    kind: Literal["gguf", "hf"] = "gguf"

    def __init__(self, path: Path, dtype: torch.dtype) -> None:
        self._file = open_gguf(path)
        self._dtype = dtype

    @property
    def settings(self) -> Mapping[str, Any]:
        """The file's metadata."""
        return self._file.metadata

    def shape_of(self, name: str) -> tuple[int, ...] | None:
        """See WeightSource."""
        tensor = self._file.tensors.get(name)
        return None if tensor is None else tensor.shape

    def read(self, name: str) -> Tensor:
        """See WeightSource."""
        tensor = self._file.tensors.get(name)
        if tensor is None:
            raise ModelError(f"the model has no tensor {name!r}", place=name)
        return dequantize(tensor).to(self._dtype)
