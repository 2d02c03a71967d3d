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

What stays is always a run in the order of scores, so only sorted values are needed, never sorted ids; and of a row under
top-p only tokens with p >= (1 - top_p) / V can stay, since all others together weigh less than 1 - top_p. Those are
gathered into a narrow matrix and sorted there. Sums run in float64 in the row's own order, so a row's result does not
depend on its neighbours.
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
class _Ordered:
    """The tokens of n rows that can stay, best first."""

    values: Tensor  # [n, M] float32, -inf behind the last
    sums: Tensor  # [n, M] float64 running sums of exp(value)
    total: Tensor  # [n] float64, of all tokens of the row, also of those not listed
    count: Tensor  # [n] listed tokens


def truncate(scores: Tensor, args: TruncationArgs) -> None:
    """Set the scores of dropped tokens to -inf, in place. `scores`: float32 [n, V], row maximum 0, no NaN."""
    is_ordered = (args.top_k > 0) | (args.top_p < 1) | (args.typical_p < 1)
    rows = is_ordered.nonzero()[:, 0]
    if rows.numel() == scores.shape[0]:
        _truncate_ordered(scores, args)
        return
    if rows.numel():
        part = scores[rows]
        _truncate_ordered(part, args.take(rows))
        scores[rows] = part
    rows = (~is_ordered & (args.min_p > 0)).nonzero()[:, 0]
    if rows.numel():
        floor = args.min_p[rows].log().float()[:, None]
        part = scores[rows]
        scores[rows] = part.masked_fill_(part < floor, -torch.inf)


def _truncate_ordered(scores: Tensor, args: TruncationArgs) -> None:
    ordered = _order(scores, args)
    num_columns = scores.shape[1]
    end = torch.where(args.top_k > 0, args.top_k.clamp(max=num_columns), num_columns)
    end = torch.minimum(end, ordered.count)
    is_cut = args.top_k > 0
    mass = torch.where(is_cut, _sum_before(ordered.sums, end), ordered.total)
    start = torch.zeros_like(end)
    rows = (args.typical_p < 1).nonzero()[:, 0]
    if rows.numel():
        start[rows], end[rows] = _typical(
            ordered, end[rows], mass[rows], args.typical_p[rows], rows
        )
        mass[rows] = _sum_before(ordered.sums[rows], end[rows])
        mass[rows] -= _sum_before(ordered.sums[rows], start[rows])
    target = _sum_before(ordered.sums, start) + args.top_p * mass
    reached = (ordered.sums < target[:, None]).sum(dim=1) + 1
    end = torch.where(args.top_p < 1, torch.minimum(end, reached), end)
    end = torch.maximum(end, start + 1)
    first = ordered.values.gather(1, start[:, None])
    floor = first + args.min_p.log().float()[:, None]  # log 0 = -inf: off
    end = torch.minimum(end, (ordered.values >= floor).sum(dim=1)).maximum(start + 1)
    last = ordered.values.gather(1, (end - 1)[:, None])
    _keep_run(scores, first, last, end)


def _keep_run(scores: Tensor, first: Tensor, last: Tensor, end: Tensor) -> None:
    """Drop what lies above `first` or behind place `end`, whose last value is `last` (values [n, 1])."""
    dropped = (scores > first) | (scores < last)
    num_beyond = (scores >= last).sum(dim=1) - end
    for row in (
        (num_beyond > 0).nonzero()[:, 0].tolist()
    ):  # a tie across the end: the lowest ids stay
        tied = (scores[row] == last[row]).nonzero()[:, 0]
        dropped[row, tied[tied.numel() - int(num_beyond[row]) :]] = True
    scores.masked_fill_(dropped, -torch.inf)


