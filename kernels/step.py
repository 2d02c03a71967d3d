"""One step's integers, and those of a model: the part of the vocabulary that every backend shares and that needs no tensor library.

Owns the types. Knows nothing of weights, files, plans or devices; numpy only, so that a process can run a model without torch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]

KEY_BLOCK = 64
"""Keys per block, aligned to absolute position, of backends that promise the same bits for every batch: each block gives its own
(max, sum, values), and blocks merge left to right. Page sizes divide it."""


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """The integers of a decoder-only transformer."""

    num_layers: int
    hidden_size: int
    num_heads: int  # Hq, a multiple of Hk
    num_kv_heads: int  # Hk
    head_dim: int  # D
    intermediate_size: int
    vocab_size: int
    context_length: int
    rms_epsilon: float


@dataclass(frozen=True, slots=True)
class PrefixGroup:
    """Sequences [G >= 2] whose first `num_shared_pages` pages are the same: their K/V may be read once for all."""

    sequences: I32
    num_shared_pages: int


@dataclass(frozen=True, slots=True)
class StepBatch:
    """One step's integers, on the host: sequence s owns rows query_starts[s] .. query_starts[s+1] of T.

    Groups may nest (a sequence in several, each with more pages than the one around it); a group's pages lie before every new token.
    """

    token_ids: I32  # [T]
    positions: I32  # [T] rising by one inside a sequence; the last is context_lens[s] - 1
    slot_ids: I64  # [T] where the token's K/V is written
    query_starts: I32  # [S+1]
    context_lens: I32  # [S] K/V length after this step
    page_tables: I32  # [S, P] padded
    logit_rows: I32  # [R] rows of T that `forward` returns, ascending
    groups: tuple[PrefixGroup, ...] = ()
