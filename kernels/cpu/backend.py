"""The native CPU backend: a step is one call into C++. Serves where the library was built and the K/V pool is float32 or bfloat16.

Weights that a GGUF file quantizes in groups of 32 (Q4_0, Q4_1, Q8_0) stay so, with int8 activations; other weights are multiplied as
floats. Imports the library when asked whether it can serve.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...errors import ConfigError
from ..ops import DecoderWeights, KvPool, PreparedModel

_MAX_HEAD_DIM = 256


@dataclass(frozen=True)
class CpuBackend:
    """Native kernels by instruction set: AVX2, or portable C++."""

    name: str = "cpu"
    priority: int = 5
    takes_quantized: bool = True

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

    def prepare(self, weights: DecoderWeights, kv: KvPool) -> PreparedModel:
        """See Backend. Threads: as many as torch uses, set by `EngineConfig.threads`."""
        from .model import NativeModel

        if kv.storage.dtype not in (torch.float32, torch.bfloat16):
            raise ConfigError(
                f"the native kernels keep keys and values as float32 or bfloat16, not {kv.storage.dtype}",
                place="dtype",
            )
        shape = weights.shape
        if shape.head_dim % 8 or shape.head_dim > _MAX_HEAD_DIM:
            raise ConfigError(
                f"the native kernels take heads of a multiple of 8 up to {_MAX_HEAD_DIM}, not {shape.head_dim}",
                place="kernels",
                hint="Use kernels='reference'",
            )
        return NativeModel(weights, kv, torch.get_num_threads())


BACKEND = CpuBackend()
