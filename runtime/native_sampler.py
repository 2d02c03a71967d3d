"""Sampling by the native kernels: a plan's arrays become one call; what the steps of a row are stands in `sampler.py`, which is its twin.

Owns the way from `SamplingBatch` and `ScoreRows` to the struct, and from its results to a `StepResult`. numpy only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels.cpu.decoder import NativeDecoder
from ..kernels.cpu.library import SamplingStruct, address_of, gather
from .plan import (
    F32,
    I32,
    I64,
    INFINITE,
    NOT_A_NUMBER,
    NOTHING_ALLOWED,
    U32,
    Logprobs,
    SamplingBatch,
    ScoreRows,
    StepResult,
)

Arrays = dict[str, npt.NDArray[Any]]
_REASONS = ("", NOT_A_NUMBER, INFINITE, NOTHING_ALLOWED)


class NativeSampler:
    """Samples rows of logits on the decoder's threads. Called as `sampler.sample` is, with numpy logits."""

    def __init__(self, decoder: NativeDecoder) -> None:
        self._decoder = decoder

    def __call__(
        self, logits: F32, batch: SamplingBatch, masks: U32 | None, scores: ScoreRows
    ) -> StepResult:
        """A token for each row of `batch`, and the scores asked for. `logits` [R, V] are left unchanged."""
        num_rows, vocab = batch.rows.size, logits.shape[1]
        logits = np.ascontiguousarray(logits, np.float32)
        seeds = np.ascontiguousarray(batch.seeds, np.uint64)
        outcome = np.empty((2, num_rows), np.int32)
        memory, addresses = _row_arguments(batch)
        rare = _sparse_arguments(batch, masks)
        logprobs = found = None
        if num_rows and (width := int(batch.num_logprobs.max())) >= 0:
            logprobs = _empty_logprobs(num_rows, width)
            rare |= _results("", logprobs)
        if scores.rows.size:
            width = min(int(scores.num_logprobs.max()), vocab)
            found = _empty_logprobs(scores.rows.size, width)
            rare |= _results("score_", found) | {
                "score_rows": np.ascontiguousarray(scores.rows, np.int32),
                "score_ids": np.ascontiguousarray(scores.token_ids, np.int32),
                "score_num": np.ascontiguousarray(scores.num_logprobs, np.int32),
            }
        at = address_of(outcome)
        self._decoder.sample(
            SamplingStruct(
                num_rows=num_rows,
                num_scores=scores.rows.size,
                num_logits=len(logits),
                vocab=vocab,
                top_width=0 if logprobs is None else logprobs.top_ids.shape[1],
                score_width=0 if found is None else found.top_ids.shape[1],
                logits=address_of(logits),
                seeds=address_of(seeds),
                token_ids=at,
                reasons=at + 4 * num_rows,
                **addresses,
                **{name: address_of(array) for name, array in rare.items()},
            )
        )
        del memory  # which the call read
        token_ids, reasons = outcome
        failed: list[int] = np.flatnonzero(reasons).tolist()
        errors = tuple((k, _REASONS[int(reasons[k])]) for k in failed)
        return StepResult(token_ids, logprobs, found, errors)


def _row_arguments(batch: SamplingBatch) -> tuple[object, dict[str, int]]:
    """One number a row: the memory, and where each argument begins."""
    ints, addresses = gather(
        np.int32,
        rows=batch.rows,
        top_k=batch.top_k,
        positions=batch.positions,
        choices=batch.choice_index,
        num_logprobs=batch.num_logprobs,
    )
    floats, more = gather(
        np.float32,
        temperature=batch.temperature,
        top_p=batch.top_p,
        min_p=batch.min_p,
        typical_p=batch.typical_p,
        repetition=batch.repetition_penalty,
        frequency=batch.frequency_penalty,
        presence=batch.presence_penalty,
    )
    return (ints, floats), addresses | more


def _sparse_arguments(batch: SamplingBatch, masks: U32 | None) -> Arrays:
    """Counts, biases and masks, where there are any."""
    arrays: Arrays = {}
    num_rows = batch.rows.size
    if batch.count_rows.size:
        starts, order = _starts(batch.count_rows, num_rows)
        arrays["count_starts"] = starts
        arrays["count_ids"] = np.ascontiguousarray(batch.count_token_ids[order], np.int32)
        arrays["count_output"] = np.ascontiguousarray(batch.count_output[order], np.int32)
    if batch.bias_rows.size:
        starts, order = _starts(batch.bias_rows, num_rows)
        arrays["bias_starts"] = starts
        arrays["bias_ids"] = np.ascontiguousarray(batch.bias_token_ids[order], np.int32)
        arrays["bias_values"] = np.ascontiguousarray(batch.bias_values[order], np.float32)
    if masks is not None and batch.mask_rows.size:
        mask_of = arrays["mask_of"] = np.full(num_rows, -1, np.int32)
        mask_of[batch.mask_rows] = np.arange(batch.mask_rows.size)
        arrays["masks"] = np.ascontiguousarray(masks, np.uint32)
    return arrays


def _starts(rows: I32, num_rows: int) -> tuple[I32, slice | I64]:
    """Where the entries of each row begin, once they are taken in the order that comes with it."""
    starts = np.zeros(num_rows + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=num_rows), out=starts[1:])
    if (rows[1:] >= rows[:-1]).all():
        return starts, slice(None)
    return starts, np.argsort(rows, kind="stable")


def _empty_logprobs(num_rows: int, width: int) -> Logprobs:
    return Logprobs(
        chosen=np.zeros(num_rows, np.float32),
        top_ids=np.full((num_rows, width), -1, np.int32),
        top_values=np.full((num_rows, width), -np.inf, np.float32),
    )


def _results(prefix: str, logprobs: Logprobs) -> Arrays:
    return {
        f"{prefix}chosen": logprobs.chosen,
        f"{prefix}top_ids": logprobs.top_ids,
        f"{prefix}top_values": logprobs.top_values,
    }
