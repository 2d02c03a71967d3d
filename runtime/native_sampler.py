"""Sampling by the native kernels: a plan's arrays become one call; what the steps of a row are stands in `sampler.py`, which is its twin.

Owns the way from `SamplingBatch` and `ScoreRows` to the struct, and from its results to a `StepResult`. numpy only. Checks what the
kernels use as an index, because they do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels.cpu.decoder import NativeDecoder
from ..kernels.cpu.library import SamplingStruct, address_of
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
        token_ids, reasons = np.empty(num_rows, np.int32), np.empty(num_rows, np.int32)
        arrays: Arrays = {
            "logits": np.ascontiguousarray(logits, np.float32),
            **_row_arguments(batch, len(logits)),
            **_sparse_arguments(batch, vocab),
            "token_ids": token_ids,
            "reasons": reasons,
        }
        if masks is not None and batch.mask_rows.size:
            mask_of = np.full(num_rows, -1, np.int32)
            mask_of[batch.mask_rows] = np.arange(batch.mask_rows.size)
            arrays["mask_of"] = mask_of
            arrays["masks"] = np.ascontiguousarray(masks, np.uint32)
        else:
            arrays["mask_of"] = np.full(num_rows, -1, np.int32)
        logprobs = found = None
        if num_rows and (width := int(batch.num_logprobs.max())) >= 0:
            logprobs = _empty_logprobs(num_rows, width)
            arrays |= _results("", logprobs)
        if scores.rows.size:
            _check("a scored row", scores.rows, len(logits))
            _check("a scored token", scores.token_ids, vocab)
            found = _empty_logprobs(
                scores.rows.size, min(int(scores.num_logprobs.max(initial=0)), vocab)
            )
            arrays |= _results("score_", found) | {
                "score_rows": np.ascontiguousarray(scores.rows, np.int32),
                "score_ids": np.ascontiguousarray(scores.token_ids, np.int32),
                "score_num": np.ascontiguousarray(scores.num_logprobs, np.int32),
            }
        self._decoder.sample(
            SamplingStruct(
                num_rows=num_rows,
                num_scores=scores.rows.size,
                vocab=vocab,
                top_width=0 if logprobs is None else logprobs.top_ids.shape[1],
                score_width=0 if found is None else found.top_ids.shape[1],
                **{name: address_of(array) for name, array in arrays.items()},
            )
        )
        failed: list[int] = np.flatnonzero(reasons).tolist()
        errors = tuple((k, _REASONS[int(reasons[k])]) for k in failed)
        return StepResult(token_ids, logprobs, found, errors)


def _row_arguments(batch: SamplingBatch, num_logits: int) -> Arrays:
    """One number a row."""
    _check("a sampled row", batch.rows, num_logits)
    return {
        "rows": np.ascontiguousarray(batch.rows, np.int32),
        "top_k": np.ascontiguousarray(batch.top_k, np.int32),
        "positions": np.ascontiguousarray(batch.positions, np.int32),
        "choices": np.ascontiguousarray(batch.choice_index, np.int32),
        "num_logprobs": np.ascontiguousarray(batch.num_logprobs, np.int32),
        "temperature": np.ascontiguousarray(batch.temperature, np.float32),
        "top_p": np.ascontiguousarray(batch.top_p, np.float32),
        "min_p": np.ascontiguousarray(batch.min_p, np.float32),
        "typical_p": np.ascontiguousarray(batch.typical_p, np.float32),
        "repetition": np.ascontiguousarray(batch.repetition_penalty, np.float32),
        "frequency": np.ascontiguousarray(batch.frequency_penalty, np.float32),
        "presence": np.ascontiguousarray(batch.presence_penalty, np.float32),
        "seeds": np.ascontiguousarray(batch.seeds, np.uint64),
    }


def _sparse_arguments(batch: SamplingBatch, vocab: int) -> Arrays:
    """Counts and biases, by row."""
    num_rows = batch.rows.size
    counts, in_order = _starts(batch.count_rows, num_rows)
    biases, by_row = _starts(batch.bias_rows, num_rows)
    arrays: Arrays = {"count_starts": counts, "bias_starts": biases}
    if batch.count_rows.size:
        _check("a counted token", batch.count_token_ids, vocab)
        arrays["count_ids"] = np.ascontiguousarray(batch.count_token_ids[in_order], np.int32)
        arrays["count_output"] = np.ascontiguousarray(batch.count_output[in_order], np.int32)
    if batch.bias_rows.size:
        _check("a biased token", batch.bias_token_ids, vocab)
        arrays["bias_ids"] = np.ascontiguousarray(batch.bias_token_ids[by_row], np.int32)
        arrays["bias_values"] = np.ascontiguousarray(batch.bias_values[by_row], np.float32)
    return arrays


def _starts(rows: I32, num_rows: int) -> tuple[I32, slice | I64]:
    """Where the entries of each row begin, once they are taken in the order that comes with it."""
    starts = np.zeros(num_rows + 1, np.int32)
    if not rows.size:
        return starts, slice(None)
    np.cumsum(np.bincount(rows, minlength=num_rows), out=starts[1:])
    if (rows[1:] >= rows[:-1]).all():
        return starts, slice(None)
    return starts, np.argsort(rows, kind="stable")


def _check(what: str, numbers: I32, limit: int) -> None:
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < limit:
        raise IndexError(f"{what} is not within 0 .. {limit - 1}")


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
