"""Ids a request may not sample now: EOS and stop ids before min_tokens, EOS under ignore_eos. Owns the rule and its two forms.

Free rows get a bias of -inf; rows under a grammar get the bits, because there a complete sentence beats the ban. The usual
forms (EOS alone) are made once. Knows nothing of batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .plan import F32, I32, U32
from .request import Request


@dataclass(frozen=True, slots=True)
class Bias:
    """Sparse additions to one row of logits."""

    token_ids: I32  # distinct
    values: F32


@dataclass(frozen=True, slots=True)
class _Ban:
    bias: Bias
    bits: U32  # [ceil(V / 32)]


class Bans:
    """The rule over one vocabulary."""

    def __init__(self, vocab_size: int, eos_token_ids: Sequence[int]) -> None:
        self._num_words = (vocab_size + 31) // 32
        self._eos_ids = tuple(eos_token_ids)
        self._eos = self._ban(self._eos_ids)

    def bias(self, request: Request) -> Bias | None:
        """-inf for every banned id; None when nothing is banned."""
        ban = self._of(request)
        return None if ban is None else ban.bias

    def mask(self, request: Request) -> U32 | None:
        """Bits of the banned ids; None when nothing is banned."""
        ban = self._of(request)
        return None if ban is None else ban.bits

    def _of(self, request: Request) -> _Ban | None:
        sampling = request.sampling
        if request.num_output < sampling.min_tokens:
            stop_ids = sampling.stop_token_ids
            return self._ban((*self._eos_ids, *stop_ids)) if stop_ids else self._eos
        return self._eos if sampling.ignore_eos else None

    def _ban(self, token_ids: Sequence[int]) -> _Ban | None:
        if not token_ids:
            return None
        ids: I32 = np.unique(np.array(token_ids, dtype=np.int32))
        bits = np.zeros(self._num_words, dtype=np.uint32)
        np.bitwise_or.at(bits, ids >> 5, np.uint32(1) << (ids & 31).astype(np.uint32))
        return _Ban(Bias(ids, np.full(ids.size, -np.inf, dtype=np.float32)), bits)
