"""Intersection, difference and erasure of regular expressions: one deterministic automaton for each And, Minus and Erase.

Owns the determinisation of flat graphs (byte edges and empty moves only) and their product. Only pairs that are met are built, states
that cannot reach acceptance are cut, and `limits.product_states` bounds both operands and product. Knows nothing of regions or tokens.
Source: Rabin & Scott, "Finite automata and their decision problems", 1959 (subset and product constructions).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import GrammarError
from .analysis import Analysis
from .automaton import Graph
from .expr import And, Erase, Expr, Minus
from .lowering import Dfa, Lowering

_DEAD = -1


def build_products(analysis: Analysis, alphabet: int) -> dict[int, Dfa]:
    """The automaton of every And, Minus and Erase of the grammar, by identity of the expression; inner ones first.

    The automata may still hold marker bytes from outside the alphabet; whoever embeds one in a graph filters its edges.
    """
    for expr in analysis.order:
        if isinstance(expr, Erase):
            alphabet |= expr.mask
    products: dict[int, Dfa] = {}
    for expr in analysis.order:
        if isinstance(expr, And | Minus | Erase):
            parts = _parts(expr)
            erased = expr.mask if isinstance(expr, Erase) else 0
            operands = _operands(parts, analysis, alphabet, products, erased)
            products[id(expr)] = _Product(
                operands, isinstance(expr, Minus), analysis.limits.product_states
            ).dfa()
    return products


def _parts(expr: And | Minus | Erase) -> tuple[Expr, ...]:
    if isinstance(expr, And):
        return expr.items
    return (expr.keep, expr.drop) if isinstance(expr, Minus) else (expr.item,)


def byte_classes(masks: set[int]) -> list[int]:
    """The bytes that no mask tells apart, grouped: a list of disjoint byte sets; bytes in no mask are left out."""
    if not masks:
        return []
    rows = np.frombuffer(b"".join(mask.to_bytes(32, "little") for mask in masks), dtype=np.uint8)
    bits = np.unpackbits(rows.reshape(len(masks), 32), axis=1, bitorder="little")  # [masks, 256]
    groups: dict[bytes, int] = {}
    for byte, column in enumerate(np.ascontiguousarray(bits.T)):
        if column.any():
            groups[column.tobytes()] = groups.get(column.tobytes(), 0) | 1 << byte
    return list(groups.values())


def _operands(
    parts: tuple[Expr, ...],
    analysis: Analysis,
    alphabet: int,
    products: dict[int, Dfa],
    erased: int,
) -> list[_Subsets]:
    limits = replace(analysis.limits, states=analysis.limits.product_states)
    graphs: list[tuple[Graph, int]] = []
    for part in parts:
        graph = Graph(limits)
        try:
            start = Lowering(analysis, graph, alphabet, products, flat=True).build(part)
        except GrammarError as error:
            raise _too_large(analysis.limits.product_states) from error
        graphs.append((graph, start))
        if erased:
            _erase(graph, erased)
    masks = {mask for graph, _ in graphs for state in graph.states for mask, _ in state.edges}
    classes = byte_classes(masks)
    classes_of = {mask: [i for i, group in enumerate(classes) if group & mask] for mask in masks}
    return [_Subsets(graph, start, classes, classes_of) for graph, start in graphs]


def _erase(graph: Graph, erased: int) -> None:
    """Turn moves over the erased bytes into empty ones."""
    for state in graph.states:
        state.empty += [target for mask, target in state.edges if mask & erased]
        state.edges = [(mask & ~erased, target) for mask, target in state.edges if mask & ~erased]


def _too_large(limit: int) -> GrammarError:
    return GrammarError(
        f"an intersection or difference of expressions needs more than limits.product_states={limit} states",
        keyword="product_states",
    )


class _Subsets:
    """A flat graph, determinised as far as it is asked."""

    def __init__(
        self, graph: Graph, start: int, classes: list[int], classes_of: dict[int, list[int]]
    ) -> None:
        self.classes = classes
        self._graph = graph
        self._classes_of = classes_of
        self._closures: dict[int, frozenset[int]] = {}
        self._ids: dict[frozenset[int], int] = {}
        self._sets: list[frozenset[int]] = []
        self.accepting: list[bool] = []
        self._rows: dict[int, dict[int, int]] = {}
        self.start = self._intern(self._closure(start))

    def row(self, subset: int) -> dict[int, int]:
        """class -> subset, for the moves that exist."""
        known = self._rows.get(subset)
        if known is not None:
            return known
        targets: dict[int, set[int]] = {}
        for state in self._sets[subset]:
            for mask, target in self._graph.states[state].edges:
                for index in self._classes_of[mask]:
                    targets.setdefault(index, set()).add(target)
        row = {index: self._intern(self._close(found)) for index, found in targets.items()}
        self._rows[subset] = row
        return row

    def _close(self, states: set[int]) -> frozenset[int]:
        if len(states) == 1:
            return self._closure(next(iter(states)))
        found: set[int] = set()
        for state in states:
            found |= self._closure(state)
        return frozenset(found)

    def _closure(self, state: int) -> frozenset[int]:
        """What is reached by empty moves; only states that matter (edges or acceptance) are kept."""
        known = self._closures.get(state)
        if known is None:
            states = self._graph.states
            known = frozenset(
                s for s in self._graph.closure(state) if states[s].edges or states[s].is_end
            )
            self._closures[state] = known
        return known

    def _intern(self, found: frozenset[int]) -> int:
        index = self._ids.get(found)
        if index is None:
            index = self._ids[found] = len(self._sets)
            self._sets.append(found)
            self.accepting.append(any(self._graph.states[state].is_end for state in found))
        return index


class _Product:
    """All operands at once; with `is_difference`, the first and not the second."""

    def __init__(self, operands: list[_Subsets], is_difference: bool, limit: int) -> None:
        self._operands = operands
        self._is_difference = is_difference
        self._limit = limit

    def dfa(self) -> Dfa:
        """Explore, then cut what cannot accept."""
        start = tuple(operand.start for operand in self._operands)
        ids = {start: 0}
        found = [start]
        rows: list[dict[int, int]] = []  # class -> product state
        for pair in found:
            row: dict[int, int] = {}
            for index, after in self._moves(pair):
                known = ids.get(after)
                if known is None:
                    if len(found) >= self._limit:
                        raise _too_large(self._limit)
                    known = ids[after] = len(found)
                    found.append(after)
                row[index] = known
            rows.append(row)
        return self._trimmed(rows, [self._accepts(pair) for pair in found])

    def _moves(self, pair: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        if self._is_difference:
            keep, drop = self._operands[0].row(pair[0]), {}
            if pair[1] != _DEAD:
                drop = self._operands[1].row(pair[1])
            return [(index, (after, drop.get(index, _DEAD))) for index, after in keep.items()]
        tables = [operand.row(subset) for operand, subset in zip(self._operands, pair, strict=True)]
        shared = set(tables[0]).intersection(*tables[1:])
        return [(index, tuple(table[index] for table in tables)) for index in shared]

    def _accepts(self, pair: tuple[int, ...]) -> bool:
        verdicts = [
            subset != _DEAD and operand.accepting[subset]
            for operand, subset in zip(self._operands, pair, strict=True)
        ]
        return verdicts[0] and not verdicts[1] if self._is_difference else all(verdicts)

    def _trimmed(self, rows: list[dict[int, int]], accepting: list[bool]) -> Dfa:
        sources: list[list[int]] = [[] for _ in rows]
        for source, row in enumerate(rows):
            for target in row.values():
                sources[target].append(source)
        live = list(accepting)
        work = [index for index, is_live in enumerate(live) if is_live]
        while work:
            for source in sources[work.pop()]:
                if not live[source]:
                    live[source] = True
                    work.append(source)
        if not live[0]:
            return Dfa((), ())
        kept = [index for index, is_live in enumerate(live) if is_live]
        number = {index: position for position, index in enumerate(kept)}
        classes = self._operands[0].classes
        final: list[tuple[tuple[int, int], ...]] = []
        for index in kept:
            masks: dict[int, int] = {}
            for group, target in rows[index].items():
                if live[target]:
                    masks[number[target]] = masks.get(number[target], 0) | classes[group]
            final.append(tuple((mask, target) for target, mask in masks.items()))
        return Dfa(tuple(final), tuple(accepting[index] for index in kept))
