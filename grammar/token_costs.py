"""Distances to a complete text in tokens, for a vocabulary.

Owns the per-state costs that a matcher's `distance` is made of. A completion is counted byte by byte, each byte by its single-byte token:
that token is allowed, and lowers the distance by exactly one. The program holds these costs for its whole alphabet; where the vocabulary
has no single-byte token for some byte, they are computed again without the edges over such bytes, and a state from which every completion
needs one is NEVER: its distance promises nothing, and no budget is enforced from it. Knows nothing of masks or matchers.
"""

from __future__ import annotations

import heapq

import numpy as np

from .program import GrammarProgram
from .vocabulary import Vocabulary

NEVER = 1 << 60


def token_costs(program: GrammarProgram, vocabulary: Vocabulary) -> list[int]:
    """Per program state, the least number of single-byte tokens to an end of its region; NEVER where there is no such way."""
    is_single = np.zeros(256, dtype=bool)
    is_single[list(vocabulary.single_bytes)] = True
    missing = (program.alphabet != 0) & ~is_single
    num_missing = np.concatenate(([0], np.cumsum(missing)))
    if not (num_missing[program.edge_hi.astype(np.int64) + 1] > num_missing[program.edge_lo]).any():
        return program.distances.tolist()
    num_present = np.concatenate(([0], np.cumsum(is_single)))
    usable = num_present[program.edge_hi.astype(np.int64) + 1] > num_present[program.edge_lo]
    return _shortest(program, usable)


def _shortest(program: GrammarProgram, usable: np.ndarray) -> list[int]:
    """As in `emission.py`, over the flat arrays and the usable edges only."""
    simple: dict[int, list[tuple[int, int]]] = {}
    for source, target in zip(
        program.edge_from[usable].tolist(), program.edge_to[usable].tolist(), strict=True
    ):
        simple.setdefault(target, []).append((source, 1))
    for source, target in zip(program.empty_from.tolist(), program.empty_to.tolist(), strict=True):
        simple.setdefault(target, []).append((source, 0))
    entries, loop_lo = program.region_entry.tolist(), program.loop_lo.tolist()
    joint: dict[int, list[tuple[int, int, int, int]]] = {}

    def add_joint(source: int, entry: int, times: int, after: int) -> None:
        joint.setdefault(entry, []).append((source, entry, times, after))
        joint.setdefault(after, []).append((source, entry, times, after))

    calls = (program.call_from, program.call_region, program.call_to)
    for source, region, target in zip(*(column.tolist() for column in calls), strict=True):
        add_joint(source, entries[region], 1, target)
    body, after = program.loop_body.tolist(), program.loop_exit.tolist()
    for source, loop in zip(program.loop_from.tolist(), program.loop_id.tolist(), strict=True):
        add_joint(source, entries[body[loop]], loop_lo[loop], after[loop])
    costs = [NEVER] * program.num_states
    heap: list[tuple[int, int]] = [(0, state) for state in program.ends.tolist()]
    while heap:
        cost, state = heapq.heappop(heap)
        if costs[state] != NEVER:
            continue
        costs[state] = cost
        for source, extra in simple.get(state, ()):
            heapq.heappush(heap, (cost + extra, source))
        for source, entry, times, after_state in joint.get(state, ()):
            total = times * costs[entry] + costs[after_state]
            if costs[entry] != NEVER and costs[after_state] != NEVER and total < NEVER:
                heapq.heappush(heap, (total, source))
    return costs
