"""From logits to tokens: the whole batch at once. Owns the order of the sampling steps and the reported log-probabilities.
Knows `plan`'s arrays and tensors; knows nothing of requests, text or grammars (a mask is bits).

The steps of one row, in this order, each on the result of the one before:

    1  repetition penalty    score > 0: score / r, else score * r       tokens of the prompt or the output
    2  frequency, presence   score - f * count - p                      tokens of the output
    3  logit bias            score + b                                  -inf forbids
    4  grammar mask          not allowed: -inf
    -  greedy rows           (temperature 0) end here: the best score, lowest id first
    5  temperature           (score - best) / t
    6  top-k, typical-p, top-p, min-p                                   see sampler_truncation.py
    7  noise                 the best of score + Gumbel noise           see sampling_noise.py

A mask before truncation means that a constraint never leaves a row empty-handed, and that the relative probabilities of
allowed tokens stay as the model gave them. Rows that ask for none of this take one argmax and nothing else.

Log-probabilities are the model's own: of the raw logits, before all steps above.
A row that cannot be sampled gets token -1 and a message; its neighbours do not notice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .plan import (
    F32,
    I32,
    INFINITE,
    NOT_A_NUMBER,
    NOTHING_ALLOWED,
    U32,
    Logprobs,
    SamplingBatch,
    ScoreRows,
    StepResult,
)
from .sampler_truncation import TruncationArgs, is_truncated, truncate
from .sampling_noise import NoiseKeys, race, race_among

_BLOCK_ROWS = (
    64  # rows worked on at once: bounds the extra memory, however many rows a step samples
)


def sample(
    logits: Tensor, batch: SamplingBatch, masks: U32 | None, scores: ScoreRows
) -> StepResult:
    """Sample a token for each row of `batch` and score the given tokens of `scores`.

    `logits`: float32 [R, V], left unchanged. `masks`: [M, ceil(V / 32)], the rows of `batch.mask_rows` in order; bit i % 32
    of word i // 32 allows token i.
    """
    chosen = np.empty(batch.rows.size, dtype=np.int32)
    reasons: dict[int, str] = {}
    for start in range(0, batch.rows.size, _BLOCK_ROWS):
        members = np.arange(start, min(start + _BLOCK_ROWS, batch.rows.size))
        chosen[members], failed = _choose(logits, members, batch, masks)
        reasons.update(failed)
    chosen[list(reasons)] = -1
    return StepResult(
        token_ids=chosen,
        logprobs=_batch_logprobs(logits, batch, chosen),
        scores=_logprobs(logits, scores.rows, scores.token_ids, scores.num_logprobs)
        if scores.rows.size
        else None,
        errors=tuple(sorted(reasons.items())),
    )


def _choose(
    logits: Tensor, members: npt.NDArray[np.int64], batch: SamplingBatch, masks: U32 | None
) -> tuple[I32, dict[int, str]]:
    """Tokens of the rows k = `members`, and which of them could not be sampled, with the reason."""
    raw = _rows_of(logits, batch.rows[members])
    token_ids, best = _argmax(raw)
    needs = _needs_work(batch)[members] & np.isfinite(best.cpu().numpy())
    places = np.flatnonzero(needs)
    if places.size:
        rows = _indices(places, logits.device)
        found = (token_ids[rows], best[rows])
        ids, best_left = _work(raw.index_select(0, rows), found, members[places], batch, masks)
        token_ids[rows], best[rows] = ids, best_left
    failed = {int(members[place]): why for place, why in _reasons(best.cpu().numpy()).items()}
    return token_ids.cpu().numpy().astype(np.int32), failed


# -- the steps -----------------------------------------------------------------------------------------------------


def _needs_work(batch: SamplingBatch) -> npt.NDArray[np.bool_]:
    """Rows for which the best raw logit is not the answer."""
    needs = batch.temperature > 0
    for touched in (batch.count_rows, batch.bias_rows, batch.mask_rows):
        needs[touched] = True
    return needs


def _work(
    work: Tensor,
    found: tuple[Tensor, Tensor],
    worked: npt.NDArray[np.int64],
    batch: SamplingBatch,
    masks: U32 | None,
) -> tuple[Tensor, Tensor]:
    """All steps for the rows k = `worked` of the batch, whose logits `work` [n, V] may be changed.

    `found`: argmax and maximum of each row so far. Returns their tokens and their best score after step 4 (not finite: the
    row cannot be sampled).
    """
    place = np.full(batch.rows.size, -1, dtype=np.int64)  # k -> row of `work`
    place[worked] = np.arange(worked.size)
    is_changed = _penalise(work, place, batch) | _add_bias(work, place, batch)
    if masks is not None:
        is_changed |= _apply_masks(work, place, batch.mask_rows, masks)
    token_ids, best = _argmax(work) if is_changed else found
    is_drawn = (batch.temperature[worked] > 0) & np.isfinite(best.cpu().numpy())
    if is_drawn.all():
        return _draw(work, token_ids, best, worked, batch), best
    if is_drawn.any():
        rows = _indices(np.flatnonzero(is_drawn), work.device)
        part = work.index_select(0, rows)
        token_ids[rows] = _draw(part, token_ids[rows], best[rows], worked[is_drawn], batch)
    return token_ids, best


def _penalise(work: Tensor, place: npt.NDArray[np.int64], batch: SamplingBatch) -> bool:
    rows, columns, here = _pairs(work, place, batch.count_rows, batch.count_token_ids)
    if not here.any():
        return False
    k = batch.count_rows[here]
    count = _floats(batch.count_output[here], work.device)
    repetition = _floats(batch.repetition_penalty[k], work.device)
    frequency = _floats(batch.frequency_penalty[k], work.device)
    presence = _floats(batch.presence_penalty[k], work.device)
    values = work[rows, columns]
    values = torch.where(values > 0, values / repetition, values * repetition)
    work[rows, columns] = values - frequency * count - presence * (count > 0)
    return True


def _add_bias(work: Tensor, place: npt.NDArray[np.int64], batch: SamplingBatch) -> bool:
    rows, columns, here = _pairs(work, place, batch.bias_rows, batch.bias_token_ids)
    if here.any():
        values = _floats(batch.bias_values[here], work.device)
        work.index_put_((rows, columns), values, accumulate=True)
    return bool(here.any())


def _apply_masks(work: Tensor, place: npt.NDArray[np.int64], mask_rows: I32, masks: U32) -> bool:
    here = place[mask_rows] >= 0
    if not here.any():
        return False
    packed = np.ascontiguousarray(masks[here].astype("<u4", copy=False)).view(np.uint8)
    allowed = np.unpackbits(packed, axis=1, count=work.shape[1], bitorder="little")
    refused = torch.from_numpy(allowed == 0).to(work.device)
    rows = place[mask_rows[here]]
    if rows.size == work.shape[0] and (rows == np.arange(rows.size)).all():
        work.masked_fill_(refused, -torch.inf)
    else:
        index = _indices(rows, work.device)
        work[index] = work[index].masked_fill_(refused, -torch.inf)
    return True


def _draw(
    work: Tensor,
    best_ids: Tensor,
    best: Tensor,
    drawn: npt.NDArray[np.int64],
    batch: SamplingBatch,
) -> Tensor:
    """Steps 5 to 7 of the rows k = `drawn`. `work` [n, V] is changed; `best_ids`, `best`: its argmax and maximum."""
    device = work.device
    temperature = _floats(batch.temperature[drawn], device)
    work.sub_(best[:, None]).div_(temperature[:, None])
    args = TruncationArgs(
        top_k=_indices(batch.top_k[drawn], device),
        top_p=_floats(batch.top_p[drawn], device).double(),
        min_p=_floats(batch.min_p[drawn], device).double(),
        typical_p=_floats(batch.typical_p[drawn], device).double(),
    )
    seeds = batch.seeds[drawn]
    keys = NoiseKeys(
        seed_low=_indices(seeds & np.uint64(0xFFFFFFFF), device),
        seed_high=_indices(seeds >> np.uint64(32), device),
        position=_indices(batch.positions[drawn], device),
        choice=_indices(batch.choice_index[drawn], device),
    )
    is_cut = is_truncated(args)
    winners = best_ids.clone()
    cut, free = is_cut.nonzero()[:, 0], (~is_cut).nonzero()[:, 0]
    if cut.numel():
        part = work if not free.numel() else work.index_select(0, cut)
        left = truncate(part, args.take(cut))
        winners[cut] = race_among(left.rows, left.token_ids, left.scores, keys.take(cut))
    if free.numel():
        part = work if not cut.numel() else work.index_select(0, free)
        winners[free] = race(part, best_ids[free], keys.take(free))
    return winners


def _reasons(best: F32) -> dict[int, str]:
    """Why rows cannot be sampled, from their best score."""
    reasons: dict[int, str] = {}
    for k in np.flatnonzero(~np.isfinite(best)).tolist():
        if np.isnan(best[k]):
            reasons[k] = NOT_A_NUMBER
        else:
            reasons[k] = INFINITE if best[k] > 0 else NOTHING_ALLOWED
    return reasons


# -- log-probabilities ---------------------------------------------------------------------------------------------


def _batch_logprobs(logits: Tensor, batch: SamplingBatch, chosen: I32) -> Logprobs | None:
    """Log-probabilities of sampled tokens for the rows that ask; the others are padding."""
    asked = np.flatnonzero((batch.num_logprobs >= 0) & (chosen >= 0))
    if not (batch.num_logprobs >= 0).any():
        return None
    width = int(batch.num_logprobs.max())
    result = _empty_logprobs(batch.rows.size, width)
    found = _logprobs(logits, batch.rows[asked], chosen[asked], batch.num_logprobs[asked])
    result.chosen[asked] = found.chosen
    result.top_ids[asked, : found.top_ids.shape[1]] = found.top_ids
    result.top_values[asked, : found.top_values.shape[1]] = found.top_values
    return result


def _logprobs(logits: Tensor, rows: I32, token_ids: I32, num_logprobs: I32) -> Logprobs:
    """Log-probabilities of `token_ids` [Q] after `rows` [Q], and of the best `num_logprobs` of each."""
    width = min(int(num_logprobs.max(initial=0)), logits.shape[1])
    result = _empty_logprobs(rows.size, width)
    for start in range(0, rows.size, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        values = _rows_of(logits, rows[block])
        total = values.logsumexp(dim=1)
        ids = _indices(token_ids[block], logits.device)
        result.chosen[block] = (values.gather(1, ids[:, None])[:, 0] - total).cpu().numpy()
        if width:
            top_ids, top_values = _best(values, width)
            result.top_ids[block] = top_ids
            result.top_values[block] = top_values - total.cpu().numpy()[:, None]
    padding = np.arange(width) >= num_logprobs[:, None]
    result.top_ids[padding] = -1
    result.top_values[padding] = -np.inf
    return result


def _best(values: Tensor, width: int) -> tuple[npt.NDArray[np.int64], F32]:
    """Ids and values of the `width` largest of each row, lowest id first among equals (topk leaves ties open)."""
    floor = values.topk(width, dim=1).values[:, -1:]
    rows, columns = (~(values < floor)).nonzero(
        as_tuple=True
    )  # "not below" keeps a row of NaN countable
    found = values[rows, columns].cpu().numpy()
    row_ids, column_ids = rows.cpu().numpy(), columns.cpu().numpy()
    order = np.lexsort((column_ids, -found, row_ids))
    starts = np.searchsorted(row_ids, np.arange(values.shape[0]))
    picked = order[starts[:, None] + np.arange(width)]
    return column_ids[picked], found[picked]


def _empty_logprobs(num_rows: int, width: int) -> Logprobs:
    return Logprobs(
        chosen=np.zeros(num_rows, dtype=np.float32),
        top_ids=np.full((num_rows, width), -1, dtype=np.int32),
        top_values=np.full((num_rows, width), -np.inf, dtype=np.float32),
    )


# -- arrays to tensors ---------------------------------------------------------------------------------------------


def _rows_of(logits: Tensor, rows: I32) -> Tensor:
    """The logits of `rows`: `logits` itself when they are all rows in order."""
    if rows.size == logits.shape[0] and (rows == np.arange(rows.size)).all():
        return logits
    return logits.index_select(0, _indices(rows, logits.device))


def _argmax(values: Tensor) -> tuple[Tensor, Tensor]:
    """Best token (lowest id first) and its score for each row; a NaN anywhere in a row is its best."""
    token_ids = values.argmax(dim=1)
    return token_ids, values.gather(1, token_ids[:, None])[:, 0]


def _pairs(
    work: Tensor, place: npt.NDArray[np.int64], k: I32, token_ids: I32
) -> tuple[Tensor, Tensor, npt.NDArray[np.bool_]]:
    """Rows of `work` and columns of sparse entries (k, token id), and which entries have such a row."""
    rows = place[k]
    here = rows >= 0
    return _indices(rows[here], work.device), _indices(token_ids[here], work.device), here


def _indices(values: npt.NDArray[np.integer], device: torch.device) -> Tensor:
    return torch.from_numpy(values.astype(np.int64)).to(device)


def _floats(values: npt.NDArray[np.generic], device: torch.device) -> Tensor:
    return torch.from_numpy(values.astype(np.float32)).to(device)
