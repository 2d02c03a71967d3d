"""unevaluatedProperties and unevaluatedItems: schemas for what nothing else at the same place has spoken of.

Owns their meaning and that of their complements. Such a keyword is a watch on the search: every schema that holds of the same value, found
through references and combinations (but not through `not`), adds what it evaluates; when a branch of the search is complete, the watch
becomes a rule on properties or items like additionalProperties. Source: JSON Schema core 2020-12, sections 11.2 and 11.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ....errors import GrammarError
from . import item_keywords, property_keywords
from .branch import Branch, Option, Origin
from .document import REFERENCES, Node
from .evaluation import Evaluated, Watch
from .keywords import check
from .reading import Reading, Schema, complement_of
from .shape import ARRAY, OBJECT, Atom, Conj, ItemRule, PropertyRule
from .source import Json

KEYWORDS = ("unevaluatedProperties", "unevaluatedItems")
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("if", "then", "else")
_EVALUATING = frozenset(
    (
        "properties", "patternProperties", "additionalProperties", "items", "prefixItems", "additionalItems", "contains", *KEYWORDS,
    )
)  # fmt: skip


def begin(reading: Reading, node: Node, schema: Schema, branch: Branch) -> None:
    """Note what `node`, being read, evaluates for those who watch it; its own keywords of this kind begin to watch."""
    origin = branch.origin
    own = reading.evaluated.get(node)
    if own is None:
        items = item_keywords.evaluated(reading, node, schema)
        own = property_keywords.evaluated(reading, node, schema).joined(items)
        reading.evaluated[node] = own
    watch = reading.failing.get(node) or _watch(reading, node, schema)
    everything = Evaluated(
        has_all_properties="unevaluatedProperties" in schema,
        has_all_items="unevaluatedItems" in schema,
    ).joined(own)
    for outer in origin.watches:
        branch.evaluated[outer] = branch.evaluated[outer].joined(everything)
    if watch is not None and watch not in origin.watches:
        branch.evaluated.setdefault(watch, own)
        branch.origin = Origin(origin.atom, origin.place, origin.above, (*origin.watches, watch))


def _watch(reading: Reading, node: Node, schema: Schema) -> Watch | None:
    found = [reading.demand(node, k) if k in schema else () for k in KEYWORDS]
    if not any(found):
        return None
    known = reading.watches.get(node)
    if known is None:
        known = reading.watches[node] = Watch(node, found[0], found[1])
    return known


def settle(reading: Reading, branch: Branch) -> None:
    """The search is complete: turn each watch into what it demands of this shape."""
    for watch, found in branch.evaluated.items():
        if watch.fails:
            _some_unevaluated(reading, watch, found, branch)
            continue
        if watch.properties and not found.has_all_properties:
            branch.shape.property_rules.append(_rule(reading, watch.node, found, watch.properties))
        if watch.items and not found.has_all_items:
            rest = _or_contained(reading, watch, found)
            if rest:
                rule = ItemRule(((),) * found.num_prefix, rest)
                branch.shape.item_rules.append(rule)


def complements(reading: Reading, node: Node, schema: Schema) -> Iterator[Option]:
    """Ways to fail one of these keywords: everything beside them holds, and something that is not evaluated is wrong."""
    for keyword, kind in zip(KEYWORDS, (OBJECT, ARRAY), strict=True):
        what = reading.demand(node, keyword) if keyword in schema else ()
        if not what:
            continue
        beside = reading.document.make({k: v for k, v in schema.items() if k not in KEYWORDS}, node)
        properties, items = (what, ()) if kind == OBJECT else ((), what)
        reading.failing[beside] = Watch(beside, properties, items, fails=True)
        yield [property_keywords.of_kind(kind), Atom(beside, True)]


def contributes(reading: Reading, node: Node) -> bool:
    """Can `node`, or a schema that it applies to the same value, evaluate anything?"""
    known = reading.contributing.get(node)
    if known is None:
        known = reading.contributing[node] = _contributes(reading, node, set())
    return known


def _contributes(reading: Reading, node: Node, seen: set[Node]) -> bool:
    if isinstance(node.schema, bool) or node in seen:
        return False
    seen.add(node)
    schema = reading.keywords(node)
    if not _EVALUATING.isdisjoint(schema):
        return True
    check(schema, node.pointer, leave_out=_told_when_read)
    document = reading.document
    below: list[Node] = [document.child(node, k) for k in _SINGLE if k in schema]
    for keyword in _LISTS:
        below.extend(atom.node for atom in reading.branches(node, keyword))
    for keyword in ("dependentSchemas", "dependencies"):
        entries = cast("dict[str, Json]", schema.get(keyword, {}))
        below.extend(
            document.child(node, keyword, k) for k, v in entries.items() if not isinstance(v, list)
        )
    below.extend(document.refer(node, k, schema[k]) for k in REFERENCES if k in schema)
    return any(_contributes(reading, one, seen) for one in below)


def _told_when_read(place: str, keyword: str, reason: str) -> None:
    """For unknown keywords of a schema that is looked at before it is read."""


# ---------------------------------------------------------------------------------------------- what a watch becomes


def _rule(reading: Reading, node: Node, found: Evaluated, others: Conj) -> PropertyRule:
    key = (node, found.names, frozenset(map(id, found.patterns)))
    known = reading.late_rules.get(key)
    if known is None:
        named: dict[str, Conj] = dict.fromkeys(sorted(found.names), ())
        patterns = tuple((pattern, ()) for pattern in found.patterns)
        known = reading.late_rules[key] = PropertyRule(named, patterns, others)
    return known


def _or_contained(reading: Reading, watch: Watch, found: Evaluated) -> Conj:
    """What an item that is not evaluated by its place must satisfy: the watch's schema, or one that contains looks for."""
    if not found.contained:
        return watch.items
    if not all(found.contained):
        return ()
    options = [what[0].node for what in (watch.items, *found.contained)]
    if any(not isinstance(n.schema, bool) and n.scope != watch.node.scope for n in options):
        raise GrammarError(
            "contains beside unevaluatedItems is not supported across dynamic scopes",
            place=watch.node.pointer,
            keyword="unevaluatedItems",
        )
    key = (watch.node, frozenset(options))
    known = reading.late_choices.get(key)
    if known is None:
        schema: Schema = {"anyOf": [node.schema for node in options]}
        known = reading.late_choices[key] = reading.document.make(schema, watch.node)
    return (Atom(known, True),)


def _some_unevaluated(reading: Reading, watch: Watch, found: Evaluated, branch: Branch) -> None:
    options: list[Option] = []
    if watch.properties and not found.has_all_properties:
        rule = _rule(reading, watch.node, found, ())
        atom = watch.properties[0]
        options.append(property_keywords.some_property(rule, -1, complement_of(atom)))
    if watch.items and not found.has_all_items:
        rest = _or_contained(reading, watch, found)
        options.extend(item_keywords.some_later_item(found.num_prefix, atom) for atom in rest)
    if not options:
        branch.shape.kinds = 0
    for option in options:
        branch.take(option, branch.origin, ())
