"""Packs a model's files for the native kernels: the one time that they need torch.

Owns the choice of what is read (the file's own quantization, floats, or both rounded). `packed_weights` keeps the result as a file.
"""

from __future__ import annotations

import torch

from ...kernels.cpu.decoder import refusal
from ...kernels.cpu.pack_model import pack_model
from ...kernels.cpu.packed import PackedModel
from ..model_files import ModelFiles
from .registry import open_weights

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def pack_files(
    files: ModelFiles, dtype: str, quantization: str, in_halves: bool
) -> PackedModel | None:
    """The packed model; None when the kernels do not take its shape. ModelError for files that cannot be run."""
    with open_weights(files, _DTYPES[dtype], quantization) as weights:
        if refusal(weights.shape, dtype) is not None:
            return None
        with torch.inference_mode():
            return pack_model(weights, in_halves)
