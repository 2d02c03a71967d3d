"""One step as data: BatchPlan goes down to the model runner, StepResult comes up. Integers and numpy only, both frozen.

Owns the layout of a step. Knows nothing of requests, text, torch or devices.

    token_ids   [T]  t0 t1 t2 | t0 | t0 t1 ...      all sequences' new tokens, concatenated
    query_starts[S+1] 0        3    4               sequence s owns rows query_starts[s] .. query_starts[s+1]
    context_lens[S]                                 K/V length of s after this step (cached + new)
    page_tables [S, P]                              page ids; position p of s lives at page_tables[s, p // page_size], offset p % page_size
    logit_rows  [R]                                 rows of T whose logits are wanted, ascending
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
F32 = npt.NDArray[np.float32]


NOT_A_NUMBER = "the model's logits of this row are not numbers"
INFINITE = "a logit of this row is infinite"
NOTHING_ALLOWED = (
    "no token is allowed here: the constraint, the bias and the stop rules exclude all"
)


@dataclass(frozen=True, slots=True)
class SharedGroup:
    """Sequences whose first `num_shared_pages` pages are the same pages: attention may read them once for all."""

    sequences: I32  # [G] indices into the plan's sequences, at least two
    num_shared_pages: int


@dataclass(frozen=True, slots=True)
class SamplingBatch:
    """Vectorised sampling arguments of K rows that sample a token this step.

    Noise is Gumbel per token id from Philox4x32-10: key = seed, counter = (token id // 4, position, choice index, 0), lane = token id % 4.
    """

    rows: I32  # [K] indices into logit_rows' order (0 .. R-1)
    temperature: F32  # [K] 0 means greedy
    top_k: I32  # [K] 0 means off
    top_p: F32  # [K]
    min_p: F32  # [K]
    typical_p: F32  # [K]
    seeds: U64  # [K]
    positions: I32  # [K] absolute position of the token being sampled
    choice_index: I32  # [K] 0 .. n-1
    repetition_penalty: F32  # [K]
    frequency_penalty: F32  # [K]
    presence_penalty: F32  # [K]
    # sparse counts for penalties, COO over (row k, token id); empty when no row has a penalty
    count_rows: I32  # [N] k
    count_token_ids: I32  # [N]
    count_output: I32  # [N] times in the output so far
    count_prompt: I32  # [N] 1 when it stands in the prompt, else 0
    # sparse logit bias, COO; -inf forbids (min_tokens, stop ids under ignore_eos ...)
    bias_rows: I32
    bias_token_ids: I32
    bias_values: F32
    num_logprobs: I32  # [K] -1: none asked; 0: the chosen token's; k > 0: and the k best
    mask_rows: (
        I32  # [M] k of the rows under a grammar; their masks come beside the plan, same order
    )


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Rows whose logits score a given next token (prompt logprobs, scored choices, forced tokens' logprobs)."""

    rows: I32  # [Q] indices into 0 .. R-1
    token_ids: I32  # [Q] the token that actually follows
    num_logprobs: I32  # [Q] how many best alternatives


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """All a model runner needs for one step."""

    token_ids: I32  # [T]
    positions: I32  # [T]
    slot_ids: I64  # [T] page id * page_size + offset where the token's K/V is written
    query_starts: I32  # [S+1]
    context_lens: I32  # [S]
    page_tables: I32  # [S, P] padded with 0
    logit_rows: I32  # [R]
    page_copies: I32  # [C, 3] (source page, destination page, number of tokens): copy-on-write, done before any write
    shared_groups: tuple[SharedGroup, ...]
    sampling: SamplingBatch
    scores: ScoreRows
    request_keys: tuple[int, ...] = field(
        default=()
    )  # opaque, per sequence, for the scheduler's apply()


@dataclass(frozen=True, slots=True)
class Logprobs:
    """Log-probabilities of Q rows: of the token itself, and the best `K` (padded with -1 / -inf)."""

    chosen: F32  # [Q]
    top_ids: I32  # [Q, K]
    top_values: F32  # [Q, K]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came out of one step."""

    token_ids: I32  # [K] sampled, in the order of plan.sampling.rows; -1 where the row had no finite logit (see errors)
    logprobs: (
        Logprobs | None
    )  # rows of `sampling` with num_logprobs >= 0 have meaning, others are padding; [K]
    scores: Logprobs | None  # of plan.scores, [Q]
    errors: tuple[tuple[int, str], ...] = ()  # (k, message): this row could not be sampled
