"""The native kernels behind the `PreparedModel` of torch: packs the weights given, and hands tensors to and from the decoder.

Owns that border only; `decoder.py` runs the steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..ops import I32, U32, DecoderShape, DecoderWeights, KvPool, StepBatch
from .decoder import NativeDecoder
from .library import instruction_sets, load, reads_halves
from .pack_model import pack_model
from .pool import NativePool


class NativeModel:
    """See PreparedModel. `isa` names one of `library.instruction_sets`; "" takes the best."""

    def __init__(
        self, weights: DecoderWeights, kv: KvPool, num_threads: int, isa: str = ""
    ) -> None:
        library = load()
        isa = isa or instruction_sets(library)[0]
        packed = pack_model(weights, reads_halves(library, isa))
        self._decoder = NativeDecoder(packed, _pool_of(kv), num_threads, isa)

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

    def logits(self, hidden: Tensor, masks: Sequence[U32 | None] | None = None) -> Tensor:
        """See PreparedModel."""
        return torch.from_numpy(self._decoder.logits(hidden.numpy(), masks=masks))


def _pool_of(kv: KvPool) -> NativePool:
    """The same memory."""
    kind = str(kv.storage.dtype).removeprefix("torch.")
    bits = kv.storage.view(torch.int16) if kind == "bfloat16" else kv.storage
    scales = None if kv.scales is None else kv.scales.numpy()
    return NativePool.by_layers(bits.numpy(), kv.page_size, kind, scales)
