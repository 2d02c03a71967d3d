"""Array shapes as text: items by position, counts, contains.

Owns which combinations of rules on items can be written; items that must differ are owned by `distinct`, white space by `layout`. Knows
nothing of keywords; the rules of the items themselves come from the builder.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from ....errors import GrammarError
from ...expr import EMPTY, NEVER, Clause, Expr, Member, Members, alt, repeat, seq
from .distinct import DistinctItems
from .layout import SQUARE, perhaps
from .membership import item_conj
from .reading import opposite
from .shape import Atom, Conj, Contains, Shape, meet

if TYPE_CHECKING:
    from .builder import Builder

_MAX_STEPS = 20_000  # (position, counts, sort of item) triples of arrays with contains


class ArrayWriter:
    """Writes the array part of shapes."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def write(self, shape: Shape, level: int) -> Expr:
        """Texts, at `level`, of the arrays of a shape."""
        layout = self._builder.layout
        may_be_empty = shape.min_items == 0 and not any(rule.low for rule in shape.contains)
        inner = NEVER if layout.is_full(level) else self._filled(shape, layout.inside(level))
        return layout.wrap(SQUARE, level, inner, may_be_empty=may_be_empty)

    def _filled(self, shape: Shape, level: int) -> Expr:
        """What stands between the brackets of the arrays that have an item; items are at `level`."""
        prefix = [
            item_conj(shape, i)
            for i in range(max((len(r.prefix) for r in shape.item_rules), default=0))
        ]
        rest = item_conj(shape, len(prefix))
        low, high = max(shape.min_items, 1), shape.max_items
        for index, what in enumerate([*prefix, rest]):
            if self._builder.is_surely_empty(what):
                high = index if high is None else min(high, index)
                break
        if high is not None and high < low:
            return NEVER
        try:
            if shape.unique_at and (high is None or high > 1):
                return DistinctItems(self._builder, shape, level).write(prefix, rest, low, high)
            if shape.contains:
                counted = _Containing(self._builder, shape.contains, prefix, rest, level)
                return counted.write(low, high)
        except GrammarError as error:
            error.place = error.place or shape.pointer
            self._builder.go_without(error)
        return self._plain(prefix, rest, low, high, level)

    def _plain(
        self, prefix: list[Conj], rest: Conj, low: int, high: int | None, level: int
    ) -> Expr:
        call, comma = self._builder.call, self._builder.layout.comma(level)
        num_prefix = len(prefix) if high is None else min(len(prefix), high)
        tail: Expr = EMPTY
        if high is None or high > num_prefix:
            item = call(rest, level)
            fewest = max(low - num_prefix, 0)
            most = None if high is None else high - num_prefix
            if num_prefix:
                tail = repeat(seq(comma, item), fewest, most)
            else:
                tail = seq(
                    item, repeat(seq(comma, item), fewest - 1, None if most is None else most - 1)
                )
        for index in range(num_prefix - 1, -1, -1):
            item = call(prefix[index], level)
            tail = seq(comma, item, tail) if index else seq(item, tail)
            if index >= low:
                tail = perhaps(tail)
        return tail


class _Containing:
    """Arrays by position and by how many items each rule has met so far; both stop counting where no more matters."""

    def __init__(
        self, builder: Builder, rules: list[Contains], prefix: list[Conj], rest: Conj, level: int
    ) -> None:
        self._builder = builder
        self._rules = rules
        self._caps = [rule.low if rule.high is None else rule.high for rule in rules]
        self._prefix = prefix
        self._rest = rest
        self._level = level
        self._comma = builder.layout.comma(level)

    def write(self, low: int, high: int | None) -> Expr:
        """`low` (at least 1) to `high` items."""
        if self._wants_one and max(low, high or 0) > 1:
            return self._some_item(low, high)
        first = max(rule.start for rule in self._rules)
        last = max(len(self._prefix), low, first) if high is None else high
        num_steps = (last + 1) * 2 ** len(self._rules)
        for cap in self._caps:
            num_steps *= cap + 1
        if num_steps > _MAX_STEPS:
            raise GrammarError(
                f"contains with these counts needs more than {_MAX_STEPS} steps", keyword="contains"
            )
        table: dict[tuple[int, tuple[int, ...]], Expr] = {}
        for position in range(last, -1, -1):
            for counts in sorted(product(*(range(cap + 1) for cap in self._caps)), reverse=True):
                table[position, counts] = self._from(
                    position, counts, table, (low, last, high is None)
                )
        return table[0, (0,) * len(self._rules)]

    @property
    def _wants_one(self) -> bool:
        """Is the only rule that some item is of a sort, wherever it stands?"""
        return (
            len(self._rules) == 1
            and not self._prefix
            and self._rules[0] == Contains(self._rules[0].what, 1, None)
        )

    def _some_item(self, low: int, high: int | None) -> Expr:
        """Items of the sort and other ones, any number of both, but at least one of the first."""
        sort = meet(self._rest, self._rules[0].what)
        if self._builder.is_surely_empty(sort):
            return NEVER
        items = [
            Member(self._builder.call(what, self._level), is_run=True)
            for what in (sort, self._rest)
        ]
        return Members(tuple(items), self._comma, low, high, (Clause(frozenset((0,))),))

    def _from(
        self,
        position: int,
        counts: tuple[int, ...],
        table: dict[tuple[int, tuple[int, ...]], Expr],
        span: tuple[int, int, bool],
    ) -> Expr:
        """What may follow `position` items of which `counts` were met."""
        low, last, is_open = span
        what = self._prefix[position] if position < len(self._prefix) else self._rest
        is_met = all(c >= rule.low for c, rule in zip(counts, self._rules, strict=True))
        parts: list[Expr] = [EMPTY] if is_met and position >= low else []
        loop: list[Expr] = []
        if position < last or is_open:
            comma = self._comma if position else EMPTY
            for after, sort in self._sorts(position, what, counts):
                item = self._builder.call(sort, self._level)
                if position < last:
                    parts.append(seq(comma, item, table[position + 1, after]))
                elif after == counts:
                    loop.append(seq(comma, item))
                else:
                    parts.append(seq(comma, item, table[position, after]))
        return seq(repeat(alt(*loop), 0, None), alt(*parts)) if loop else alt(*parts)

    def _sorts(
        self, position: int, what: Conj, counts: tuple[int, ...]
    ) -> list[tuple[tuple[int, ...], Conj]]:
        """For each way an item can meet rules: the counts after it, and what it must satisfy."""
        sorts: list[tuple[tuple[int, ...], Conj]] = []
        choices = [(False, True) if position >= rule.start else (False,) for rule in self._rules]
        for met in product(*choices):
            after: list[int] = []
            parts: list[Conj] = [what]
            for hit, count, cap, rule in zip(met, counts, self._caps, self._rules, strict=True):
                if hit:
                    parts.append(rule.what)
                elif rule.high is not None and position >= rule.start:
                    parts.append(self._outside(rule.what))
                after.append(count + 1 if hit else count)
                if after[-1] > cap:
                    # beyond a lower bound nothing is counted; beyond an upper one nothing is left
                    after[-1] = cap if rule.high is None else -1
            sort = meet(*parts)
            if -1 not in after and not self._builder.is_surely_empty(sort):
                sorts.append((tuple(after), sort))
        return sorts

    def _outside(self, what: Conj) -> Conj:
        if len(what) == 1:
            return (opposite(what[0]),)
        if not what:
            return (Atom(self._builder.normaliser.document.never, True),)
        raise GrammarError("contains of a combined schema cannot be excluded", keyword="contains")
