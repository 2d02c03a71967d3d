"""The Triton backend: kernels for NVIDIA GPUs. Serves on a CUDA device only, and only where triton is installed.

Imports triton when a model is prepared, not before: the registry asks every backend whether it can serve.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import torch

from ..composed import ComposedModel
from ..ops import DecoderShape, DecoderWeights, KvPool, PreparedModel


@dataclass(frozen=True)
class TritonBackend:
    """Norms and decode attention in Triton, the rest by the reference on the GPU."""

    name: str = "triton"
    priority: int = 10
    takes_quantized: bool = False
    kv_dtype: torch.dtype | None = None

    def unavailable_reason(self, device: str) -> str | None:
        """See Backend."""
        if device != "cuda":
            return "Triton kernels need an NVIDIA GPU"
        if importlib.util.find_spec("triton") is None:
            return "the package triton is not installed"
        return None if torch.cuda.is_available() else "torch sees no CUDA device"

    def refusal(self, shape: DecoderShape, kv_dtype: torch.dtype) -> str | None:
        """See Backend."""
        return (
            None
            if kv_dtype.is_floating_point
            else f"it keeps keys and values as floats, not {kv_dtype}"
        )

    def prepare(self, weights: DecoderWeights, kv: KvPool) -> PreparedModel:
        """See Backend."""
        from .ops import TritonOps

        return ComposedModel(TritonOps(str(kv.storage.device)), weights, kv)


BACKEND = TritonBackend()
