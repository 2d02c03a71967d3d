"""A program's moves in the shape that stepping wants: per state, by byte class, with empty moves followed.

Owns the lazily built per-state tables. Knows nothing of stacks, configurations or tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .program import I32, GrammarProgram
from .set_arrays import set_tables


@dataclass(frozen=True, slots=True)
class EmptyMoves:
    """What one state leads to without a byte."""

    byte_states: tuple[int, ...]  # states with byte edges
    calls: tuple[tuple[int, int], ...]  # (region, return state)
    loops: tuple[int, ...]
    sets: tuple[int, ...]
    is_end: bool
    plain_state: int  # the only byte state if there is nothing else, or -1


class ProgramMoves:
    """Lookups over the flat arrays of `program`."""

    def __init__(self, program: GrammarProgram) -> None:
        self.num_classes = program.num_classes
        self.class_of_byte: list[int] = program.class_of_byte.tolist()
        self.entries: list[int] = program.region_entry.tolist()
        self.ranks: list[int] = program.region_rank.tolist()
        self.loop_body: list[int] = program.loop_body.tolist()
        self.loop_lo: list[int] = program.loop_lo.tolist()
        self.loop_hi: list[int] = program.loop_hi.tolist()
        self.loop_exit: list[int] = program.loop_exit.tolist()
        self.sets = set_tables(program)
        self._class_bytes: list[list[int]] = [[] for _ in range(self.num_classes)]
        for byte, byte_class in enumerate(self.class_of_byte):
            self._class_bytes[byte_class].append(byte)
        states = np.arange(program.num_states + 1)
        self._edge_start: list[int] = np.searchsorted(program.edge_from, states).tolist()
        self._edge_lo = program.edge_lo.tobytes()
        self._edge_hi = program.edge_hi.tobytes()
        self._edge_to: list[int] = program.edge_to.tolist()
        self._empties = _grouped(program.empty_from, program.empty_to)
        self._calls = _grouped(program.call_from, program.call_region, program.call_to)
        self._loops = _grouped(program.loop_from, program.loop_id)
        self._sets = _grouped(program.set_from, program.set_id)
        self._ends = set(program.ends.tolist())
        self._moves: dict[int, EmptyMoves] = {}
        self._targets: dict[int, dict[int, list[int]]] = {}
        self._classes_in: dict[tuple[int, int], list[int]] = {}

    def bytes_of(self, byte_classes: set[int]) -> tuple[int, ...]:
        """The bytes of some classes, in no particular order."""
        return tuple(byte for byte_class in byte_classes for byte in self._class_bytes[byte_class])

    def targets(self, source: int) -> dict[int, list[int]]:
        """Byte class -> the states that an edge over it leads to."""
        known = self._targets.get(source)
        if known is None:
            known = self._targets[source] = {}
            for edge in range(self._edge_start[source], self._edge_start[source + 1]):
                target = self._edge_to[edge]
                for byte_class in self._classes_between(self._edge_lo[edge], self._edge_hi[edge]):
                    targets = known.setdefault(byte_class, [])
                    if target not in targets:
                        targets.append(target)
        return known

    def _classes_between(self, low: int, high: int) -> list[int]:
        known = self._classes_in.get((low, high))
        if known is None:
            known = self._classes_in[low, high] = sorted(set(self.class_of_byte[low : high + 1]))
        return known

    def empty_moves(self, source: int) -> EmptyMoves:
        """Everything `source` leads to by empty moves, itself included."""
        known = self._moves.get(source)
        if known is None:
            known = self._moves[source] = self._follow(source)
        return known

    def _follow(self, source: int) -> EmptyMoves:
        reached, seen = [source], {source}
        for state in reached:
            for (target,) in self._empties.get(state, ()):
                if target not in seen:
                    seen.add(target)
                    reached.append(target)
        byte_states = tuple(s for s in reached if self._edge_start[s] < self._edge_start[s + 1])
        calls = tuple((row[0], row[1]) for s in reached for row in self._calls.get(s, ()))
        loops = tuple(row[0] for s in reached for row in self._loops.get(s, ()))
        sets = tuple(row[0] for s in reached for row in self._sets.get(s, ()))
        is_end = not self._ends.isdisjoint(reached)
        is_plain = len(byte_states) == 1 and not (calls or loops or sets or is_end)
        plain_state = byte_states[0] if is_plain else -1
        return EmptyMoves(byte_states, calls, loops, sets, is_end, plain_state)


def _grouped(sources: I32, *columns: I32) -> dict[int, list[tuple[int, ...]]]:
    groups: dict[int, list[tuple[int, ...]]] = {}
    for source, *row in zip(
        sources.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        groups.setdefault(source, []).append(tuple(row))
    return groups
