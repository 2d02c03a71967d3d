"""Keywords of arrays: items, prefixItems, additionalItems, contains with its counts, minItems, maxItems, uniqueItems.

Owns their meaning and that of their complements, in the words of every draft: `items` with a list is the older spelling of
`prefixItems`, and `additionalItems` then that of `items`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ....errors import GrammarError
from .branch import Branch, Option
from .document import Node
from .evaluation import Evaluated
from .plain_keywords import of_kind
from .reading import Reader, Reading, Schema, complement_of, opposite
from .shape import ARRAY, Atom, Contains, Fact, ItemRule
from .source import Json, child_pointer

_RULE_KEYWORDS = ("prefixItems", "items", "additionalItems")


def _items(keyword: str) -> Reader:
    earlier = frozenset(_RULE_KEYWORDS[: _RULE_KEYWORDS.index(keyword)])

    def read(reading: Reading, node: Node, _: Json, branch: Branch) -> None:
        schema = cast("Schema", node.schema)
        if earlier.isdisjoint(schema):
            rule = _item_rule(reading, node, schema)
            if rule is not None:
                branch.shape.item_rules.append(rule)

    return read


def _contains(reading: Reading, node: Node, _: Json, branch: Branch) -> None:
    rule = _contains_rule(reading, node)
    if rule.low or rule.high is not None:
        branch.shape.contains.append(rule)


def _min_items(reading: Reading, node: Node, value: Json, branch: Branch) -> None:
    branch.shape.limit_items(reading.bounded(node, "minItems", value), None)


def _max_items(reading: Reading, node: Node, value: Json, branch: Branch) -> None:
    branch.shape.limit_items(0, reading.bounded(node, "maxItems", value))


def _unique_items(_: Reading, node: Node, value: Json, branch: Branch) -> None:
    if value is True:
        branch.shape.unique_at = child_pointer(node.pointer, "uniqueItems")


READERS: dict[str, Reader] = {
    **{keyword: _items(keyword) for keyword in _RULE_KEYWORDS},
    "contains": _contains,
    "minItems": _min_items,
    "maxItems": _max_items,
    "uniqueItems": _unique_items,
}


def evaluated(reading: Reading, node: Node, schema: Schema) -> Evaluated:
    """The items that these keywords evaluate; `contains` does since draft 2020-12."""
    first, rest = _places_of_items(schema)
    is_list = isinstance(schema.get(first), list)
    contained = (
        (reading.demand(node, "contains"),) if "contains" in schema and node.draft >= 2020 else ()
    )
    return Evaluated(
        num_prefix=len(cast("list[Json]", schema[first])) if is_list else 0,
        has_all_items=rest in schema and not isinstance(schema[rest], list),
        contained=contained,
    )


def complements(reading: Reading, node: Node, schema: Schema) -> Iterator[Option]:
    """Ways to fail one of these keywords."""
    is_array = of_kind(ARRAY)
    rule = _item_rule(reading, node, schema)
    if rule is not None:
        yield from _wrong_items(rule)
    if "contains" in schema:
        found = _contains_rule(reading, node)
        if found.low:
            yield [is_array, _with_contains(Contains(found.what, 0, found.low - 1))]
        if found.high is not None:
            yield [is_array, _with_contains(Contains(found.what, found.high + 1, None))]
    low, high = reading.count(node, "minItems", None), reading.count(node, "maxItems", None)
    if low:
        yield [is_array, lambda shape: shape.limit_items(0, low - 1)]
    if high is not None:
        yield [is_array, lambda shape: shape.limit_items(high + 1, None)]
    if schema.get("uniqueItems") is True:
        raise GrammarError(
            "the complement of uniqueItems is not supported",
            place=child_pointer(node.pointer, "uniqueItems"),
            keyword="uniqueItems",
        )


def _places_of_items(schema: Schema) -> tuple[str, str]:
    """The keyword with the list of first items, and that of the rest."""
    first = "prefixItems" if "prefixItems" in schema else "items"
    if first == "items" and isinstance(schema.get("items"), list):
        return first, "additionalItems"
    return first, "items"


def _item_rule(reading: Reading, node: Node, schema: Schema) -> ItemRule | None:
    if node in reading.item_rules:
        return reading.item_rules[node]
    first, rest_keyword = _places_of_items(schema)
    listed = schema.get(first)
    num_prefix = len(cast("list[Json]", listed)) if isinstance(listed, list) else 0
    prefix = tuple(reading.demand(node, first, i) for i in range(num_prefix))
    has_rest = rest_keyword in schema and not isinstance(schema[rest_keyword], list)
    rest = reading.demand(node, rest_keyword) if has_rest else ()
    rule = ItemRule(prefix, rest) if any(prefix) or rest else None
    reading.item_rules[node] = rule
    return rule


def _contains_rule(reading: Reading, node: Node) -> Contains:
    low = reading.count(node, "minContains", 1) or 0
    return Contains(reading.demand(node, "contains"), low, reading.count(node, "maxContains", None))


def _wrong_items(rule: ItemRule) -> Iterator[Option]:
    for index, what in enumerate(rule.prefix):
        for atom in what:
            yield _wrong_item(index, atom)
    for atom in rule.rest:
        yield some_later_item(len(rule.prefix), atom)


def _wrong_item(index: int, atom: Atom) -> Option:
    wrong = ItemRule(((),) * index + (complement_of(atom),), ())
    return [
        of_kind(ARRAY),
        lambda shape: shape.item_rules.append(wrong),
        lambda shape: shape.limit_items(index + 1, None),
    ]


def some_later_item(num_prefix: int, atom: Atom) -> Option:
    """Arrays in which some item behind the first `num_prefix` does not satisfy `atom`."""
    if isinstance(atom.node.schema, bool):  # no item is allowed there: any one is wrong
        return [of_kind(ARRAY), lambda shape: shape.limit_items(num_prefix + 1, None)]
    return [of_kind(ARRAY), _with_contains(Contains((opposite(atom),), 1, None, num_prefix))]


def _with_contains(rule: Contains) -> Fact:
    return lambda shape: shape.contains.append(rule)
