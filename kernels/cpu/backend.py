"""The native CPU backend: a step is one call into C++. Serves where the library was built.

Weights that a GGUF file quantizes in groups of 32 (Q4_0, Q4_1, Q8_0) stay so, with int8 activations; other weights are multiplied as
floats. Imports the library when asked whether it can serve.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..ops import DecoderShape, DecoderWeights, KvPool, PreparedModel


@dataclass(frozen=True)
class CpuBackend:
    """Native kernels by instruction set: AVX-512 VNNI, AVX-VNNI, AVX2, or portable C++."""

    name: str = "cpu"
    priority: int = 5
    takes_quantized: bool = True
    # an engine, which needs no torch, chooses by the weights: `runtime/native_runner.py`
    kv_dtype: torch.dtype | None = torch.bfloat16

    def unavailable_reason(self, device: str) -> str | None:
        """See Backend."""
        if device != "cpu":
            return "its kernels run on the CPU"
        from .library import load

        try:
            load()
        except OSError as error:
            return f"the native library is not there ({error}); install radixlm where a C++ compiler is"
        return None

    def refusal(self, shape: DecoderShape, kv_dtype: torch.dtype) -> str | None:
        """See Backend."""
        from .decoder import refusal

        return refusal(shape, str(kv_dtype).removeprefix("torch."))

    def prepare(self, weights: DecoderWeights, kv: KvPool) -> PreparedModel:
        """See Backend. Threads: as many as torch uses, set by `EngineConfig.threads`."""
        from .model import NativeModel

        return NativeModel(weights, kv, torch.get_num_threads())


BACKEND = CpuBackend()
