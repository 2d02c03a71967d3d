"""Arrays whose items all differ (`uniqueItems`), where that can be said of texts.

Owns the cases: positions that no value can share need nothing; finite sets of values are members that come once each; values that two
positions share are told apart by what came before. Everything else is refused. Knows nothing of white space or keywords; the rules of
items come from the builder.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations, product
from math import comb
from typing import TYPE_CHECKING

from ....errors import GrammarError
from ...expr import NEVER, Clause, Expr, Member, Members, alt, seq
from .layout import perhaps
from .shape import BOOLEAN, INTEGER, NULL, Conj, Contains, Shape, meet
from .source import Json, value_key

if TYPE_CHECKING:
    from .builder import Builder

_MAX_VALUES = 1000  # values of a set whose members come once each
_MAX_COMBINATIONS = 1000  # (position, shared values used before it) pairs
_MAX_CLAUSES = 256  # ways to choose the items that `contains` counts

Values = dict[object, Json]


class DistinctItems:
    """The items of one array shape, at `level`."""

    def __init__(self, builder: Builder, shape: Shape, level: int) -> None:
        self._builder = builder
        self._shape = shape
        self._level = level
        self._comma = builder.layout.comma(level)
        self._texts: dict[object, Expr] = {}
        self._known: dict[tuple[int, frozenset[object]], Expr] = {}

    def write(self, prefix: list[Conj], rest: Conj, low: int, high: int | None) -> Expr:
        """`low` (at least 1) to `high` different items."""
        ends = high is not None and high <= len(prefix) + 1
        if ends:
            prefix = [*prefix, rest][:high]
        self._positions = [(what, self._finite(what)) for what in prefix]
        self._rest: Values = {}
        if not ends:
            values = self._finite(rest)
            if values is None:
                raise self._refusal("items that are no small set of values")
            self._rest = values
        self._low, self._high = low, high
        if self._shape.contains:
            if prefix or any(rule.start for rule in self._shape.contains):
                raise self._refusal("contains where the place of an item matters")
            return self._rest_items(0, frozenset())
        self._check_positions(rest, ends=ends)
        self._later = self._values_from()
        return self._from(0, frozenset())

    def _refusal(self, what: str) -> GrammarError:
        return GrammarError(
            f"uniqueItems is not supported for {what}",
            place=self._shape.unique_at,
            keyword="uniqueItems",
        )

    # ------------------------------------------------------------------------------------------ positions

    def _check_positions(self, rest: Conj, *, ends: bool) -> None:
        """GrammarError where an infinite set of values shares one with another position."""
        sets = [*self._positions, *([] if ends else [(rest, self._rest)])]
        for (a, in_a), (b, in_b) in combinations(sets, 2):
            if (in_a is None or in_b is None) and not self._are_disjoint(a, in_a, b, in_b):
                raise self._refusal("positions that may share values without end")

    def _are_disjoint(self, a: Conj, in_a: Values | None, b: Conj, in_b: Values | None) -> bool:
        normaliser = self._builder.normaliser
        if in_a is None and in_b is None:
            return normaliser.is_empty(meet(a, b), 2)
        what, values = (a, in_b) if in_a is None else (b, in_a)
        return not any(normaliser.membership.satisfies(what, v) for v in (values or {}).values())

    def _values_from(self) -> list[frozenset[object]]:
        """For each position, the values of the finite sets there and beyond."""
        later = frozenset(self._rest)
        result = [later]
        for _, values in reversed(self._positions):
            later |= frozenset(values or ())
            result.append(later)
        return result[::-1]

    def _from(self, position: int, used: frozenset[object]) -> Expr:
        """The items from `position` on; `used` are the values that came before and could come again."""
        key = (position, used)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MAX_COMBINATIONS:
                raise self._refusal(f"positions with more than {_MAX_COMBINATIONS} combinations")
            found = self._known[key] = self._work_out(position, used)
        return found

    def _work_out(self, position: int, used: frozenset[object]) -> Expr:
        if position == len(self._positions):
            text = self._rest_items(position, used)
        else:
            text = self._item(position, used)
        if position and text != NEVER:
            text = seq(self._comma, text)
        return perhaps(text) if position >= self._low else text

    def _item(self, position: int, used: frozenset[object]) -> Expr:
        what, values = self._positions[position]
        later = self._later[position + 1]
        if values is None:
            item = self._builder.call(what, self._level)
            return seq(item, self._from(position + 1, used & later))
        choices: dict[frozenset[object], list[Expr]] = {}
        for key, value in values.items():
            if key not in used:
                after = (used | {key}) & later
                choices.setdefault(after, []).append(self._text(key, value))
        return alt(
            *(seq(alt(*texts), self._from(position + 1, after)) for after, texts in choices.items())
        )

    # ------------------------------------------------------------------------------------------ a finite set

    def _rest_items(self, position: int, used: frozenset[object]) -> Expr:
        """The items beyond the prefix, at least one."""
        values = {key: value for key, value in self._rest.items() if key not in used}
        low = max(self._low - position, 1)
        high = None if self._high is None else self._high - position
        if low > len(values) or high == 0:
            return NEVER
        texts = [self._text(key, value) for key, value in values.items()]
        if high is not None and high >= len(texts):
            high = None
        clauses = self._clauses(list(values.values()))
        if len(texts) == 1 and clauses == (Clause(),):
            return texts[0]
        if not clauses:
            return NEVER
        return Members(tuple(map(Member, texts)), self._comma, low, high, clauses)

    def _text(self, key: object, value: Json) -> Expr:
        found = self._texts.get(key)
        if found is None:
            found = self._texts[key] = self._builder.constants.text(value, self._level)
        return found

    def _clauses(self, values: list[Json]) -> tuple[Clause, ...]:
        """`contains` as conditions on the values that are there."""
        choices = [self._choices(rule, values) for rule in self._shape.contains]
        total = 1
        for one in choices:
            total *= len(one)
        if total > _MAX_CLAUSES:
            raise self._many_ways()
        joined = (
            Clause(
                frozenset(i for clause in chosen for i in clause.needs),
                frozenset(i for clause in chosen for i in clause.bars),
            )
            for chosen in product(*choices)
        )
        return tuple(dict.fromkeys(c for c in joined if not c.needs & c.bars))

    def _choices(self, rule: Contains, values: list[Json]) -> list[Clause]:
        """One rule: which of the values it counts are needed, and which are barred."""
        satisfies = self._builder.normaliser.membership.satisfies
        counted = [i for i, value in enumerate(values) if satisfies(rule.what, value)]
        high = len(counted) if rule.high is None else min(rule.high, len(counted))
        if rule.low > high:
            return []
        num_ways = comb(len(counted), rule.low) * comb(len(counted), high)
        if num_ways > _MAX_CLAUSES**2:
            raise self._many_ways()
        return [
            Clause(frozenset(needed), frozenset(counted) - frozenset(allowed))
            for allowed in combinations(counted, high)
            for needed in combinations(allowed, rule.low)
        ]

    def _many_ways(self) -> GrammarError:
        return self._refusal(f"contains with more than {_MAX_CLAUSES} choices of values")

    def _finite(self, what: Conj) -> Values | None:
        """All values of a conjunction that has few, or None."""
        values: Values = {}
        for shape in self._builder.normaliser.shapes(what):
            found = _values_of(shape)
            if found is None:
                return None
            values.update(found)
        return values if len(values) <= _MAX_VALUES else None


def _values_of(shape: Shape) -> Values | None:
    if shape.values is not None:
        return shape.values
    if shape.kinds & ~(NULL | BOOLEAN | INTEGER):
        return None
    candidates: list[Json] = [None] if shape.kinds & NULL else []
    if shape.kinds & BOOLEAN:
        candidates += [False, True]
    if shape.kinds & INTEGER:
        low, high = shape.numbers.whole_bounds()
        if low is None or high is None or high - low >= _MAX_VALUES:
            return None
        candidates += [n for n in range(low, high + 1) if shape.numbers.holds(Decimal(n))]
    found = {value_key(value): value for value in candidates}
    return {key: value for key, value in found.items() if key not in shape.excluded}
