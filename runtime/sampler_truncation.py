"""Truncation: which tokens a sampled row may still draw. Owns top-k, typical-p, top-p and min-p, in that order.
Knows scores (logits after penalties, bias, mask and temperature) and four arguments a row; nothing of noise or requests.

Order of tokens: higher score first, lower id first among equals. Each step works on what the one before left, with the
probabilities of what is left:

    top-k      the first k                                        (Fan, Lewis, Dauphin 2018)
    typical-p  by |-log p - entropy|, smallest first, until their probabilities reach typical_p; tokens of the deviation
               where that happens all stay                        (Meister, Pimentel, Wiher, Cotterell 2022)
    top-p      the shortest beginning whose probabilities reach top_p, at least one token
                                                                  (Holtzman, Buys, Du, Forbes, Choi 2019)
    min-p      p >= min_p * the largest p                         (Nguyen, Baker, Neo, Roush, Kirsch, Shwartz-Ziv 2024)

What stays is always a run in the order of scores, so only sorted values are needed, never sorted ids. And most tokens of a
row need no sorting, because a bound on the score excludes them: the k-th largest score; min_p times the largest
probability; or, under top-p, (1 - top_p) / V, since all tokens lighter than that together weigh less than 1 - top_p. The
rest is gathered into a narrow matrix. Sums run in the row's own order, so a row's result does not depend on its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_SLACK = 1e-3  # log-space margin of the bounds that only narrow the search
_NUM_HALVINGS = 64


@dataclass(frozen=True, slots=True)
class TruncationArgs:
    """Arguments of n rows, tensors [n]. Off: top_k 0 (int64); top_p 1, min_p 0, typical_p 1 (float64)."""

    top_k: Tensor
    top_p: Tensor
    min_p: Tensor
    typical_p: Tensor

    def take(self, rows: Tensor) -> TruncationArgs:
        """The arguments of some rows."""
        return TruncationArgs(
            self.top_k[rows], self.top_p[rows], self.min_p[rows], self.typical_p[rows]
        )


@dataclass(frozen=True, slots=True)
class Candidates:
    """The tokens that may be drawn, by row, then by id: three tensors [N]."""

    rows: Tensor
    token_ids: Tensor
    scores: Tensor

    def take(self, places: Tensor) -> Candidates:
        """Some of the candidates (a bool mask [N])."""
        return Candidates(self.rows[places], self.token_ids[places], self.scores[places])


def is_truncated(args: TruncationArgs) -> Tensor:
    """Rows (bool [n]) that any of the four steps may touch."""
    return (args.top_k > 0) | (args.top_p < 1) | (args.typical_p < 1) | (args.min_p > 0)


def truncate(scores: Tensor, args: TruncationArgs) -> Candidates:
    """The tokens that stay. `scores`: float32 [n, V], row maximum 0, no NaN, -inf where a token is out already."""
    num_rows, num_columns = scores.shape
    top_k = torch.where((args.top_k > 0) & (args.top_k < num_columns), args.top_k, 0)
    total = _totals(scores, (top_k == 0) & ((args.top_p < 1) | (args.typical_p < 1)))
    listed = _list(scores, _bounds(scores, args, top_k, total))
    count = torch.bincount(listed.rows, minlength=num_rows)
    values = _sorted_values(listed, count)
    sums = values.double().exp().cumsum(dim=1)

    start = torch.zeros_like(count)
    end = torch.where(top_k > 0, torch.minimum(top_k, count), count)
    mass = torch.where(top_k > 0, _sum_before(sums, end), total)
    rows = (args.typical_p < 1).nonzero()[:, 0]
    if rows.numel():
        run = _typical_run(values[rows], sums[rows], end[rows], mass[rows], args.typical_p[rows])
        start[rows], end[rows] = run
        mass[rows] = _sum_before(sums[rows], run[1]) - _sum_before(sums[rows], run[0])
    target = _sum_before(sums, start) + args.top_p * mass
    reached = (sums < target[:, None]).sum(dim=1) + 1
    end = torch.where(args.top_p < 1, torch.minimum(end, reached), end).maximum(start + 1)
    first = values.gather(1, start[:, None])
    floor = first + args.min_p.log().float()[:, None]  # log 0 = -inf: off
    end = torch.minimum(end, (values >= floor).sum(dim=1)).maximum(start + 1)
    last = values.gather(1, (end - 1)[:, None])
    return _keep_run(listed, first[:, 0], last[:, 0], end)


def _totals(scores: Tensor, rows: Tensor) -> Tensor:
    """Sum of exp(score) over the whole row for the rows marked in `rows`; 1 for the others, which do not use it."""
    total = torch.ones(scores.shape[0], dtype=torch.float64, device=scores.device)
    places = rows.nonzero()[:, 0]
    if places.numel():
        weights = (scores if places.numel() == scores.shape[0] else scores[places]).exp()
        # numpy adds each row by itself in one fixed order; torch may split a sum among threads, by the batch's shape
        sums = (
            torch.from_numpy(weights.numpy().sum(axis=1))
            if weights.device.type == "cpu"
            else weights.sum(dim=1, dtype=torch.float64)
        )
        total[places] = sums.double()
    return total


def _bounds(scores: Tensor, args: TruncationArgs, top_k: Tensor, total: Tensor) -> Tensor:
    """A score for each row (float32 [n]) below which no token can stay, nor is needed to know the mass of those above."""
    bound = torch.full_like(total, torch.finfo(torch.float32).min)
    lightest = ((1 - args.top_p).clamp(min=1e-30) * total / scores.shape[1]).log() - _SLACK
    has_run = (
        args.typical_p >= 1
    )  # a typical run may begin below the best token, so bounds relative to it do not hold
    bound = torch.where(has_run & (args.top_p < 1), lightest.clamp(max=-_SLACK), bound)
    bound = torch.where(
        has_run & (args.top_p >= 1), bound.maximum(args.min_p.log() - _SLACK), bound
    )
    bound = bound.float()
    rows = (top_k > 0).nonzero()[:, 0]
    if rows.numel():  # not tightened by the others: top-p needs the mass of all k
        bound[rows] = _kth_largest(scores, rows, top_k[rows])
    return bound


def _list(scores: Tensor, bound: Tensor) -> Candidates:
    """The tokens at or above the bound of their row."""
    rows, token_ids = (scores >= bound[:, None]).nonzero(as_tuple=True)
    return Candidates(rows, token_ids, scores[rows, token_ids])


def _sorted_values(listed: Candidates, count: Tensor) -> Tensor:
    """The scores of each row's candidates, best first, as a matrix padded with -inf: float32 [n, most of any row]."""
    shape = (count.numel(), max(int(count.max()), 1))
    values = torch.full(shape, -torch.inf, device=count.device)
    before = count.cumsum(0) - count
    place = torch.arange(listed.rows.numel(), device=count.device) - before[listed.rows]
    values[listed.rows, place] = listed.scores
    if values.device.type != "cpu":
        return values.sort(dim=1, descending=True).values
    # numpy sorts bare values an order of magnitude faster than torch sorts values with their indices
    return torch.from_numpy(np.sort(values.numpy(), axis=1)[:, ::-1].copy())


