"""A shape: one conjunction of simple constraints, sorted by the kind of value they speak of.

Owns the data type and how single facts narrow it. A schema is a disjunction of shapes (see `normal`). Constraints on parts of a value
(items, properties) stay conjunctions of schemas, to be normalised when the part is reached, so recursion is no matter here. Knows
nothing of keywords.

The kinds partition all JSON values; `integer` and `fraction` split the numbers into whole ones and the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from ...expr import Expr
from .document import Node
from .numbers import NumberSet
from .source import Json, value_key

NULL, BOOLEAN, INTEGER, FRACTION, STRING, ARRAY, OBJECT = (1 << i for i in range(7))
NUMBER = INTEGER | FRACTION
ALL_KINDS = (1 << 7) - 1


class Atom(NamedTuple):
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


@dataclass(frozen=True, slots=True)
class ItemRule:
    """What one schema says of items: the first ones by position, the rest alike."""

    prefix: tuple[Conj, ...]
    rest: Conj


@dataclass(frozen=True, slots=True)
class Contains:
    """From `low` to `high` (None: no bound) items satisfy `what`."""

    what: Conj
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class PropertyRule:
    """What one schema says of properties: by name, by pattern, and of those that neither names."""

    named: dict[str, Conj]
    patterns: tuple[tuple[Expr, Conj], ...]
    others: Conj


@dataclass(slots=True)
class Shape:
    """One conjunction. Facts about a kind that `kinds` lacks say nothing."""

    kinds: int = ALL_KINDS
    values: dict[object, Json] | None = None  # enum: the only values, by key
    excluded: dict[object, Json] = field(default_factory=dict[object, "Json"])
    numbers: NumberSet = field(default_factory=NumberSet)
    min_length: int = 0
    max_length: int | None = None
    languages: list[Expr] = field(default_factory=list[Expr])
    not_languages: list[Expr] = field(default_factory=list[Expr])
    item_rules: list[ItemRule] = field(default_factory=list[ItemRule])
    min_items: int = 0
    max_items: int | None = None
    contains: list[Contains] = field(default_factory=list[Contains])
    unique_at: str = ""  # the pointer of uniqueItems: true
    property_rules: list[PropertyRule] = field(default_factory=list[PropertyRule])
    rule_places: list[Place] = field(
        default_factory=list["Place"]
    )  # of property_rules, in the order of the schema's text
    required: dict[str, None] = field(default_factory=dict[str, None])
    names: Conj = ()
    min_properties: int = 0
    max_properties: int | None = None
    some_property: list[tuple[PropertyRule, int, Conj]] = field(
        default_factory=list[tuple[PropertyRule, int, Conj]]
    )
    pointer: str = "#"  # of a schema that narrowed it, for errors
    place: Place = ()  # of the keyword whose facts are being applied

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
            self.names,
            self.min_properties,
            self.max_properties,
            list(self.some_property),
            self.pointer,
            self.place,
        )

    def settle_order(self) -> None:
        """Put the rules on properties in the order in which the schema's text has them."""
        if len(self.property_rules) > 1:
            order = sorted(range(len(self.rule_places)), key=self.rule_places.__getitem__)
            self.property_rules = [self.property_rules[i] for i in order]
            self.rule_places = [self.rule_places[i] for i in order]

    @property
    def is_contradictory(self) -> bool:
        """Is it plain already that nothing satisfies this?"""
        return self.kinds == 0 or (self.values is not None and not self.values)


Fact = Callable[[Shape], None]
"""One constraint, as what it does to a shape."""


def kinds(mask: int) -> Fact:
    """Only values of these kinds."""

    def apply(shape: Shape) -> None:
        shape.kinds &= mask

    return apply


def one_of(values: Sequence[Json]) -> Fact:
    """Only these values."""
    table = {value_key(v): v for v in values}

    def apply(shape: Shape) -> None:
        old = shape.values
        shape.values = dict(table) if old is None else {k: v for k, v in old.items() if k in table}

    return apply


def none_of(values: Sequence[Json]) -> Fact:
    """None of these values."""

    def apply(shape: Shape) -> None:
        for value in values:
            shape.excluded[value_key(value)] = value

    return apply


def numbers(change: Callable[[NumberSet], NumberSet]) -> Fact:
    """A change of the set of numbers."""

    def apply(shape: Shape) -> None:
        shape.numbers = change(shape.numbers)
        if shape.numbers.is_empty:
            shape.kinds &= ~NUMBER

    return apply


def bound(value: Decimal | int, *, lower: bool, is_open: bool) -> Fact:
    """A bound of numbers."""
    limit = Decimal(value)
    return numbers(lambda n: n.above(limit, is_open) if lower else n.below(limit, is_open))


def length(low: int, high: int | None) -> Fact:
    """Strings of `low` to `high` characters."""

    def apply(shape: Shape) -> None:
        shape.min_length = max(shape.min_length, low)
        shape.max_length = _lesser(shape.max_length, high)
        if shape.max_length is not None and shape.max_length < shape.min_length:
            shape.kinds &= ~STRING

    return apply


def language(text: Expr, *, inside: bool) -> Fact:
    """Strings of a language of decoded characters, or outside it."""

    def apply(shape: Shape) -> None:
        (shape.languages if inside else shape.not_languages).append(text)

    return apply


def item_count(low: int, high: int | None) -> Fact:
    """Arrays of `low` to `high` items."""

    def apply(shape: Shape) -> None:
        shape.min_items = max(shape.min_items, low)
        shape.max_items = _lesser(shape.max_items, high)
        if shape.max_items is not None and shape.max_items < shape.min_items:
            shape.kinds &= ~ARRAY

    return apply


def items(rule: ItemRule) -> Fact:
    """A rule on items."""
    return lambda shape: shape.item_rules.append(rule)


def contains(rule: Contains) -> Fact:
    """A number of items of one sort."""
    return lambda shape: shape.contains.append(rule)


def unique(pointer: str) -> Fact:
    """No two items are equal."""

    def apply(shape: Shape) -> None:
        shape.unique_at = pointer

    return apply


def properties(rule: PropertyRule) -> Fact:
    """A rule on properties."""

    def apply(shape: Shape) -> None:
        shape.property_rules.append(rule)
        shape.rule_places.append(shape.place)

    return apply


def some_property(rule: PropertyRule, part: int, what: Conj) -> Fact:
    """Some property that falls to part `part` of `rule` (a pattern's index, or -1: the others) satisfies `what`."""
    return lambda shape: shape.some_property.append((rule, part, what))


def require(names: Sequence[str]) -> Fact:
    """These properties are present."""

    def apply(shape: Shape) -> None:
        shape.required.update(dict.fromkeys(names))

    return apply


def property_names(what: Conj) -> Fact:
    """Every property name satisfies `what`."""

    def apply(shape: Shape) -> None:
        shape.names = meet(shape.names, what)

    return apply


def property_count(low: int, high: int | None) -> Fact:
    """Objects of `low` to `high` properties."""

    def apply(shape: Shape) -> None:
        shape.min_properties = max(shape.min_properties, low)
        shape.max_properties = _lesser(shape.max_properties, high)
        if shape.max_properties is not None and shape.max_properties < shape.min_properties:
            shape.kinds &= ~OBJECT

    return apply


def _lesser(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)
