"""Graph -> GrammarProgram: the finished automaton as flat arrays.

Owns numbering, the spelling-out of literals, byte classes, region ranks and shortest distances. Knows nothing of expressions or tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from ..errors import GrammarError
from .automaton import Graph
from .left_recursion import call_order, left_calls
from .member_sets import SetMove
from .product import byte_classes
from .program import I32, I64, U8, GrammarProgram
from .set_arrays import set_arrays
from .shortest_routes import Routes

Pairs = list[tuple[int, int]]


def emit(graph: Graph, start: int, alphabet: int) -> GrammarProgram:
    """The program of the states that `start` leads to. Everything in `graph` must be able to end."""
    order = graph.reachable([start])
    number = {state: position for position, state in enumerate(order)}
    regions = _used_regions(graph, order)
    rows = _Rows(graph, number, regions)
    for state in order:
        rows.add_state(state)
    num_states = len(order) + sum(len(data) - 1 for _, data, _ in rows.literals)
    _check_size("states", num_states, graph.limits.states)
    distances = _distances(graph, order)
    edges, literal_distances = _edges(rows, len(order), distances)
    _check_size("transitions", edges[0].size, graph.limits.transitions)
    masks = rows.masks | {1 << byte for byte in set(b"".join(data for _, data, _ in rows.literals))}
    class_of_byte, num_classes = _class_table(masks)
    loops = list(rows.loop_number)
    sets = [rows.renumbered(graph.sets[index]) for index in rows.set_number]
    rank = {
        region: position for position, region in enumerate(call_order(graph, rows.left_calls()))
    }
    return GrammarProgram(
        alphabet=np.array([alphabet >> byte & 1 for byte in range(256)], dtype=np.uint8),
        class_of_byte=class_of_byte,
        scalars=np.array([num_states, number[start], num_classes], dtype=np.int64),
        edge_from=edges[0],
        edge_lo=edges[1].astype(np.uint8),
        edge_hi=edges[2].astype(np.uint8),
        edge_to=edges[3],
        empty_from=_column(rows.empties, 0),
        empty_to=_column(rows.empties, 1),
        call_from=_column(rows.calls, 0),
        call_region=_column(rows.calls, 1),
        call_to=_column(rows.calls, 2),
        loop_from=_column(rows.loops, 0),
        loop_id=_column(rows.loops, 1),
        loop_body=np.array([regions[graph.loops[k].body] for k in loops], dtype=np.int32),
        loop_lo=np.array([graph.loops[k].lo for k in loops], dtype=np.int64),
        loop_hi=np.array(
            [-1 if (hi := graph.loops[k].hi) is None else hi for k in loops], dtype=np.int64
        ),
        loop_exit=np.array([number[graph.loops[k].exit] for k in loops], dtype=np.int32),
        set_from=_column(rows.sets, 0),
        set_id=_column(rows.sets, 1),
        **set_arrays(sets),
        ends=np.array(
            [number[state] for state in order if graph.states[state].is_end], dtype=np.int32
        ),
        region_entry=np.array(
            [number[graph.regions[region].entry] for region in regions], dtype=np.int32
        ),
        region_rank=np.array([rank[region] for region in regions], dtype=np.int32),
        distances=np.concatenate([np.array(distances, dtype=np.int64), literal_distances]),
    )


def _check_size(what: str, size: int, limit: int) -> None:
    if size > limit:
        raise GrammarError(
            f"the grammar needs {size} automaton {what}, more than limits.{what}={limit}",
            keyword=what,
        )


def _column(rows: list[tuple[int, ...]], index: int) -> I32:
    return np.array([row[index] for row in rows], dtype=np.int32)


def _used_regions(graph: Graph, order: list[int]) -> dict[int, int]:
    """Graph region -> program region, for those that are called."""
    used: dict[int, int] = {}
    for state in map(graph.states.__getitem__, order):
        for region, _ in state.calls:
            used.setdefault(region, len(used))
        for loop in state.loops:
            used.setdefault(graph.loops[loop].body, len(used))
        for index in state.sets:
            for region in graph.sets[index].regions():
                used.setdefault(region, len(used))
    return used


@dataclass(slots=True)
class _Rows:
    """The moves of the kept states, in their new numbers; `edges` are (from, byte set, to)."""

    graph: Graph
    number: dict[int, int]
    regions: dict[int, int]
    edges: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    literals: list[tuple[int, bytes, int]] = field(default_factory=list[tuple[int, bytes, int]])
    empties: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    calls: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    loops: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    loop_number: dict[int, int] = field(default_factory=dict[int, int])
    sets: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    set_number: dict[int, int] = field(default_factory=dict[int, int])
    masks: set[int] = field(default_factory=set[int])

    def add_state(self, index: int) -> None:
        """Take over all moves of one state."""
        state, source = self.graph.states[index], self.number[index]
        by_target: dict[int, int] = {}
        for mask, target in state.edges:
            by_target[target] = by_target.get(target, 0) | mask
        for target, mask in by_target.items():
            self.edges.append((source, mask, self.number[target]))
        self.masks.update(by_target.values())
        self.literals.extend((source, data, self.number[target]) for data, target in state.literals)
        self.empties.extend((source, self.number[target]) for target in state.empty)
        self.calls.extend(
            (source, self.regions[region], self.number[target]) for region, target in state.calls
        )
        self.loops.extend(
            (source, self.loop_number.setdefault(loop, len(self.loop_number)))
            for loop in state.loops
        )
        self.sets.extend(
            (source, self.set_number.setdefault(move, len(self.set_number))) for move in state.sets
        )

    def renumbered(self, move: SetMove) -> SetMove:
        """A set in the program's numbers."""
        members = tuple(self.regions[region] for region in move.members)
        separator = move.separator if move.separator < 0 else self.regions[move.separator]
        return SetMove(members, separator, move.rules, self.number[move.exit])

    def left_calls(self) -> list[list[int]]:
        """Per graph region, what it may call at its first position; empty for regions nobody uses."""
        return [
            left_calls(self.graph, region) if region in self.regions else []
            for region in range(len(self.graph.regions))
        ]