def _kth_largest(scores: Tensor, rows: Tensor, k: Tensor) -> Tensor:
    """The k-th largest score of each of `rows`, 0 < k < V: float32. The lowest finite number where it is -inf."""
    if scores.device.type == "cpu":
        array, num_columns = scores.numpy(), scores.shape[1]
        found = torch.tensor(
            [
                float(np.partition(array[row], num_columns - num)[num_columns - num])
                for row, num in zip(rows.tolist(), k.tolist(), strict=True)
            ]
        )
    else:
        ordered = scores[rows].sort(dim=1, descending=True).values
        found = ordered.gather(1, (k - 1)[:, None])[:, 0]
    return found.clamp(min=torch.finfo(torch.float32).min)


def _keep_run(listed: Candidates, first: Tensor, last: Tensor, end: Tensor) -> Candidates:
    """The candidates from value `first` to place `end`, whose last value is `last` (all [n])."""
    rows = listed.rows
    reaches = listed.scores >= last[rows]
    keep = reaches & (listed.scores <= first[rows])
    num_beyond = torch.bincount(rows[reaches], minlength=end.numel()) - end
    for row in (
        (num_beyond > 0).nonzero()[:, 0].tolist()
    ):  # a tie across the end: the lowest ids stay
        tied = ((rows == row) & (listed.scores == last[row])).nonzero()[:, 0]
        keep[tied[tied.numel() - int(num_beyond[row]) :]] = False
    return listed.take(keep)


def _typical_run(
    values: Tensor, sums: Tensor, end: Tensor, mass: Tensor, typical_p: Tensor
) -> tuple[Tensor, Tensor]:
    """Start and end of each row's typical run, found by halving the allowed deviation from the entropy."""
    surprise = mass.log()[:, None] - values.double()  # ascending; inf where the probability is 0
    place = torch.arange(surprise.shape[1], device=end.device)
    surprise.masked_fill_(place >= end[:, None], torch.inf)
    has_weight = surprise < torch.inf
    known = surprise.masked_fill(~has_weight, 0.0)
    weighted = (-known).exp_().mul_(known)  # 0 where not known
    entropy = weighted.sum(dim=1, keepdim=True)
    enough = (known - entropy).abs_().mul_(has_weight).amax(dim=1, keepdim=True)
    too_small = torch.full_like(entropy, -1.0)
    wanted = (typical_p * mass)[:, None]
    for _ in range(_NUM_HALVINGS):
        middle = (too_small + enough) / 2
        low = torch.searchsorted(surprise, entropy - middle)
        high = torch.searchsorted(surprise, entropy + middle, right=True).maximum(low)
        weight = _sum_before(sums, high[:, 0]) - _sum_before(sums, low[:, 0])
        is_enough = weight[:, None] >= wanted
        enough = torch.where(is_enough, middle, enough)
        too_small = torch.where(is_enough, too_small, middle)
    margin = entropy.abs() * 1e-14  # the deviation that passed must pass again after rounding
    low = torch.searchsorted(surprise, entropy - enough - margin)[:, 0]
    high = torch.searchsorted(surprise, entropy + enough + margin, right=True)[:, 0]
    low = torch.minimum(low, end - 1)
    return low, torch.minimum(high, end).maximum(low + 1)


def _sum_before(sums: Tensor, place: Tensor) -> Tensor:
    """Running sum over the places before `place` ([n]), 0 before the first."""
    before = sums.gather(1, (place - 1).clamp(min=0)[:, None])[:, 0]
    return torch.where(place > 0, before, 0.0)
