"""Does a value satisfy a shape, or a conjunction of schemas?

Owns the evaluation of shapes on parsed JSON values, and which rules fall to an item or property. Used to filter the values of an enum by
everything that stands beside it. Knows nothing of text or keywords.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Protocol, cast

from ...expr import Expr
from . import shape as s
from .code_points import accepts
from .document import Node
from .shape import Conj, PropertyRule, Shape, meet
from .source import Json, value_key


class _Shapes(Protocol):
    def __call__(self, conj: Conj, *, loose: bool = False) -> tuple[Shape, ...]: ...


def kind_of(value: Json) -> int:
    """The kind of a JSON value."""
    if value is None:
        return s.NULL
    if isinstance(value, bool):
        return s.BOOLEAN
    if isinstance(value, str):
        return s.STRING
    if isinstance(value, list):
        return s.ARRAY
    if isinstance(value, dict):
        return s.OBJECT
    return s.INTEGER if value == int(value) else s.FRACTION


class Membership:
    """Evaluation over the shapes that `shapes` gives for a conjunction."""

    def __init__(self, shapes: _Shapes) -> None:
        self._shapes = shapes
        self._matches: dict[tuple[int, str], bool] = {}
        self._by_kind: dict[int, Callable[[Shape, Json, bool], bool]] = {
            s.INTEGER: self._number,
            s.FRACTION: self._number,
            s.STRING: self._string,
            s.ARRAY: self._array,
            s.OBJECT: self._object,
        }

    def satisfies(self, conj: Conj, value: Json, *, loose: bool = False) -> bool:
        """Does `value` satisfy `conj`? With `loose` a yes may be wrong, a no is not."""
        return not conj or any(
            self.holds(shape, value, loose=loose) for shape in self._shapes(conj, loose=loose)
        )

    def holds(self, shape: Shape, value: Json, *, loose: bool = False) -> bool:
        """Is `value` inside `shape`?"""
        kind = kind_of(value)
        if not shape.kinds & kind:
            return False
        key = value_key(value)
        if key in shape.excluded or (shape.values is not None and key not in shape.values):
            return False
        test = self._by_kind.get(kind)
        return test is None or test(shape, value, loose)

    def _number(self, shape: Shape, value: Json, loose: bool) -> bool:
        return shape.numbers.holds(Decimal(value))

    def _string(self, shape: Shape, value: Json, loose: bool) -> bool:
        text = cast("str", value)
        if len(text) < shape.min_length or (
            shape.max_length is not None and len(text) > shape.max_length
        ):
            return False
        return all(self.matches(e, text) for e in shape.languages) and not any(
            self.matches(e, text) for e in shape.not_languages
        )

    def _array(self, shape: Shape, value: Json, loose: bool) -> bool:
        items = cast("list[Json]", value)
        if len(items) < shape.min_items or (
            shape.max_items is not None and len(items) > shape.max_items
        ):
            return False
        if not all(
            self.satisfies(item_conj(shape, i), item, loose=loose) for i, item in enumerate(items)
        ):
            return False
        for rule in shape.contains:
            # with `loose` the count may be too high: only the lower end can be trusted
            count = sum(
                self.satisfies(rule.what, item, loose=loose) for item in items[rule.start :]
            )
            if count < rule.low or (not loose and rule.high is not None and count > rule.high):
                return False
        return not shape.unique_at or len({value_key(item) for item in items}) == len(items)

    def _object(self, shape: Shape, value: Json, loose: bool) -> bool:
        members = cast("dict[str, Json]", value)
        if len(members) < shape.min_properties:
            return False
        if shape.max_properties is not None and len(members) > shape.max_properties:
            return False
        if not all(name in members for name in shape.required):
            return False
        if not shape.absent.keys().isdisjoint(members):
            return False
        for name, item in members.items():
            if not self.satisfies(shape.names, name, loose=loose):
                return False
            if not self.satisfies(self.rules_conj(shape, name), item, loose=loose):
                return False
        return all(
            any(
                self.falls_to(rule, name, part) and self.satisfies(what, item, loose=loose)
                for name, item in members.items()
            )
            for rule, part, what in shape.some_property
        )

    def rules_conj(self, shape: Shape, name: str) -> Conj:
        """What the value of the property `name` must satisfy."""
        return meet(*(self._rule_conj(rule, name) for rule in shape.property_rules))

    def _rule_conj(self, rule: PropertyRule, name: str) -> Conj:
        parts = [what for language, what in rule.patterns if self.matches(language, name)]
        if name in rule.named:
            parts.append(rule.named[name])
        return meet(*parts) if parts else rule.others

    def falls_to(self, rule: PropertyRule, name: str, part: int) -> bool:
        """Does the property `name` fall to pattern `part` of the rule, or with -1 to its others?"""
        if part >= 0:
            return self.matches(rule.patterns[part][0], name)
        return name not in rule.named and not any(
            self.matches(language, name) for language, _ in rule.patterns
        )

    def matches(self, language: Expr, text: str) -> bool:
        """Is `text` in a language that lives as long as this object?"""
        key = (id(language), text)
        found = self._matches.get(key)
        if found is None:
            found = self._matches[key] = accepts(language, text)
        return found

    def property_conj(self, shape: Shape, name: str) -> Conj:
        """The same, and impossible where the name itself is forbidden."""
        if shape.names and not self.satisfies(shape.names, name, loose=True):
            return (*self.rules_conj(shape, name), *_IMPOSSIBLE)
        return self.rules_conj(shape, name)


def item_conj(shape: Shape, index: int) -> Conj:
    """What the item at `index` must satisfy."""
    return meet(
        *(
            rule.prefix[index] if index < len(rule.prefix) else rule.rest
            for rule in shape.item_rules
        )
    )


_IMPOSSIBLE: Conj = (s.Atom(Node(False, "#", ""), True),)
