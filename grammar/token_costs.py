"""Distances to a complete text in tokens, for a vocabulary.

Owns the per-state costs that a matcher's `distance` is made of. A completion is counted byte by byte, each byte by its single-byte token:
that token is allowed, and lowers the distance by exactly one. The program holds these costs for its whole alphabet; where the vocabulary
has no single-byte token for some byte, they are computed again without the edges over such bytes, and a state from which every completion
needs one is NEVER: its distance promises nothing, and no budget is enforced from it. Knows nothing of masks or matchers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .program import I32, I64, GrammarProgram
from .set_arrays import set_tables
from .shortest_routes import Routes
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
    routes = Routes()
    for source, target in _rows(program.edge_from[usable], program.edge_to[usable]):
        routes.add_step(source, target, 1)
    for source, target in _rows(program.empty_from, program.empty_to):
        routes.add_step(source, target, 0)
    entries = program.region_entry.tolist()
    for source, region, target in _rows(program.call_from, program.call_region, program.call_to):
        routes.add_call(source, entries[region], 1, target)
    loops = list(_rows(program.loop_body, program.loop_lo, program.loop_exit))
    for source, loop in _rows(program.loop_from, program.loop_id):
        body, rounds, after = loops[loop]
        routes.add_call(source, entries[body], rounds, after)
    sets = set_tables(program)
    for source, number in _rows(program.set_from, program.set_id):
        move = sets[number]
        routes.add_set(source, move, [entries[region] for region in move.regions()])
    found = routes.costs(program.ends.tolist())
    return [found.get(state, NEVER) for state in range(program.num_states)]


def _rows(*columns: I32 | I64) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)
