"""Expressions -> automaton graph: Thompson's construction without Python recursion.

Owns the translation of each kind of expression into states. Shared or recursive parts become regions, large repeats become counted
loops over a region, sets of literals become a radix tree, intersections and differences are embedded as the deterministic automata that
`product.py` made of them. In `flat` mode (the operands of a product) everything is copied out: no regions, no loops, no literals.
Bytes outside the alphabet never enter the graph. Source: K. Thompson, "Regular expression search algorithm", CACM 1968.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .analysis import Analysis
from .automaton import Graph, Loop
from .expr import (
    EMPTY,
    Alt,
    And,
    Bytes,
    Chars,
    Erase,
    Expr,
    Lit,
    Members,
    Minus,
    Ref,
    Repeat,
    Seq,
)
from .member_sets import MemberSet, SetMove
from .utf8 import ByteTree, byte_tree


@dataclass(frozen=True, slots=True)
class Dfa:
    """A deterministic automaton: state 0 starts; a row lists (byte set, target); every state can reach acceptance."""

    rows: tuple[tuple[tuple[int, int], ...], ...]
    accepting: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class _Copies:
    """The rest of an unrolled repeat: `lo` further copies are needed, `hi` more are possible (None: any number)."""

    item: Expr
    lo: int
    hi: int | None


class Lowering:
    """Builds one graph; `products` holds the automaton of each And, Minus and Erase, by identity."""

    def __init__(
        self,
        analysis: Analysis,
        graph: Graph,
        alphabet: int,
        products: Mapping[int, Dfa],
        *,
        flat: bool = False,
    ) -> None:
        self.graph = graph
        self._analysis = analysis
        self._alphabet = alphabet
        self._products = products
        self._flat = flat
        self._region_ids: dict[int, int] = {}
        self._trees: dict[tuple[tuple[int, int], ...], ByteTree] = {}
        self._work: list[tuple[Expr | _Copies, int, int]] = []
        self._handlers: dict[type, Callable[..., None]] = {
            Bytes: self._bytes,
            Lit: self._literal,
            Chars: self._chars,
            Seq: self._sequence,
            Alt: self._alternatives,
            Repeat: self._repeat,
            _Copies: self._copies,
            And: self._product,
            Minus: self._product,
            Erase: self._product,
            Members: self._members,
            Ref: self._ref,
        }

    def build(self, expr: Expr) -> int:
        """Build the automaton of `expr` and all it calls; the state where it starts."""
        start, end = self.graph.new_state(), self.graph.new_state()
        self.graph.states[end].is_end = True
        self._work.append((expr, start, end))
        while self._work:
            part, source, target = self._work.pop()
            self._handlers[type(part)](part, source, target)
        return start

    def _connect(self, expr: Expr | _Copies, source: int, target: int) -> None:
        """Plan paths for `expr` from `source` to `target`."""
        if not self._flat and not isinstance(expr, _Copies):
            expr = self._analysis.target(expr)
            if self._analysis.is_region(expr):
                self._call(expr, source, target)
                return
        self._work.append((expr, source, target))

    def _call(self, expr: Expr, source: int, target: int) -> None:
        self.graph.states[source].calls.append((self._region(expr), target))
        if self._analysis.accepts_empty(expr):
            self.graph.states[source].empty.append(target)

    def _region(self, expr: Expr) -> int:
        region = self._region_ids.get(id(expr))
        if region is None:
            start, end = self.graph.new_state(), self.graph.new_state()
            self.graph.states[end].is_end = True
            region = self._region_ids[id(expr)] = self.graph.new_region(start)
            self._work.append((expr, start, end))
        return region

    def _bytes(self, expr: Bytes, source: int, target: int) -> None:
        self.graph.add_edge(source, expr.mask & self._alphabet, target)

    def _literal(self, expr: Lit, source: int, target: int) -> None:
        self._literal_move(expr.data, source, target)

    def _literal_move(self, data: bytes, source: int, target: int) -> None:
        if not all(self._alphabet >> value & 1 for value in set(data)):
            return
        if not data:
            self.graph.states[source].empty.append(target)
        elif len(data) == 1 or self._flat:
            for value in data[:-1]:
                after = self.graph.new_state()
                self.graph.add_edge(source, 1 << value, after)
                source = after
            self.graph.add_edge(source, 1 << data[-1], target)
        else:
            self.graph.states[source].literals.append((data, target))

    def _chars(self, expr: Chars, source: int, target: int) -> None:
        tree = self._trees.get(expr.ranges)
        if tree is None:
            tree = self._trees[expr.ranges] = byte_tree(expr.ranges)
        self._tree_moves(tree, source, target, {(): target})

    def _tree_moves(
        self, tree: ByteTree, source: int, target: int, built: dict[ByteTree, int]
    ) -> None:
        """The moves of a UTF-8 tree (at most four levels deep); equal tails share their states."""
        masks: dict[ByteTree, int] = {}
        for (low, high), tail in tree:
            masks[tail] = masks.get(tail, 0) | ((1 << (high + 1)) - (1 << low))
        for tail, mask in masks.items():
            if not mask & self._alphabet:
                continue
            after = built.get(tail)
            if after is None:
                after = built[tail] = self.graph.new_state()
                self._tree_moves(tail, after, target, built)
            self.graph.add_edge(source, mask & self._alphabet, after)

    def _sequence(self, expr: Seq, source: int, target: int) -> None:
        if not expr.items:
            self.graph.states[source].empty.append(target)
            return
        for item in expr.items[:-1]:
            after = self.graph.new_state()
            self._connect(item, source, after)
            source = after
        self._connect(expr.items[-1], source, target)

    def _alternatives(self, expr: Alt, source: int, target: int) -> None:
        texts = [item.data for item in expr.items if isinstance(item, Lit)]
        for item in expr.items:
            if len(texts) < 2 or not isinstance(item, Lit):
                self._connect(item, source, target)
        if len(texts) >= 2:
            self._radix_tree(sorted(set(texts)), source, target)

    def _radix_tree(self, texts: list[bytes], source: int, target: int) -> None:
        """Paths for the sorted, distinct `texts`; common beginnings share their states."""
        work = [
            (0, len(texts), 0, source)
        ]  # texts[first:last] agree in their first `depth` bytes, read up to `state`
        while work:
            first, last, depth, state = work.pop()
            if len(texts[first]) == depth:
                self._literal_move(b"", state, target)
                first += 1
            while first < last:
                group_end = first
                head = texts[first][depth]
                while group_end < last and texts[group_end][depth] == head:
                    group_end += 1
                if group_end == first + 1:
                    self._literal_move(texts[first][depth:], state, target)
                else:
                    shared = _common_length(texts[first], texts[group_end - 1])
                    after = self.graph.new_state()
                    self._literal_move(texts[first][depth:shared], state, after)
                    work.append((first, group_end, shared, after))
                first = group_end

    def _repeat(self, expr: Repeat, source: int, target: int) -> None:
        if self._flat or not self._analysis.is_counted(expr):
            self._copies(_Copies(expr.item, expr.lo, expr.hi), source, target)
            return
        item = self._analysis.target(expr.item)
        lo = 0 if self._analysis.accepts_empty(item) else expr.lo
        self.graph.loops.append(Loop(self._region(item), max(lo, 1), expr.hi, target))
        self.graph.states[source].loops.append(len(self.graph.loops) - 1)
        if lo == 0:
            self.graph.states[source].empty.append(target)

    def _copies(self, expr: _Copies, source: int, target: int) -> None:
        """One copy now, the rest later: work stays linear and states are counted as they come."""
        if expr.hi == 0:
            self.graph.states[source].empty.append(target)
        elif expr.hi is None and expr.lo <= 1:
            before, after = self.graph.new_state(), self.graph.new_state()
            self.graph.states[source].empty.append(before)
            self._connect(expr.item, before, after)
            self.graph.states[after].empty += [before, target]
            if expr.lo == 0:
                self.graph.states[source].empty.append(target)
        elif expr.hi == 1:
            self._connect(expr.item, source, target)
            if expr.lo == 0:
                self.graph.states[source].empty.append(target)
        else:
            after = self.graph.new_state()
            self._connect(expr.item, source, after)
            if expr.lo == 0:
                self.graph.states[source].empty.append(target)
            rest = _Copies(expr.item, max(expr.lo - 1, 0), None if expr.hi is None else expr.hi - 1)
            self._connect(rest, after, target)

    def _product(self, expr: And | Minus | Erase, source: int, target: int) -> None:
        dfa = self._products[id(expr)]
        states = [self.graph.new_state() for _ in dfa.rows]
        if states:
            self.graph.states[source].empty.append(states[0])
        for state, row, is_accepting in zip(states, dfa.rows, dfa.accepting, strict=True):
            for mask, after in row:
                self.graph.add_edge(state, mask & self._alphabet, states[after])
            if is_accepting:
                self.graph.states[state].empty.append(target)

    def _members(self, expr: Members, source: int, target: int) -> None:
        self._analysis.check_members(expr)
        rules = member_set(expr)
        if expr.lo == 0 and any(not clause.needs for clause in expr.clauses):
            self.graph.states[source].empty.append(target)
        if expr.hi == 0 or not rules.num_items or not rules.clauses:
            return
        members = tuple(self._region(self._analysis.target(item.text)) for item in expr.items)
        separator = -1
        if expr.separator != EMPTY:
            separator = self._region(self._analysis.target(expr.separator))
        self.graph.sets.append(SetMove(members, separator, rules, target))
        self.graph.states[source].sets.append(len(self.graph.sets) - 1)

    def _ref(self, expr: Ref, source: int, target: int) -> None:
        self._connect(self._analysis.rule(expr), source, target)


def member_set(expr: Members) -> MemberSet:
    """The rules of at least one member, as numbers."""

    def bits(items: frozenset[int]) -> int:
        return sum(1 << item for item in items)

    return MemberSet(
        len(expr.items),
        bits(frozenset(i for i, item in enumerate(expr.items) if item.is_run)),
        tuple(
            (bits(clause.needs), bits(clause.bars))
            for clause in expr.clauses
            if not clause.needs & clause.bars
        ),
        max(expr.lo, 1),
        expr.hi,
        expr.is_ordered,
    )


def _common_length(left: bytes, right: bytes) -> int:
    length = min(len(left), len(right))
    for index in range(length):
        if left[index] != right[index]:
            return index
    return length
