"""Keywords of arrays: items, prefixItems, additionalItems, contains with its counts, minItems, maxItems, uniqueItems.

Owns their meaning and that of their complements, in the words of every draft: `items` with a list is the older spelling of
`prefixItems`, and `additionalItems` then that of `items`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ....errors import GrammarError
from . import shape as s
from .document import Node
from .reading import Option, Reading, Requirement, Schema, complement_of, opposite
from .shape import Atom, Contains, ItemRule
from .source import Json, child_pointer


def demands(reading: Reading, node: Node, schema: Schema) -> Iterator[Requirement]:
    """The requirements of these keywords."""
    rule = _item_rule(reading, node, schema)
    if rule is not None:
        yield [[s.items(rule)]]
    found = _contains(reading, node, schema)
    if found is not None and (found.low or found.high is not None):
        yield [[s.contains(found)]]
    low, high = reading.count(node, "minItems", 0) or 0, reading.count(node, "maxItems", None)
    if low or high is not None:
        yield [[s.item_count(low, high)]]
    if schema.get("uniqueItems") is True:
        yield [[s.unique(child_pointer(node.pointer, "uniqueItems"))]]


def complements(reading: Reading, node: Node, schema: Schema) -> Iterator[Option]:
    """Ways to fail one of these keywords."""
    rule = _item_rule(reading, node, schema)
    if rule is not None:
        yield from _wrong_items(rule)
    found = _contains(reading, node, schema)
    if found is not None:
        if found.low:
            yield [s.kinds(s.ARRAY), s.contains(Contains(found.what, 0, found.low - 1))]
        if found.high is not None:
            yield [s.kinds(s.ARRAY), s.contains(Contains(found.what, found.high + 1, None))]
    low, high = reading.count(node, "minItems", 0) or 0, reading.count(node, "maxItems", None)
    if low:
        yield [s.kinds(s.ARRAY), s.item_count(0, low - 1)]
    if high is not None:
        yield [s.kinds(s.ARRAY), s.item_count(high + 1, None)]
    if schema.get("uniqueItems") is True:
        raise GrammarError(
            "the complement of uniqueItems is not supported",
            place=child_pointer(node.pointer, "uniqueItems"),
            keyword="uniqueItems",
        )


def _item_rule(reading: Reading, node: Node, schema: Schema) -> ItemRule | None:
    first = "prefixItems" if "prefixItems" in schema else "items"
    listed = schema.get(first)
    if isinstance(listed, list):
        prefix = tuple(
            reading.demand(node, first, i) for i in range(len(cast("list[Json]", listed)))
        )
        rest_keyword = "additionalItems" if first == "items" else "items"
    else:
        prefix, rest_keyword = (), "items"
    has_rest = rest_keyword in schema and not isinstance(schema[rest_keyword], list)
    rest = reading.demand(node, rest_keyword) if has_rest else ()
    return ItemRule(prefix, rest) if any(prefix) or rest else None


def _contains(reading: Reading, node: Node, schema: Schema) -> Contains | None:
    if "contains" not in schema:
        return None
    low = reading.count(node, "minContains", 1) or 0
    return Contains(reading.demand(node, "contains"), low, reading.count(node, "maxContains", None))


def _wrong_items(rule: ItemRule) -> Iterator[Option]:
    for index, what in enumerate(rule.prefix):
        for atom in what:
            wrong = ItemRule(((),) * index + (complement_of(atom),), ())
            yield [s.kinds(s.ARRAY), s.items(wrong), s.item_count(index + 1, None)]
    for atom in rule.rest:
        yield _some_later_item(len(rule.prefix), atom)


def _some_later_item(num_prefix: int, atom: Atom) -> Option:
    if isinstance(atom.node.schema, bool):  # no item is allowed there: any one is wrong
        return [s.kinds(s.ARRAY), s.item_count(num_prefix + 1, None)]
    if num_prefix:
        raise GrammarError(
            "the complement of a schema for the items beyond a prefix is not supported",
            place=atom.node.pointer,
            keyword="items",
        )
    return [s.kinds(s.ARRAY), s.contains(Contains((opposite(atom),), 1, None))]
