"""Keywords of objects: properties, patternProperties, additionalProperties, propertyNames, required, their counts and dependencies.

Owns their meaning and that of their complements. `additionalProperties` speaks of the properties that neither `properties` nor
`patternProperties` of the same schema object name, so the three are one rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ....errors import GrammarError
from . import shape as s
from .document import Node
from .reading import Demand, Option, Reading, Schema, complement_of, opposite
from .shape import Atom, Fact, PropertyRule
from .source import Json, child_pointer

_RULE_KEYWORDS = ("properties", "patternProperties", "additionalProperties")


def demands(reading: Reading, node: Node, schema: Schema) -> Iterator[Demand]:
    """The requirements of these keywords."""
    rule = _rule(reading, node, schema)
    if rule is not None:
        yield next(k for k in _RULE_KEYWORDS if k in schema), [[s.properties(rule)]]
    if schema.get("required"):
        yield "required", [[s.require(schema["required"])]]
    if "propertyNames" in schema:
        what = reading.demand(node, "propertyNames")
        if what:
            yield "propertyNames", [[s.property_names(what)]]
    low, high = (
        reading.count(node, "minProperties", 0) or 0,
        reading.count(node, "maxProperties", None),
    )
    if low or high is not None:
        yield "minProperties", [[s.property_count(low, high)]]
    for keyword, name, part in _dependencies(reading, node, schema):
        yield keyword, [[_absent(reading, name)], [s.kinds(s.OBJECT), s.require([name]), part]]


def complements(reading: Reading, node: Node, schema: Schema) -> Iterator[Option]:
    """Ways to fail one of these keywords."""
    rule = _rule(reading, node, schema)
    if rule is not None:
        yield from _wrong_properties(rule)
    for name in schema.get("required", ()):
        yield [s.kinds(s.OBJECT), _absent(reading, name)]
    if "propertyNames" in schema and reading.demand(node, "propertyNames"):
        raise GrammarError(
            "the complement of propertyNames is not supported",
            place=child_pointer(node.pointer, "propertyNames"),
            keyword="propertyNames",
        )
    low, high = (
        reading.count(node, "minProperties", 0) or 0,
        reading.count(node, "maxProperties", None),
    )
    if low:
        yield [s.kinds(s.OBJECT), s.property_count(0, low - 1)]
    if high is not None:
        yield [s.kinds(s.OBJECT), s.property_count(high + 1, None)]
    for _, name, part in _dependencies(reading, node, schema):
        if isinstance(part, Atom):
            yield [s.kinds(s.OBJECT), s.require([name]), opposite(part)]
    for _, name, needed in _needed_names(schema):
        for other in needed:
            yield [s.kinds(s.OBJECT), s.require([name]), _absent(reading, other)]


def _rule(reading: Reading, node: Node, schema: Schema) -> PropertyRule | None:
    if node not in reading.property_rules:
        reading.property_rules[node] = _make_rule(reading, node, schema)
    return reading.property_rules[node]


def _make_rule(reading: Reading, node: Node, schema: Schema) -> PropertyRule | None:
    if not any(keyword in schema for keyword in _RULE_KEYWORDS):
        return None
    named = {
        name: reading.demand(node, "properties", name) for name in schema.get("properties", ())
    }
    place = child_pointer(node.pointer, "patternProperties")
    patterns = tuple(
        (
            reading.pattern(text, child_pointer(place, text)),
            reading.demand(node, "patternProperties", text),
        )
        for text in schema.get("patternProperties", ())
    )
    others = (
        reading.demand(node, "additionalProperties") if "additionalProperties" in schema else ()
    )
    return PropertyRule(named, patterns, others)


def _wrong_properties(rule: PropertyRule) -> Iterator[Option]:
    for name, what in rule.named.items():
        for atom in what:
            wrong = PropertyRule({name: complement_of(atom)}, (), ())
            yield [s.kinds(s.OBJECT), s.require([name]), s.properties(wrong)]
    for index, (_, what) in enumerate(rule.patterns):
        for atom in what:
            yield [s.kinds(s.OBJECT), s.some_property(rule, index, complement_of(atom))]
    for atom in rule.others:
        yield [s.kinds(s.OBJECT), s.some_property(rule, -1, complement_of(atom))]


def _absent(reading: Reading, name: str) -> Fact:
    return s.properties(PropertyRule({name: (reading.never,)}, (), ()))


def _needed_names(schema: Schema) -> Iterator[tuple[str, str, list[str]]]:
    for keyword in ("dependentRequired", "dependencies"):
        for name, value in schema.get(keyword, {}).items():
            if isinstance(value, list) and value:
                yield keyword, name, cast("list[str]", value)


def _dependencies(
    reading: Reading, node: Node, schema: Schema
) -> Iterator[tuple[str, str, Fact | Atom]]:
    """Each (keyword, name, what must hold of an object that has that property)."""
    for keyword, name, needed in _needed_names(schema):
        yield keyword, name, s.require(needed)
    for keyword in ("dependentSchemas", "dependencies"):
        entries = cast("dict[str, Json]", schema.get(keyword, {}))
        for name, value in entries.items():
            if not isinstance(value, list) and value is not True:
                yield keyword, name, reading.below(node, keyword, name)
