"""A schema document: its nodes, their places, and where references lead.

Owns the tree of one document, the base URI and draft of each node, anchors, embedded resources, and the dynamic scope. Nothing is ever
fetched: a reference out of the document is a GrammarError that names it. Knows nothing of what keywords mean, except of those that name
places ($id, id, $schema, $anchor, $dynamicAnchor, $recursiveAnchor).

The dynamic scope is part of a node's identity: the same schema entered under two scopes is two nodes. Of a scope only what can matter is
kept: for each dynamic anchor the outermost resource that has it. Documents without dynamic references have the empty scope everywhere.
Source: JSON Schema core, draft 4 to 2020-12; RFC 6901 (JSON pointer); RFC 3986 (resolution).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast
from urllib.parse import unquote, urljoin

from msgspec import Struct

from ....errors import GrammarError
from .source import Json, child_pointer

_DRAFTS = (
    ("draft-03", 3),
    ("draft-04", 4),
    ("draft-06", 6),
    ("draft-07", 7),
    ("2019-09", 2019),
    ("2020-12", 2020),
)
_LATEST = 2020
_MAPS = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
)
_BELOW = frozenset(
    (
        "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "items", "prefixItems", "additionalItems", "contains",
        "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema",
    )
)  # fmt: skip
_VALUES = frozenset(("enum", "const", "default", "examples", "example"))
DYNAMIC = ("$dynamicRef", "$recursiveRef")
REFERENCES = ("$ref", *DYNAMIC)
_CONTAINERS = (dict, list)
_RECURSIVE = ""  # the anchor name that stands for $recursiveAnchor: true

Schema = dict[str, Json]
Scope = tuple[tuple[str, str], ...]
"""For each dynamic anchor, by name: the base URI of the outermost resource that has it."""


class Node(Struct, frozen=True, eq=False):
    """One schema at one place, under one dynamic scope. Two nodes are the same only if they are the same object."""

    schema: dict[str, Json] | bool
    pointer: str  # from the root of the document, for errors and rule names
    base: str  # the URI that references here are resolved against
    draft: int = _LATEST
    scope: Scope = ()


class Document:
    """All nodes of one schema document. `is_static`: it is known to have no dynamic references."""

    def __init__(self, tree: Json, *, is_static: bool = False) -> None:
        if not isinstance(tree, (dict, bool)):
            raise GrammarError("a schema must be an object, true or false", place="#")
        root = cast("dict[str, Json] | bool", tree)
        self.draft = _declared(root, _LATEST)
        self.is_declared = isinstance(root, dict) and isinstance(root.get("$schema"), str)
        self.always = Node(True, "#", "")
        self.never = Node(False, "#", "")
        self._nodes: dict[int | tuple[int, Scope], Node] = {}
        # schemas that are in no document: kept, so that their ids stay their own
        self._made: list[Json] = []
        self._targets: dict[tuple[str, str], Node] = {}
        self._is_indexed = False
        self._is_dynamic = False
        self._dynamic_names: dict[str, tuple[str, ...]] = {}
        self._resources: dict[str, Node] = {}
        self._anchors: dict[tuple[str, str], Node] = {}
        self.root = self._node(root, "#", "", self.draft, ())
        self._resources[""] = self._resources[self.root.base] = self.root
        if not is_static and _mentions(root, DYNAMIC):
            self._index()
            self._nodes.clear()  # they were made without scopes
            self._is_dynamic = True
            self.root = self._under(self.root, ())

    def child(self, node: Node, *tokens: str | int) -> Node:
        """The subschema of `node` under the reference tokens."""
        value: Json = node.schema
        for token in tokens:
            value = value[token]
        if value is True or value is False:
            return self.always if value else self.never
        scope = node.scope
        known = self._nodes.get((id(value), scope) if scope else id(value))
        if known is not None:
            return known
        pointer = node.pointer
        for token in tokens:
            pointer = child_pointer(pointer, token)
        return self._new_child(node, value, pointer)

    def children(self, node: Node, keyword: str) -> Iterator[tuple[str, Node]]:
        """The subschemas of `node` in the map that is the value of this keyword, by name."""
        place, scope, nodes = child_pointer(node.pointer, keyword), node.scope, self._nodes
        for name, value in cast("dict[str, Json]", cast("Schema", node.schema)[keyword]).items():
            if value is True or value is False:
                yield name, self.always if value else self.never
                continue
            known = nodes.get((id(value), scope) if scope else id(value))
            yield name, known or self._new_child(node, value, child_pointer(place, name))

    def _new_child(self, node: Node, value: Schema, pointer: str) -> Node:
        """A schema that stands inside of `node`, for the first time."""
        if self._is_dynamic or "$id" in value or "id" in value:
            return self._node(value, pointer, node.base, node.draft, node.scope)
        made = self._nodes[id(value)] = Node(value, pointer, node.base, node.draft)
        return made

    def make(self, schema: dict[str, Json], near: Node) -> Node:
        """A node for a schema that the document does not hold, standing in for something at `near`."""
        self._made.append(schema)
        return self._node(schema, near.pointer, near.base, near.draft, near.scope)

    def _node(self, value: Json, pointer: str, base: str, draft: int, scope: Scope) -> Node:
        """The node of a schema that stands in a resource of this base and draft."""
        if value is True:
            return self.always
        if value is False:
            return self.never
        base, draft = _place(value, base, draft)
        return self._under(Node(value, pointer, base, draft), scope)

    def _under(self, node: Node, scope: Scope) -> Node:
        """The same schema as it is when entered with this dynamic scope."""
        if self._is_dynamic and not isinstance(node.schema, bool):
            scope = self._entered(scope, node.base)
        if scope and isinstance(node.schema, bool):
            return node
        key = (id(node.schema), scope) if scope else id(node.schema)
        known = self._nodes.get(key)
        if known is None:
            if node.scope != scope:
                node = Node(node.schema, node.pointer, node.base, node.draft, scope)
            known = self._nodes[key] = node
        return known

    def _entered(self, scope: Scope, base: str) -> Scope:
        bound = {name for name, _ in scope}
        new = [(name, base) for name in self._dynamic_names.get(base, ()) if name not in bound]
        return tuple(sorted((*scope, *new))) if new else scope

    # ------------------------------------------------------------------------------------------ references

    def refer(self, node: Node, keyword: str, reference: str) -> Node:
        """The node that a reference, standing at `node`, means. Where a dynamic one meets a dynamic anchor, the outermost one of its name counts."""
        found = self._target(node, reference, keyword)
        if keyword != "$ref":
            is_named = keyword == "$dynamicRef"
            name = unquote(reference.partition("#")[2]) if is_named else _RECURSIVE
            bases = dict(node.scope)
            if name in bases and name in self._dynamic_names.get(found.base, ()):
                found = self._anchors[bases[name], name]
        return self._under(found, node.scope)

    def _target(self, node: Node, reference: str, keyword: str) -> Node:
        """Where a reference leads by its text alone."""
        known = self._targets.get((node.base, reference))
        if known is None:
            known = self._targets[node.base, reference] = self._look_up(node, reference, keyword)
        return known

    def _look_up(self, node: Node, reference: str, keyword: str) -> Node:
        place = child_pointer(node.pointer, keyword)
        uri, _, fragment = _join(node.base, reference).partition("#")
        if "%" in fragment:
            fragment = unquote(fragment)
        if uri not in self._resources or not fragment.startswith("/"):
            self._index()
        start = self._resources.get(uri)
        if start is None:
            raise GrammarError(
                f"{keyword} {reference!r} leads out of this document, and nothing is fetched",
                place=place,
                keyword=keyword,
            )
        if not fragment:
            return start
        found = (
            self._walk(start, fragment)
            if fragment.startswith("/")
            else self._anchors.get((uri, fragment))
        )
        if found is None:
            raise GrammarError(
                f"{keyword} {reference!r} leads nowhere", place=place, keyword=keyword
            )
        return found

    def _walk(self, start: Node, fragment: str) -> Node | None:
        """Follow a JSON pointer down from `start`; embedded resources on the way change the base."""
        value: Json = start.schema
        pointer, base, draft = start.pointer, start.base, start.draft
        for raw in fragment.split("/")[1:]:
            token = raw.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict):
                if value is not start.schema:
                    base, draft = _place(cast("dict[str, Json]", value), base, draft)
                below = cast("dict[str, Json]", value).get(token)
            elif isinstance(value, list) and token.isdecimal():
                below = next(iter(cast("list[Json]", value)[int(token) : int(token) + 1]), None)
            else:
                return None
            value, pointer = below, child_pointer(pointer, token)
        return (
            self._node(value, pointer, base, draft, ()) if isinstance(value, (dict, bool)) else None
        )

    # ------------------------------------------------------------------------------------------ named places

    def _index(self) -> None:
        """Find every embedded resource and anchor, once. What stands under unknown keywords gives way to what does not."""
        if self._is_indexed:
            return
        self._is_indexed = True
        root = self.root
        outside: list[tuple[Json, str, str, int]] = []
        self._name_all([(root.schema, root.pointer, root.base, root.draft)], outside)
        while outside:
            unknown, outside = outside, []
            self._name_all(unknown, outside)

    def _name_all(
        self, pending: list[tuple[Json, str, str, int]], outside: list[tuple[Json, str, str, int]]
    ) -> None:
        while pending:
            value, pointer, base, draft = pending.pop()
            if isinstance(value, list):
                pending.extend(
                    (below, child_pointer(pointer, i), base, draft)
                    for i, below in enumerate(cast("list[Json]", value))
                )
            if not isinstance(value, dict):
                continue
            schema = cast("dict[str, Json]", value)
            inner, inner_draft = _place(schema, base, draft)
            self._name(schema, pointer, base, draft)
            for key, below in schema.items():
                if key in _VALUES or type(below) not in _CONTAINERS:
                    continue
                at = child_pointer(pointer, key)
                if key in _MAPS and isinstance(below, dict):
                    pending.extend(
                        (one, child_pointer(at, name), inner, inner_draft)
                        for name, one in cast("dict[str, Json]", below).items()
                    )
                else:
                    (pending if key in _BELOW else outside).append((below, at, inner, inner_draft))

    def _name(self, schema: dict[str, Json], pointer: str, base: str, draft: int) -> None:
        """Note the names that one schema gives to its place."""
        inner, inner_draft = _place(schema, base, draft)
        names = {k: schema[k] for k in ("$anchor", "$dynamicAnchor") if k in schema}
        own = _own_id(schema, inner_draft)
        if own is not None and own.startswith("#") and len(own) > 1:
            names["$id"] = own[1:]
        is_recursive = schema.get("$recursiveAnchor") is True
        if inner == base and not names and not is_recursive:
            return
        node = self._node(schema, pointer, base, draft, ())
        if inner != base:
            self._resources.setdefault(inner, node)
        if is_recursive and self._resources.get(inner) is node:
            names[_RECURSIVE] = _RECURSIVE
        for keyword, name in names.items():
            if not isinstance(name, str) or (inner, name) in self._anchors:
                continue
            self._anchors[inner, name] = node
            if keyword in ("$dynamicAnchor", _RECURSIVE):
                self._dynamic_names[inner] = (*self._dynamic_names.get(inner, ()), name)


def _mentions(tree: Json, keywords: tuple[str, ...]) -> bool:
    names = frozenset(keywords)
    pending: list[Json] = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            entries = cast("dict[str, Json]", value)
            if not names.isdisjoint(entries):
                return True
            for below in entries.values():
                if type(below) in _CONTAINERS:
                    pending.append(below)  # noqa: PERF401
        elif isinstance(value, list):
            pending.extend(v for v in cast("list[Json]", value) if type(v) in _CONTAINERS)
    return False


def _declared(schema: dict[str, Json] | bool, default: int) -> int:
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(declared, str):
        return default
    return next((number for name, number in _DRAFTS if name in declared), _LATEST)


def _place(schema: dict[str, Json], base: str, draft: int) -> tuple[str, int]:
    """Base and draft of a schema inside a resource of these; one with an identifier begins a resource of its own."""
    if "$id" not in schema and "id" not in schema:
        return base, draft
    if "$schema" in schema:
        draft = _declared(schema, draft)
    own = _own_id(schema, draft)
    if own is None or own.startswith("#"):
        return base, draft
    return _join(base, own).partition("#")[0], draft


def _own_id(schema: dict[str, Json], draft: int) -> str | None:
    if draft <= 7 and isinstance(schema.get("$ref"), str):
        return None  # beside $ref everything is ignored there
    value = schema.get("id" if draft <= 4 else "$id")
    return value if isinstance(value, str) else None


def _join(base: str, reference: str) -> str:
    """Reference resolution; a fragment alone stays with its base, whatever scheme that has."""
    if reference.startswith("#") or not reference:
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference
