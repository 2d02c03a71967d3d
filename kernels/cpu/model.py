"""The native kernels behind the `PreparedModel` of torch: packs the weights given, and hands tensors to and from the decoder.

Owns that border only; `decoder.py` runs the steps.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..ops import I32, DecoderShape, DecoderWeights, KvPool, StepBatch
from .decoder import NativeDecoder
from .pack_model import pack_model
from .pool import NativePool


class NativeModel:
    """See PreparedModel. `isa` names one of `library.instruction_sets`; "" takes the best."""

    def __init__(
        self, weights: DecoderWeights, kv: KvPool, num_threads: int, isa: str = ""
    ) -> None:
        self._decoder = NativeDecoder(pack_model(weights), _pool_of(kv), num_threads, isa)

    @property
    def shape(self) -> DecoderShape:
        """The model's integers."""
        return self._decoder.shape

    @property
    def instruction_set(self) -> str:
        """Which one serves."""
        return self._decoder.instruction_set

    def copy_pages(self, copies: I32) -> None:
        """See PreparedModel."""
        self._decoder.copy_pages(copies)

    def forward(self, batch: StepBatch) -> Tensor:
        """See PreparedModel."""
        return torch.from_numpy(self._decoder.forward(batch))

    def logits(self, hidden: Tensor) -> Tensor:
        """See PreparedModel."""
        return torch.from_numpy(self._decoder.logits(hidden.numpy()))


def _pool_of(kv: KvPool) -> NativePool:
    """The same memory."""
    if kv.storage.dtype == torch.float32:
        return NativePool(kv.storage.numpy(), kv.page_size, "float32")
    return NativePool(kv.storage.view(torch.int16).numpy(), kv.page_size, "bfloat16")