def _typical(
    ordered: _Ordered, end: Tensor, mass: Tensor, typical_p: Tensor, rows: Tensor
) -> tuple[Tensor, Tensor]:
    """Start and end of the typical run of `rows`, found by halving the allowed deviation from the entropy."""
    sums = ordered.sums[rows]
    surprise = (
        mass.log()[:, None] - ordered.values[rows].double()
    )  # ascending, inf where the probability is 0
    place = torch.arange(surprise.shape[1], device=end.device)
    surprise = surprise.masked_fill(place >= end[:, None], torch.inf)
    has_weight = surprise.isfinite()
    known = surprise.masked_fill(~has_weight, 0.0)
    entropy = torch.where(has_weight, (-known).exp() * known, 0.0).sum(dim=1, keepdim=True)
    deviation = torch.where(has_weight, (known - entropy).abs(), 0.0)
    too_small = torch.full_like(entropy, -1.0)
    enough = deviation.amax(dim=1, keepdim=True)
    wanted = (typical_p * mass)[:, None]
    for _ in range(_NUM_HALVINGS):
        middle = (too_small + enough) / 2
        low = torch.searchsorted(surprise, entropy - middle)
        high = torch.searchsorted(surprise, entropy + middle, right=True).maximum(low)
        weight = _sum_before(sums, high[:, 0]) - _sum_before(sums, low[:, 0])
        is_enough = weight[:, None] >= wanted
        enough = torch.where(is_enough, middle, enough)
        too_small = torch.where(is_enough, too_small, middle)
    margin = entropy.abs() * 1e-14  # the deviation itself must pass the test that found it
    low = torch.searchsorted(surprise, entropy - enough - margin)[:, 0]
    high = torch.searchsorted(surprise, entropy + enough + margin, right=True)[:, 0]
    low = torch.minimum(low, end - 1)
    return low, torch.minimum(high, end).maximum(low + 1)


def _order(scores: Tensor, args: TruncationArgs) -> _Ordered:
    """Sort the tokens that can stay. What cannot is known from bounds, without sorting the row."""
    num_columns = scores.shape[1]
    total = scores.exp().sum(dim=1, dtype=torch.float64)
    bound = torch.full_like(total, -torch.inf)
    rows = ((args.top_k > 0) & (args.top_k < num_columns)).nonzero()[:, 0]
    if rows.numel():
        bound[rows] = _kth_largest(scores, rows, args.top_k[rows])
    is_narrow = (args.top_p < 1) & (args.typical_p >= 1)
    lightest = total.log() + ((1 - args.top_p).clamp(min=1e-30) / num_columns).log() - _SLACK
    bound = torch.where(is_narrow, torch.maximum(bound, lightest.clamp(max=0.0)), bound)
    # -inf never stays; a float32 bound must not rise above the float64 one
    listed = (scores >= (bound - 1e-6 * bound.abs().nan_to_num(posinf=0.0)).float()[:, None]) & (
        scores > -torch.inf
    )
    count = listed.sum(dim=1)
    width = max(int(count.max()), 1)
    if 2 * width < num_columns:
        rows, columns = listed.nonzero(as_tuple=True)
        before = count.cumsum(0) - count
        place = torch.arange(rows.numel(), device=rows.device) - before[rows]
        values = torch.full((scores.shape[0], width), -torch.inf, device=scores.device)
        values[rows, place] = scores[rows, columns]
    else:
        values = scores.masked_fill(~listed, -torch.inf)
    values = _sort_descending(values)
    return _Ordered(values, values.double().exp().cumsum(dim=1), total, count)


def _kth_largest(scores: Tensor, rows: Tensor, k: Tensor) -> Tensor:
    """The k-th largest score of each of `rows`, float64."""
    if scores.device.type != "cpu":
        return (
            scores[rows]
            .sort(dim=1, descending=True)
            .values.gather(1, (k - 1)[:, None])[:, 0]
            .double()
        )
    array = scores.numpy()
    num_columns = array.shape[1]
    found = [
        np.partition(array[row], num_columns - num)[num_columns - num]
        for row, num in zip(rows.tolist(), k.tolist(), strict=True)
    ]
    return torch.tensor(found, dtype=torch.float64)


def _sort_descending(values: Tensor) -> Tensor:
    if values.device.type != "cpu":
        return values.sort(dim=1, descending=True).values
    # numpy sorts bare values an order of magnitude faster than torch sorts values with their indices
    return torch.from_numpy(np.sort(values.numpy(), axis=1)[:, ::-1].copy())


def _sum_before(sums: Tensor, place: Tensor) -> Tensor:
    """Running sum over the places before `place` ([n]), 0 before the first."""
    before = sums.gather(1, (place - 1).clamp(min=0)[:, None])[:, 0]
    return torch.where(place > 0, before, 0.0)
