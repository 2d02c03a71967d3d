"""Keywords of objects: properties, patternProperties, additionalProperties, propertyNames, required, their counts and dependencies.

Owns their meaning and that of their complements. `additionalProperties` speaks of the properties that neither `properties` nor
`patternProperties` of the same schema object name, so the three are one rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ....errors import GrammarError
from ...expr import Expr
from .branch import Branch, Option
from .document import Node
from .evaluation import Evaluated
from .plain_keywords import of_kind
from .reading import Reader, Reading, Schema, complement_of, opposite
from .shape import OBJECT, STRING, Atom, Conj, Fact, PropertyRule, meet
from .source import Json, child_pointer
from .string_sets import string_language

_MAX_WRONG_NAMES = 16  # names of which one must come, each a way of its own
_RULE_KEYWORDS = ("properties", "patternProperties", "additionalProperties")


def _properties(keyword: str) -> Reader:
    earlier = frozenset(_RULE_KEYWORDS[: _RULE_KEYWORDS.index(keyword)])

    def read(reading: Reading, node: Node, _: Json, branch: Branch) -> None:
        schema = cast("Schema", node.schema)
        if earlier.isdisjoint(schema):
            branch.add_rule(_rule(reading, node, schema))

    return read


def _required(_: Reading, node: Node, names: list[str], branch: Branch) -> None:
    branch.shape.require(names)


def _property_names(reading: Reading, node: Node, _: Json, branch: Branch) -> None:
    branch.shape.names = meet(branch.shape.names, reading.demand(node, "propertyNames"))


def _min_properties(reading: Reading, node: Node, value: Json, branch: Branch) -> None:
    branch.shape.limit_properties(reading.bounded(node, "minProperties", value), None)


def _max_properties(reading: Reading, node: Node, value: Json, branch: Branch) -> None:
    branch.shape.limit_properties(0, reading.bounded(node, "maxProperties", value))


def _dependencies(keyword: str) -> Reader:
    def read(reading: Reading, node: Node, value: dict[str, Json], branch: Branch) -> None:
        for name, part in _dependents(reading, node, keyword, value):
            branch.choose([[absent(name)], [of_kind(OBJECT), _with_names([name]), part]])

    return read


READERS: dict[str, Reader] = {
    **{keyword: _properties(keyword) for keyword in _RULE_KEYWORDS},
    "required": _required,
    "propertyNames": _property_names,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
    **{k: _dependencies(k) for k in ("dependentRequired", "dependentSchemas", "dependencies")},
}


def evaluated(reading: Reading, node: Node, schema: Schema) -> Evaluated:
    """The properties that these keywords evaluate."""
    if not any(keyword in schema for keyword in _RULE_KEYWORDS):
        return Evaluated()
    rule = _rule(reading, node, schema)
    patterns = tuple(language for language, _ in rule.patterns)
    return Evaluated(frozenset(rule.named), patterns, "additionalProperties" in schema)


def complements(reading: Reading, node: Node, schema: Schema) -> Iterator[Option]:
    """Ways to fail one of these keywords."""
    is_object = of_kind(OBJECT)
    if any(keyword in schema for keyword in _RULE_KEYWORDS):
        yield from _wrong_properties(_rule(reading, node, schema))
    for name in schema.get("required", ()):
        yield [is_object, absent(name)]
    if "propertyNames" in schema:
        for atom in reading.demand(node, "propertyNames"):
            yield from _wrong_name(reading, atom)
    low = reading.count(node, "minProperties", None)
    high = reading.count(node, "maxProperties", None)
    if low:
        yield [is_object, lambda shape: shape.limit_properties(0, low - 1)]
    if high is not None:
        yield [is_object, lambda shape: shape.limit_properties(high + 1, None)]
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        for name, value in cast("dict[str, Json]", schema.get(keyword, {})).items():
            if isinstance(value, list):
                for other in cast("list[str]", value):
                    yield [is_object, _with_names([name]), absent(other)]
            elif value is not True:
                below = reading.below(node, keyword, name)
                yield [is_object, _with_names([name]), opposite(below)]


def _rule(reading: Reading, node: Node, schema: Schema) -> PropertyRule:
    known = reading.property_rules.get(node)
    if known is None:
        known = reading.property_rules[node] = _make_rule(reading, node, schema)
    return known


def _make_rule(reading: Reading, node: Node, schema: Schema) -> PropertyRule:
    demand = reading.demand
    named = reading.demands(node, "properties") if "properties" in schema else {}
    others = demand(node, "additionalProperties") if "additionalProperties" in schema else ()
    patterns: list[tuple[Expr, Conj]] = []
    if "patternProperties" in schema:
        place = child_pointer(node.pointer, "patternProperties")
        for text in cast("dict[str, Json]", schema["patternProperties"]):
            try:
                language = reading.pattern(text, child_pointer(place, text))
            except GrammarError as error:
                if not reading.is_best_effort:
                    raise
                # its keys cannot be told from the others: nothing is known of either
                reading.leave_out(child_pointer(place, text), "patternProperties", error.message)
                others = ()
                continue
            patterns.append((language, demand(node, "patternProperties", text)))
    return PropertyRule(named, tuple(patterns), others)


def _wrong_properties(rule: PropertyRule) -> Iterator[Option]:
    for name, what in rule.named.items():
        for atom in what:
            wrong = PropertyRule({name: complement_of(atom)}, (), ())
            yield [of_kind(OBJECT), _with_names([name]), _with_rule(wrong)]
    for index, (_, what) in enumerate(rule.patterns):
        for atom in what:
            yield some_property(rule, index, complement_of(atom))
    for atom in rule.others:
        yield some_property(rule, -1, complement_of(atom))


def some_property(rule: PropertyRule, part: int, what: Conj) -> Option:
    """Objects with a property that falls to part `part` of `rule` (a pattern's index, or -1: the others) and satisfies `what`."""
    return [of_kind(OBJECT), lambda shape: shape.some_property.append((rule, part, what))]


def _wrong_name(reading: Reading, atom: Atom) -> Iterator[Option]:
    if isinstance(atom.node.schema, bool):  # no name is allowed: any property is wrong
        yield [of_kind(OBJECT), lambda shape: shape.limit_properties(1, None)]
        return
    found = reading.shapes((opposite(atom),))
    wrong = {v for shape in found for v in (shape.values or {}).values() if isinstance(v, str)}
    if len(wrong) <= _MAX_WRONG_NAMES and all(
        shape.values is not None or not shape.kinds & STRING for shape in found
    ):
        for name in sorted(wrong):
            yield [of_kind(OBJECT), _with_names([name])]
    else:
        yield some_property(PropertyRule({}, ((string_language(found), ()),), ()), 0, ())


def absent(name: str) -> Fact:
    """The property `name` is not there."""
    return lambda shape: shape.forbid(name)


def _with_names(names: list[str]) -> Fact:
    return lambda shape: shape.require(names)


def _with_rule(rule: PropertyRule) -> Fact:
    return lambda shape: shape.property_rules.append(rule)


def _dependents(
    reading: Reading, node: Node, keyword: str, entries: dict[str, Json]
) -> Iterator[tuple[str, Fact | Atom]]:
    """Each name with what must hold of an object that has that property."""
    for name, value in entries.items():
        if isinstance(value, list):
            needed = [n for n in cast("list[str]", value) if n != name]
            if needed:
                yield name, _with_names(needed)
        elif value is not True:
            yield name, reading.below(node, keyword, name)
