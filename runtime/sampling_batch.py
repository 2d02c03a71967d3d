"""Sampling arguments of a step as arrays. Owns one table row per running slot, written once when a request gets the slot.

A step gathers its rows by slot index, vectorised over the batch; only the sparse parts (penalty counts, biases) are joined
per request, as slices. Knows nothing of how noise is drawn or tokens are chosen: `plan.SamplingBatch` says what each means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .bans import Bans, Bias
from .plan import F32, I32, SamplingBatch
from .request import Request

_FLOAT_ARGUMENTS = (  # rows of the float table
    "temperature", "top_p", "min_p", "typical_p", "repetition_penalty", "frequency_penalty", "presence_penalty",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One token to sample: from logits row `row` of the plan, for `request`, as sample `choice`."""

    request: Request
    choice: int
    row: int  # index into the plan's logit_rows


class SamplingTable:
    """Arguments by slot, and the batch of a step."""

    def __init__(self, num_slots: int, bans: Bans) -> None:
        self._bans = bans
        self._owners = [-1] * num_slots  # key of the request whose arguments stand in the slot
        self._floats: F32 = np.zeros((len(_FLOAT_ARGUMENTS), num_slots), dtype=np.float32)
        self._top_k: I32 = np.zeros(num_slots, dtype=np.int32)
        self._num_logprobs: I32 = np.full(num_slots, -1, dtype=np.int32)
        self._seeds = np.zeros(num_slots, dtype=np.uint64)
        self._user_bias: list[Bias | None] = [None] * num_slots
        self._last: tuple[Sequence[SampleRow], SamplingBatch] | None = None  # that may come again

    def build(self, rows: Sequence[SampleRow]) -> SamplingBatch:
        """The SamplingBatch of `rows`, in their order.

        Streams that go on together give the same one step after step, but for the positions: then it is not made anew.
        """
        if self._last is not None and rows and _are_same(rows, self._last[0]):
            positions = np.array([row.request.tokens.length for row in rows], dtype=np.int32)
            return replace(self._last[1], positions=positions)
        batch = self._build(rows)
        self._last = (rows, batch) if all(map(_stays, rows)) else None
        return batch

    def _build(self, rows: Sequence[SampleRow]) -> SamplingBatch:
        slots = np.empty(len(rows), dtype=np.int64)
        positions: I32 = np.empty(len(rows), dtype=np.int32)
        choices: I32 = np.empty(len(rows), dtype=np.int32)
        logit_rows: I32 = np.empty(len(rows), dtype=np.int32)
        for k, row in enumerate(rows):
            request = row.request
            if self._owners[request.slot] != request.key:
                self._load(request)
            slots[k], positions[k], choices[k], logit_rows[k] = (
                request.slot,
                request.num_tokens,
                row.choice,
                row.row,
            )
        floats = self._floats[:, slots]
        counted = [(k, row.request.counts) for k, row in enumerate(rows)]
        counts = [(k, table) for k, table in counted if table is not None]
        biases = self._biases(rows)
        return SamplingBatch(
            rows=logit_rows,
            temperature=floats[0],
            top_k=self._top_k[slots],
            top_p=floats[1],
            min_p=floats[2],
            typical_p=floats[3],
            seeds=self._seeds[slots],
            positions=positions,
            choice_index=choices,
            repetition_penalty=floats[4],
            frequency_penalty=floats[5],
            presence_penalty=floats[6],
            count_rows=_row_numbers([(k, table.token_ids.size) for k, table in counts]),
            count_token_ids=_concatenate([table.token_ids for _, table in counts]),
            count_output=_concatenate([table.in_output for _, table in counts]),
            count_prompt=_concatenate([table.in_prompt for _, table in counts]),
            bias_rows=_row_numbers([(k, bias.token_ids.size) for k, bias in biases]),
            bias_token_ids=_concatenate([bias.token_ids for _, bias in biases]),
            bias_values=np.concatenate(
                [np.empty(0, dtype=np.float32), *(bias.values for _, bias in biases)]
            ),
            num_logprobs=self._num_logprobs[slots],
            mask_rows=np.array(
                [k for k, row in enumerate(rows) if row.request.constraint is not None],
                dtype=np.int32,
            ),
        )

    def _load(self, request: Request) -> None:
        sampling, slot = request.sampling, request.slot
        self._floats[:, slot] = [getattr(sampling, name) for name in _FLOAT_ARGUMENTS]
        self._top_k[slot] = sampling.top_k
        self._num_logprobs[slot] = -1 if sampling.logprobs is None else sampling.logprobs
        self._seeds[slot] = request.submission.seed
        self._user_bias[slot] = None
        if sampling.logit_bias:
            self._user_bias[slot] = Bias(
                np.fromiter(sampling.logit_bias.keys(), dtype=np.int32),
                np.fromiter(sampling.logit_bias.values(), dtype=np.float32),
            )
        self._owners[slot] = request.key

    def _biases(self, rows: Sequence[SampleRow]) -> list[tuple[int, Bias]]:
        parts: list[tuple[int, Bias]] = []
        for k, row in enumerate(rows):
            user = self._user_bias[row.request.slot]
            if user is not None:
                parts.append((k, user))
            if row.request.constraint is not None:
                continue  # bans go to the mask there, where a complete sentence can beat them
            banned = self._bans.bias(row.request)
            if banned is not None:
                parts.append((k, banned))
        return parts


def _stays(row: SampleRow) -> bool:
    """Are the row's arguments those of its next token too? Counts grow, and a ban may end with `min_tokens`."""
    return row.request.counts is None and row.request.sampling.min_tokens == 0


def _are_same(rows: Sequence[SampleRow], before: Sequence[SampleRow]) -> bool:
    """The same samples from the same rows of logits?"""
    return len(rows) == len(before) and all(
        row.request is old.request and row.row == old.row and row.choice == old.choice
        for row, old in zip(rows, before, strict=True)
    )


def _row_numbers(sizes: Sequence[tuple[int, int]]) -> I32:
    return np.repeat(
        np.array([k for k, _ in sizes], dtype=np.int32),
        np.array([size for _, size in sizes], dtype=np.int64),
    )


def _concatenate(arrays: Sequence[I32]) -> I32:
    return np.concatenate([np.empty(0, dtype=np.int32), *arrays])
