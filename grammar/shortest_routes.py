"""Least costs from states to the end of their region, through edges, calls, loops and member sets.

Owns one algorithm over moves that are added one by one. Knows nothing of where they come from. Source: Knuth, "A generalization of
Dijkstra's algorithm", 1977 (a call costs its region plus what follows).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from .member_sets import INFINITE, SetMove

MAX_COST = 1 << 60  # nested counted repeats may ask for more than 64 bits hold


class Routes:
    """Moves backwards: who gets nearer to an end once a state's cost is known."""

    def __init__(self) -> None:
        self._steps: dict[int, list[tuple[int, int]]] = {}  # target -> (source, cost)
        self._calls: dict[int, list[tuple[int, int, int, int]]] = {}  # entry or after ->
        self._sets: dict[int, list[tuple[int, SetMove, list[int]]]] = {}  # any entry or exit ->

    def add_step(self, source: int, target: int, cost: int) -> None:
        """A move that costs `cost`."""
        self._steps.setdefault(target, []).append((source, cost))

    def add_call(self, source: int, entry: int, times: int, after: int) -> None:
        """The region of `entry`, `times` times, then on at `after`."""
        call = (source, entry, times, after)
        self._calls.setdefault(entry, []).append(call)
        self._calls.setdefault(after, []).append(call)

    def add_set(self, source: int, move: SetMove, entries: list[int]) -> None:
        """A set whose regions are entered at `entries`."""
        for state in dict.fromkeys((*entries, move.exit)):
            self._sets.setdefault(state, []).append((source, move, entries))

    def costs(self, ends: Iterable[int]) -> dict[int, int]:
        """The cost of every state from which an end is reached, at most MAX_COST."""
        found: dict[int, int] = {}
        heap = [(0, state) for state in ends]
        while heap:
            cost, state = heapq.heappop(heap)
            if state in found:
                continue
            found[state] = cost
            for source, extra in self._steps.get(state, ()):
                if source not in found:
                    heapq.heappush(heap, (cost + extra, source))
            for source, total in (*self._call_costs(state, found), *self._set_costs(state, found)):
                if source not in found:
                    heapq.heappush(heap, (min(total, MAX_COST), source))
        return found

    def _call_costs(self, state: int, found: dict[int, int]) -> list[tuple[int, int]]:
        return [
            (source, times * found[entry] + found[after])
            for source, entry, times, after in self._calls.get(state, ())
            if entry in found and after in found
        ]

    def _set_costs(self, state: int, found: dict[int, int]) -> list[tuple[int, int]]:
        totals: list[tuple[int, int]] = []
        for source, move, entries in self._sets.get(state, ()):
            if move.exit in found:
                inside = move.cost(0, 0, [found.get(entry, INFINITE) for entry in entries])
                if inside < INFINITE:
                    totals.append((source, inside + found[move.exit]))
        return totals
