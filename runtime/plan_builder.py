"""From scheduled rows to one BatchPlan. Owns the page tables of running sequences and the table of sampling arguments.

Both are kept per slot and only appended to, so a step gathers rows and copies no history:

    slot 0  [ p p p p . . . ]  request 17         plan.page_tables = table[slots of the step, : widest]
    slot 1  [ p p . . . . . ]  request 42

Knows nothing of why these rows were scheduled, nor of what is sampled from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InvariantError
from .plan import I32, I64, BatchPlan, ScoreRows
from .request import Request
from .sampling_batch import SampleRow, SamplingTable
from .scheduler import ScheduledRow
from .shared_groups import shared_groups


@dataclass(frozen=True, slots=True)
class Step:
    """A plan and what its results belong to."""

    plan: BatchPlan
    rows: Sequence[ScheduledRow]
    samples: list[SampleRow]  # in the order of plan.sampling
    scores: list[
        tuple[Request, int]
    ]  # (request, position of the scored token), in the order of plan.scores


class PlanBuilder:
    """Builds plans for up to `num_slots` running sequences of up to `max_pages` pages."""

    def __init__(
        self, num_slots: int, max_pages: int, page_size: int, sampling: SamplingTable
    ) -> None:
        self._page_size = page_size
        self._tables: I32 = np.zeros((num_slots, max_pages), dtype=np.int32)
        self._sampling = sampling

    def build(self, rows: Sequence[ScheduledRow]) -> Step:
        """The plan of one step. Every row's request holds pages for the tokens it computes."""
        copies: list[tuple[int, int, int]] = []
        for row in rows:
            copies += self._sync_pages(row.request)
        num_new: I32 = np.array([row.num_new for row in rows], dtype=np.int32)
        cursors: I32 = np.array([row.request.num_computed for row in rows], dtype=np.int32)
        slots: I32 = np.array([row.request.slot for row in rows], dtype=np.int32)
        query_starts: I32 = np.zeros(len(rows) + 1, dtype=np.int32)
        np.cumsum(num_new, out=query_starts[1:])
        context_lens = cursors + num_new
        widest = -(-int(context_lens.max()) // self._page_size)
        page_tables = self._tables[slots, :widest]
        positions, slot_ids = self._places(cursors, num_new, query_starts, page_tables)
        logit_rows, samples, scores, score_rows = _wanted_logits(rows, query_starts)
        singles = np.flatnonzero(num_new == 1).astype(np.int32)
        plan = BatchPlan(
            token_ids=np.concatenate(
                [r.request.tokens.view(r.request.num_computed)[: r.num_new] for r in rows]
            ),
            positions=positions,
            slot_ids=slot_ids,
            query_starts=query_starts,
            context_lens=context_lens,
            page_tables=page_tables,
            logit_rows=logit_rows,
            page_copies=np.array(copies, dtype=np.int32).reshape(-1, 3),
            shared_groups=shared_groups(page_tables, cursors // self._page_size, singles),
            sampling=self._sampling.build(samples),
            scores=score_rows,
            request_keys=tuple(row.request.key for row in rows),
        )
        return Step(plan, rows, samples, scores)

    def _sync_pages(self, request: Request) -> Sequence[tuple[int, int, int]]:
        """Bring the request's table row up to date with its lease; the copies that its step has to do first."""
        lease = request.lease
        if lease is None:
            raise InvariantError(f"scheduled request {request.submission.name!r} has no lease")
        known, page_ids = request.num_tabled_pages, lease.page_ids
        if known < len(page_ids):
            row = self._tables[request.slot]
            row[known : len(page_ids)] = page_ids[known:]
            if not known:
                row[len(page_ids) :] = 0
            request.num_tabled_pages = len(page_ids)
        return lease.page_copies

    def _places(
        self, cursors: I32, num_new: I32, query_starts: I32, page_tables: I32
    ) -> tuple[I32, I64]:
        """Absolute position [T] and K/V slot [T] of every token of the step."""
        sequence = np.repeat(np.arange(num_new.size), num_new)
        offset_in_row = np.arange(int(query_starts[-1]), dtype=np.int32) - query_starts[sequence]
        positions = (cursors[sequence] + offset_in_row).astype(np.int32)
        pages = page_tables[sequence, positions // self._page_size].astype(np.int64)
        return positions, pages * self._page_size + positions % self._page_size


def _wanted_logits(
    rows: Sequence[ScheduledRow], query_starts: I32
) -> tuple[I32, list[SampleRow], list[tuple[Request, int]], ScoreRows]:
    """Rows of the step whose logits are needed, ascending, and for what."""
    logit_rows: list[int] = []
    samples: list[SampleRow] = []
    scores: list[tuple[Request, int]] = []
    score_rows: list[int] = []
    for row, start in zip(rows, query_starts.tolist(), strict=False):
        request = row.request
        first_row = start - request.num_computed  # row of position 0, were it in this step
        for position in request.pending_scores:
            if position > request.num_computed + row.num_new:
                break
            score_rows.append(len(logit_rows))
            scores.append((request, position))
            logit_rows.append(first_row + position - 1)
        if row.samples:
            at = len(logit_rows)
            logit_rows.append(start + row.num_new - 1)
            if request.submission.is_forked:
                samples.append(SampleRow(request, request.choice, at))
            else:
                samples += [SampleRow(request, choice, at) for choice in range(request.sampling.n)]
    return np.array(logit_rows, dtype=np.int32), samples, scores, _score_rows(scores, score_rows)


def _score_rows(scores: Sequence[tuple[Request, int]], rows: Sequence[int]) -> ScoreRows:
    num_logprobs = [
        (r.sampling.prompt_logprobs if position < r.num_prompt else r.sampling.logprobs) or 0
        for r, position in scores
    ]
    return ScoreRows(
        rows=np.array(rows, dtype=np.int32),
        token_ids=np.array(
            [request.tokens[position] for request, position in scores], dtype=np.int32
        ),
        num_logprobs=np.array(num_logprobs, dtype=np.int32),
    )
