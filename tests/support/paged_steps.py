"""Builds BatchPlans by hand for tests and benches of the model runner: sequences over pages in any order, no scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from radixlm.runtime.plan import BatchPlan, SamplingBatch, ScoreRows, SharedGroup, StepResult


def no_sampling(rows: np.ndarray | None = None) -> SamplingBatch:
    """Greedy sampling of `rows` (indices into the logit rows), no penalties; none by default."""
    count = 0 if rows is None else len(rows)
    ints, floats = np.zeros(count, np.int32), np.zeros(count, np.float32)
    none_i, none_f = np.zeros(0, np.int32), np.zeros(0, np.float32)
    return SamplingBatch(
        rows=ints if rows is None else rows.astype(np.int32),
        temperature=floats,
        top_k=ints,
        top_p=floats + 1,
        min_p=floats,
        typical_p=floats + 1,
        seeds=np.zeros(count, np.uint64),
        positions=ints,
        choice_index=ints,
        repetition_penalty=floats + 1,
        frequency_penalty=floats,
        presence_penalty=floats,
        count_rows=none_i,
        count_token_ids=none_i,
        count_output=none_i,
        count_prompt=none_i,
        bias_rows=none_i,
        bias_token_ids=none_i,
        bias_values=none_f,
        num_logprobs=ints - 1,
        mask_rows=none_i,
    )


def no_scores() -> ScoreRows:
    """No scored row."""
    none = np.zeros(0, np.int32)
    return ScoreRows(none, none, none)


@dataclass
class PagedSequence:
    """A sequence that was given its pages up front: token ids so far, and how many of them have K/V."""

    pages: list[int]
    token_ids: list[int] = field(default_factory=list)
    num_computed: int = 0


def plan_step(
    work: list[tuple[PagedSequence, int]],
    page_size: int,
    *,
    logits: str = "last",
    groups: tuple[SharedGroup, ...] = (),
    page_copies: np.ndarray | None = None,
    greedy: bool = False,
    scores: ScoreRows | None = None,
) -> BatchPlan:
    """One step that computes the next n tokens of each (sequence, n), and moves the cursors. `logits`: last, all or none."""
    counts = np.array([count for _, count in work])
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    token_ids, positions, slots = [], [], []
    tables = np.zeros((len(work), max(len(sequence.pages) for sequence, _ in work)), np.int32)
    for index, (sequence, count) in enumerate(work):
        span = np.arange(sequence.num_computed, sequence.num_computed + count)
        pages = np.array(sequence.pages)
        tables[index, : len(pages)] = pages
        token_ids.append(np.array(sequence.token_ids)[span])
        positions.append(span)
        slots.append(pages[span // page_size] * page_size + span % page_size)
        sequence.num_computed += count
    rows = {"last": starts[1:] - 1, "all": np.arange(starts[-1]), "none": np.zeros(0)}[
        logits
    ].astype(np.int32)
    return BatchPlan(
        token_ids=np.concatenate(token_ids).astype(np.int32),
        positions=np.concatenate(positions).astype(np.int32),
        slot_ids=np.concatenate(slots).astype(np.int64),
        query_starts=starts,
        context_lens=np.array([sequence.num_computed for sequence, _ in work], np.int32),
        page_tables=tables,
        logit_rows=rows,
        page_copies=np.zeros((0, 3), np.int32) if page_copies is None else page_copies,
        shared_groups=groups,
        sampling=no_sampling(np.arange(len(rows))) if greedy else no_sampling(),
        scores=no_scores() if scores is None else scores,
    )


class LogitsProbe:
    """Stands in for the sampler: keeps the logits it saw, answers with the arg max of each sampled row."""

    def __init__(self) -> None:
        self.logits = np.zeros((0, 0), np.float32)

    def __call__(self, logits, batch: SamplingBatch, masks, scores: ScoreRows) -> StepResult:
        self.logits = np.asarray(logits).copy()  # a runner may write into its own the next time
        return StepResult(self.logits.argmax(-1).astype(np.int32)[batch.rows], None, None)
