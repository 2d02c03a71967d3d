"""A shape: one conjunction of simple constraints, sorted by the kind of value they speak of.

Owns the data type and how single constraints narrow it. A schema is a disjunction of shapes (see `normal`). Constraints on parts of a value
(items, properties) stay conjunctions of schemas, to be normalised when the part is reached, so recursion is no matter here. Knows
nothing of keywords.

The kinds partition all JSON values; `integer` and `fraction` split the numbers into whole ones and the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal

from msgspec import Struct

from ...expr import Expr
from .document import Node
from .numbers import NumberSet
from .source import Json, value_key

NULL, BOOLEAN, INTEGER, FRACTION, STRING, ARRAY, OBJECT = (1 << i for i in range(7))
NUMBER = INTEGER | FRACTION
ALL_KINDS = (1 << 7) - 1


class Atom(Struct, frozen=True):
    """A schema, or its complement."""

    node: Node
    positive: bool


Conj = tuple[Atom, ...]
"""Everything a value must satisfy; the order is that of appearance and decides the order of properties."""


Place = tuple[int, ...]
"""Where a keyword stands, reading the schema from its top: positions of keywords and branches, outermost first."""


def meet(*parts: Conj) -> Conj:
    """The conjunction of conjunctions, each atom once."""
    return tuple(dict.fromkeys(atom for part in parts for atom in part))


class ItemRule(Struct, frozen=True):
    """What one schema says of items: the first ones by position, the rest alike."""

    prefix: tuple[Conj, ...]
    rest: Conj


class Contains(Struct, frozen=True):
    """From `low` to `high` (None: no bound) of the items at `start` and beyond satisfy `what`."""

    what: Conj
    low: int
    high: int | None
    start: int = 0


class PropertyRule(Struct, frozen=True):
    """What one schema says of properties: by name, by pattern, and of those that neither names."""

    named: dict[str, Conj]
    patterns: tuple[tuple[Expr, Conj], ...]
    others: Conj


_ALL_NUMBERS = NumberSet()


class Shape(Struct):
    """One conjunction. Constraints on a kind that `kinds` lacks say nothing."""

    kinds: int = ALL_KINDS
    values: dict[object, Json] | None = None  # enum: the only values, by key
    excluded: dict[object, Json] = {}
    numbers: NumberSet = _ALL_NUMBERS
    min_length: int = 0
    max_length: int | None = None
    languages: list[Expr] = []
    not_languages: list[Expr] = []
    item_rules: list[ItemRule] = []
    min_items: int = 0
    max_items: int | None = None
    contains: list[Contains] = []
    unique_at: str = ""  # the pointer of uniqueItems: true
    property_rules: list[PropertyRule] = []
    # of property_rules, in the order of the schema's text
    rule_places: list[Place] = []
    required: dict[str, None] = {}
    absent: dict[str, None] = {}  # names that must not come
    names: Conj = ()
    min_properties: int = 0
    max_properties: int | None = None
    # some property that falls to a part of a rule (a pattern's index, or -1: the others) satisfies a conjunction
    some_property: list[tuple[PropertyRule, int, Conj]] = []
    pointer: str = "#"  # of a schema that narrowed it, for errors

    def copy(self) -> Shape:
        """An independent copy."""
        return Shape(
            self.kinds,
            None if self.values is None else dict(self.values),
            dict(self.excluded),
            self.numbers,
            self.min_length,
            self.max_length,
            list(self.languages),
            list(self.not_languages),
            list(self.item_rules),
            self.min_items,
            self.max_items,
            list(self.contains),
            self.unique_at,
            list(self.property_rules),
            list(self.rule_places),
            dict(self.required),
            dict(self.absent),
            self.names,
            self.min_properties,
            self.max_properties,
            list(self.some_property),
            self.pointer,
        )

    @property
    def is_contradictory(self) -> bool:
        """Is it plain already that nothing satisfies this?"""
        return self.kinds == 0 or (self.values is not None and not self.values)

    def settle(self) -> None:
        """Put the rules on properties in the order in which the schema's text has them, and keep equal rules once."""
        if len(self.property_rules) > 1:
            order = sorted(range(len(self.rule_places)), key=self.rule_places.__getitem__)
            places = {id(self.property_rules[i]): i for i in reversed(order)}
            order = [i for i in order if places[id(self.property_rules[i])] == i]
            self.property_rules = [self.property_rules[i] for i in order]
            self.rule_places = [self.rule_places[i] for i in order]
        if len(self.item_rules) > 1:
            self.item_rules = list({id(rule): rule for rule in self.item_rules}.values())
        if len(self.contains) > 1:
            self.contains = list(dict.fromkeys(self.contains))
        if len(self.languages) > 1:
            self.languages = list({id(text): text for text in self.languages}.values())

    def presence_key(self) -> Hashable:
        """Equal for two shapes if they differ at most in the names that must come and must not."""
        return (
            self.kinds,
            None if self.values is None else frozenset(self.values),
            frozenset(self.excluded),
            self.numbers,
            (self.min_length, self.max_length, self.min_items, self.max_items),
            frozenset(map(id, self.languages)),
            frozenset(map(id, self.not_languages)),
            frozenset(map(id, self.item_rules)),
            frozenset(self.contains),
            bool(self.unique_at),
            frozenset(map(id, self.property_rules)),
            frozenset(self.names),
            (self.min_properties, self.max_properties),
            frozenset((id(rule), part, what) for rule, part, what in self.some_property),
        )

    # ------------------------------------------------------------------------------------------ any value

    def only(self, values: dict[object, Json]) -> None:
        """Only these values, by key."""
        old = self.values
        self.values = values if old is None else {k: v for k, v in old.items() if k in values}

    def exclude(self, values: Iterable[Json]) -> None:
        """None of these values."""
        self.excluded.update((value_key(value), value) for value in values)

    # ------------------------------------------------------------------------------------------ numbers and strings

    def narrow_numbers(self, change: Callable[[NumberSet], NumberSet]) -> None:
        """A change of the set of numbers."""
        self.numbers = change(self.numbers)
        if self.numbers.is_empty:
            self.kinds &= ~NUMBER

    def bound(self, value: Decimal | int, *, lower: bool, is_open: bool) -> None:
        """A bound of numbers."""
        limit = Decimal(value)
        numbers = self.numbers
        self.numbers = numbers.above(limit, is_open) if lower else numbers.below(limit, is_open)
        if self.numbers.is_empty:
            self.kinds &= ~NUMBER

    def limit_length(self, low: int, high: int | None) -> None:
        """Strings of `low` to `high` characters."""
        self.min_length = max(self.min_length, low)
        self.max_length = _lesser(self.max_length, high)
        if self.max_length is not None and self.max_length < self.min_length:
            self.kinds &= ~STRING

    # ------------------------------------------------------------------------------------------ arrays

    def limit_items(self, low: int, high: int | None) -> None:
        """Arrays of `low` to `high` items."""
        self.min_items = max(self.min_items, low)
        self.max_items = _lesser(self.max_items, high)
        if self.max_items is not None and self.max_items < self.min_items:
            self.kinds &= ~ARRAY

    # ------------------------------------------------------------------------------------------ objects

    def require(self, names: Iterable[str]) -> None:
        """These properties are present."""
        self.required.update(dict.fromkeys(names))
        if self.absent and not self.absent.keys().isdisjoint(self.required):
            self.kinds &= ~OBJECT

    def forbid(self, name: str) -> None:
        """This property is not present."""
        self.absent[name] = None
        if name in self.required:
            self.kinds &= ~OBJECT

    def limit_properties(self, low: int, high: int | None) -> None:
        """Objects of `low` to `high` properties."""
        self.min_properties = max(self.min_properties, low)
        self.max_properties = _lesser(self.max_properties, high)
        if self.max_properties is not None and self.max_properties < self.min_properties:
            self.kinds &= ~OBJECT


Fact = Callable[[Shape], None]
"""One constraint, as what it does to a shape."""


def _lesser(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)
