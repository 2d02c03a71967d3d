"""Sets of members in one text: which may still come, when the set is complete, and what completing it costs at least.

Owns the pure logic of `expr.Members` after some of its members have come, as numbers: a bit set of those begun and their count. Compiler
and matcher share it. Knows nothing of automata, stacks or text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

INFINITE = 1 << 60


@dataclass(frozen=True, slots=True)
class MemberSet:
    """The rules of one set. `clauses` are (needs, bars) as bit sets; `runs` are the members that may come again."""

    num_items: int
    runs: int
    clauses: tuple[tuple[int, int], ...]
    lo: int
    hi: int | None
    is_ordered: bool

    def begun(self, seen: int, count: int, item: int) -> tuple[int, int]:
        """The set once `item` has begun: a run that no rule speaks of leaves no trace, a count beyond every bound neither."""
        is_silent = (
            self.runs >> item & 1
            and not self.is_ordered
            and not any((needs | bars) >> item & 1 for needs, bars in self.clauses)
        )
        after = count + 1 if self.hi is not None else min(count + 1, self.lo)
        return seen if is_silent else seen | 1 << item, after

    def is_done(self, seen: int, count: int) -> bool:
        """Whether the set may end here."""
        return count >= self.lo and any(
            not needs & ~seen and not bars & seen for needs, bars in self.clauses
        )

    def next_items(self, seen: int, count: int) -> Iterator[int]:
        """The members that may begin now, so that the set can still be completed."""
        if self.hi is not None and count >= self.hi:
            return
        free = self._free(seen)
        for item in range(self.num_items):
            if free >> item & 1 and any(self._ways(*self.begun(seen, count, item))):
                yield item

    def least_cost(self, seen: int, count: int, costs: Sequence[int], separator: int) -> int:
        """The least sum of `costs` of further members that complete the set, with a `separator` before each but the very first."""
        best = INFINITE
        for need, others, extra in self._ways(seen, count):
            items = [costs[i] for i in _bits(need)]
            if extra:
                singles = sorted(costs[i] for i in _bits(others & ~self.runs))
                run = min((costs[i] for i in _bits(others & self.runs)), default=INFINITE)
                cheapest = [cost for cost in singles[:extra] if cost < run]
                items += cheapest + [run] * (extra - len(cheapest))
            gaps = len(items) - (count == 0) if items else 0
            best = min(best, sum(items) + max(gaps, 0) * separator)
        return best

    def without(self, dropped: Sequence[int]) -> MemberSet:
        """The set if some members cannot come at all; the others are numbered on without them."""
        if not dropped:
            return self
        gone = sum(1 << item for item in dropped)
        kept = [item for item in range(self.num_items) if not gone >> item & 1]

        def renumbered(mask: int) -> int:
            return sum(1 << new for new, old in enumerate(kept) if mask >> old & 1)

        clauses = tuple(
            (renumbered(needs), renumbered(bars))
            for needs, bars in self.clauses
            if not needs & gone
        )
        return MemberSet(
            len(kept), renumbered(self.runs), clauses, self.lo, self.hi, self.is_ordered
        )

    def at_most_one(self) -> MemberSet:
        """The set if no second member can come."""
        hi = 1 if self.hi is None else min(self.hi, 1)
        return MemberSet(self.num_items, self.runs, self.clauses, self.lo, hi, self.is_ordered)

    def _free(self, seen: int) -> int:
        """The members that the order, and coming once, still allow."""
        everything = (1 << self.num_items) - 1
        if not self.is_ordered:
            return everything & (~seen | self.runs)
        if not seen:
            return everything
        last = seen.bit_length() - 1
        return everything & (-1 << (last + 1)) | self.runs & 1 << last

    def _ways(self, seen: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Each clause that can still hold: the members it needs yet, those that may come besides, how many of these the count needs."""
        free = self._free(seen)
        for needs, bars in self.clauses:
            need = needs & ~seen
            if bars & seen or need & ~free:
                continue
            total = count + need.bit_count()
            if self.hi is not None and total > self.hi:
                continue
            others = free & ~bars & ~(need & ~self.runs)
            extra = max(self.lo - total, 0)
            if extra and not others & self.runs and (others & ~self.runs).bit_count() < extra:
                continue
            yield need, others, extra


@dataclass(frozen=True, slots=True)
class SetMove:
    """At least one of the regions `members`, by `rules`, the region `separator` (-1: none) between them, then on to the state `exit`."""

    members: tuple[int, ...]
    separator: int
    rules: MemberSet
    exit: int

    def regions(self) -> tuple[int, ...]:
        """All regions that may run, the separator last."""
        return self.members if self.separator < 0 else (*self.members, self.separator)

    def cost(self, seen: int, count: int, costs: Sequence[int]) -> int:
        """The least cost of the further members that complete the set; `costs` are those of `regions()`."""
        separator = 0 if self.separator < 0 else costs[-1]
        return self.rules.least_cost(seen, count, costs, separator)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
