"""One step's attention as a short list of work items, made once per step and run in every layer.

Owns the split of (row, key) pairs into items such that each pair is in exactly one, and the index tensors of each item. Knows nothing of
queries, keys or how an item is computed (`attention` does that).

    sequence of a group    |-- shared pages --|------ own past ------|-- new tokens --|
    long chunk              SharedItem(group)   SharedItem(itself)     CausalItem
    short chunk, decode     SharedItem(group)   PaddedItem: own past and new tokens, batched with others of like size

 - SharedItem: every row sees every key. One read of a prefix serves all rows of all member sequences.
 - CausalItem: a chunk over its own new tokens, a square lower triangle.
 - PaddedItem: sequences with few rows, gathered side by side, padded by repeating their own last key (never another's: a NaN of one
   request must not reach its neighbours) under a mask. A batch is bounded in slots, so that a gather stays in the processor's cache.

Rows that occur in several items merge by log-sum-exp, in the order of the list: keys left to right. Keys whose slots are consecutive are
read in place; others are gathered. Cost: O(sequences) numpy calls and O(K/V length) index arithmetic for gathered keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..ops import I64, StepBatch

MIN_SAVED_READS = 256
"""Key reads a group must save before it becomes an item of its own: below, the extra calls cost more."""

LONG_CHUNK = 32
"""New tokens from which a sequence is worth items of its own."""

MAX_GATHERED_SLOTS = 4096
"""Slots of one padded batch: larger gathers fall out of the cache and were slower than one sequence at a time."""

MAX_PADDING = 1.5
"""Longest over shortest key range inside a padded batch."""


@dataclass(frozen=True, slots=True)
class Span:
    """Places in dimension 0 of a tensor: `index` int64 [n], or the range start .. start + length when index is None."""

    start: int
    length: int
    index: Tensor | None = None

    def of(self, x: Tensor) -> Tensor:
        """Those places of x: a view for a range, else a gathered copy."""
        return (
            x.narrow(0, self.start, self.length)
            if self.index is None
            else x.index_select(0, self.index)
        )

    def put(self, x: Tensor, values: Tensor) -> None:
        """Write `values` at those places of x."""
        if self.index is None:
            x.narrow(0, self.start, self.length).copy_(values)
        else:
            x.index_copy_(0, self.index, values)


@dataclass(frozen=True, slots=True)
class SharedItem:
    """Every row sees every key."""

    rows: Span
    keys: Span
    first: bool  # the rows' leftmost keys: nothing to merge with


@dataclass(frozen=True, slots=True)
class CausalItem:
    """Row i sees keys 0 .. i."""

    rows: Span
    keys: Span
    first: bool


@dataclass(frozen=True, slots=True)
class PaddedItem:
    """B sequences of up to Q rows and K keys each."""

    rows: Span  # the rows that exist, sequence after sequence
    padded_rows: Span  # [B * Q] rows of T, padding repeats the sequence's last row
    existing: Tensor | None  # int64 places of `rows` in B * Q; None when there is no padding
    keys: Span  # [B * K] slots
    mask: (
        Tensor | None
    )  # [B, 1, G * Q or 1, K] 0 or -inf, G = Hq / Hk; None when every row sees every key
    batch_size: int
    first: bool


Item = SharedItem | CausalItem | PaddedItem


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """The items of a step, in merge order. `whole` when a single item covers all rows in their order."""

    items: tuple[Item, ...]
    num_rows: int
    whole: bool


class PlanBuilder:
    """Splits one StepBatch. Use once: `PlanBuilder(...).build()`."""

    def __init__(
        self,
        batch: StepBatch,
        page_size: int,
        heads_per_kv: int,
        device: torch.device,
        skip: I64 | None = None,  # sequences that get no item
    ) -> None:
        self._batch = batch
        self._page_size = page_size
        self._heads_per_kv = heads_per_kv
        self._device = device
        self._starts = batch.query_starts.astype(np.int64)
        self._num_new = np.diff(self._starts)
        if skip is not None:
            self._num_new[skip] = 0
        self._context = batch.context_lens.astype(np.int64)
        self._covered = np.zeros(
            len(self._context), np.int64
        )  # tokens of each sequence that shared items read

    def build(self) -> AttentionPlan:
        """The plan of the step."""
        items: list[Item] = list(self._group_items())
        short: list[int] = []
        for sequence in range(len(self._context)):
            if self._num_new[sequence] >= LONG_CHUNK:
                items.extend(self._chunk_items(sequence))
            elif self._num_new[sequence]:
                short.append(sequence)
        items.extend(self._padded_item(members) for members in self._buckets(short))
        num_rows = len(self._batch.token_ids)
        whole = len(items) == 1 and items[0].rows.index is None and items[0].rows.length == num_rows
        return AttentionPlan(tuple(items), num_rows, whole)

    def _group_items(self) -> Iterator[SharedItem]:
        past = self._context - self._num_new
        for group in sorted(self._batch.groups, key=lambda group: group.num_shared_pages):
            end = group.num_shared_pages * self._page_size
            members = group.sequences.astype(np.int64)
            members = members[(past[members] >= end) & (self._num_new[members] > 0)]
            for start in np.unique(
                self._covered[members]
            ):  # one value, unless groups overlap without nesting
                part = members[self._covered[members] == start]
                if (len(part) - 1) * (end - start) < MIN_SAVED_READS:
                    continue
                self._covered[part] = end
                yield SharedItem(
                    self._rows(part), self._keys(int(part[0]), int(start), end), first=start == 0
                )

    def _chunk_items(self, sequence: int) -> Iterator[Item]:
        start, context = int(self._covered[sequence]), int(self._context[sequence])
        past = context - int(self._num_new[sequence])
        rows = self._rows(np.array([sequence]))
        if past > start:
            yield SharedItem(rows, self._keys(sequence, start, past), first=start == 0)
        yield CausalItem(rows, self._keys(sequence, past, context), first=past == 0)

    def _buckets(self, sequences: list[int]) -> Iterator[npt.NDArray[np.int64]]:
        """Split into batches of like size: the same power of two of rows, key ranges within MAX_PADDING, bounded in slots."""
        if not sequences:
            return
        members = np.array(sequences, np.int64)
        row_class = np.ceil(np.log2(self._num_new[members])).astype(np.int64)
        num_keys = self._context[members] - self._covered[members]
        merges = self._covered[members] > 0
        order = np.lexsort((members, num_keys, merges, row_class))
        begin = 0
        for end in range(1, len(order) + 1):
            if end < len(order):
                head, here = order[begin], order[end]
                alike = row_class[head] == row_class[here] and merges[head] == merges[here]
                fits = (end + 1 - begin) * num_keys[here] <= MAX_GATHERED_SLOTS
                if alike and fits and num_keys[here] <= MAX_PADDING * num_keys[head]:
                    continue
            yield np.sort(members[order[begin:end]])
            begin = end

    def _padded_item(self, members: npt.NDArray[np.int64]) -> PaddedItem:
        num_new, starts = self._num_new[members], self._covered[members]
        num_keys = self._context[members] - starts
        width, depth = int(num_new.max()), int(num_keys.max())
        row_offsets = np.minimum(np.arange(width), num_new[:, None] - 1)
        existing = None
        if (num_new != width).any():
            existing = self._tensor(np.flatnonzero(np.arange(width) < num_new[:, None]))
        if len(members) == 1:
            keys = self._keys(int(members[0]), int(starts[0]), int(self._context[members[0]]))
        else:
            places = starts[:, None] + np.minimum(np.arange(depth), num_keys[:, None] - 1)
            keys = Span(0, places.size, self._tensor(self._slots(members[:, None], places).ravel()))
        mask = None
        if width > 1 or (num_keys != depth).any():
            num_visible = (num_keys - num_new)[:, None] + row_offsets + 1
            mask = self._mask(np.arange(depth) >= num_visible[:, :, None])
        return PaddedItem(
            rows=self._rows(members),
            padded_rows=self._span((self._starts[members][:, None] + row_offsets).ravel()),
            existing=existing,
            keys=keys,
            mask=mask,
            batch_size=len(members),
            first=not starts.any(),
        )

    def _mask(self, hidden: npt.NDArray[np.bool_]) -> Tensor:
        batch_size, width, depth = hidden.shape
        repeats = (
            1 if width == 1 else self._heads_per_kv
        )  # query heads are folded into rows, each with the same mask
        mask = torch.zeros((batch_size, 1, width, depth))
        mask.masked_fill_(torch.from_numpy(hidden)[:, None], -torch.inf)
        return mask.repeat(1, 1, repeats, 1).to(self._device)

    def _rows(self, sequences: npt.NDArray[np.int64]) -> Span:
        counts = self._num_new[sequences]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._span(np.repeat(self._starts[sequences], counts) + offsets)

    def _keys(self, sequence: int, start: int, end: int) -> Span:
        pages = self._batch.page_tables[
            sequence, start // self._page_size : -(-end // self._page_size)
        ]
        if (np.diff(pages) == 1).all():
            return Span(int(pages[0]) * self._page_size + start % self._page_size, end - start)
        slots = self._slots(np.int64(sequence), np.arange(start, end))
        return Span(0, end - start, self._tensor(slots))

    def _slots(self, sequences: npt.NDArray[np.int64] | np.int64, places: I64) -> I64:
        pages = self._batch.page_tables[sequences, places // self._page_size].astype(np.int64)
        return pages * self._page_size + places % self._page_size

    def _span(self, places: I64) -> Span:
        if places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all():
            return Span(int(places[0]), len(places))
        return Span(0, len(places), self._tensor(places))

    def _tensor(self, places: I64) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(places, np.int64)).to(self._device)