def _mask_ranges(mask: int, known: dict[int, Pairs]) -> Pairs:
    """The byte set as inclusive ranges."""
    ranges = known.get(mask)
    if ranges is None:
        ranges = cast(Pairs, [])
        rest, base = mask, 0
        while rest:
            skip = (rest & -rest).bit_length() - 1
            rest >>= skip
            length = (~rest & (rest + 1)).bit_length() - 1
            ranges.append((base + skip, base + skip + length - 1))
            rest >>= length
            base += skip + length
        known[mask] = ranges
    return ranges


def _edges(rows: _Rows, num_graph_states: int, distances: list[int]) -> tuple[list[I32], I64]:
    """Columns (from, lo, hi, to) of all byte edges sorted by source, and the distances of the states inside literals."""
    known: dict[int, Pairs] = {}
    listed: list[tuple[int, int, int, int]] = [
        (source, low, high, target)
        for source, mask, target in rows.edges
        for low, high in _mask_ranges(mask, known)
    ]
    lengths = np.array([len(data) for _, data, _ in rows.literals], dtype=np.int64)
    text = np.frombuffer(b"".join(data for _, data, _ in rows.literals), dtype=np.uint8).astype(
        np.int32
    )
    lasts = np.cumsum(lengths) - 1
    # Byte j of all texts together, in literal k, leads to a state of its own: those are numbered on, one less per literal.
    after = num_graph_states + np.arange(len(text)) - np.repeat(np.arange(len(lengths)), lengths)
    before = after - 1
    before[lasts - lengths + 1] = [source for source, _, _ in rows.literals]
    after[lasts] = [target for _, _, target in rows.literals]
    costs = np.repeat(
        lasts + np.array([distances[target] for _, _, target in rows.literals], dtype=np.int64),
        lengths,
    )
    literal_distances = np.delete(costs - np.arange(len(text)), lasts)
    table = np.array(listed, dtype=np.int32).reshape(-1, 4)
    columns = [
        np.concatenate((table[:, 0], before)).astype(np.int32),
        np.concatenate((table[:, 1], text)).astype(np.int32),
        np.concatenate((table[:, 2], text)).astype(np.int32),
        np.concatenate((table[:, 3], after)).astype(np.int32),
    ]
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns], literal_distances


def _class_table(masks: set[int]) -> tuple[U8, int]:
    """Byte -> class, and the number of classes; class 0 holds the bytes that no edge takes."""
    table = np.zeros(256, dtype=np.uint8)
    groups = byte_classes(masks)
    is_full = sum(group.bit_count() for group in groups) == 256
    for index, group in enumerate(groups):
        for byte in range(256):
            if group >> byte & 1:
                table[byte] = index if is_full else index + 1
    return table, len(groups) if is_full else len(groups) + 1


def _distances(graph: Graph, order: list[int]) -> list[int]:
    """Least bytes from each kept state to the end of its region, in the order of `order`."""
    routes = Routes()
    for source in order:
        state = graph.states[source]
        for _, target in state.edges:
            routes.add_step(source, target, 1)
        for data, target in state.literals:
            routes.add_step(source, target, len(data))
        for target in state.empty:
            routes.add_step(source, target, 0)
        for region, target in state.calls:
            routes.add_call(source, graph.regions[region].entry, 1, target)
        for loop in map(graph.loops.__getitem__, state.loops):
            routes.add_call(source, graph.regions[loop.body].entry, loop.lo, loop.exit)
        for move in map(graph.sets.__getitem__, state.sets):
            entries = [graph.regions[region].entry for region in move.regions()]
            routes.add_set(source, move, entries)
    found = routes.costs(source for source in order if graph.states[source].is_end)
    return [found[state] for state in order]
