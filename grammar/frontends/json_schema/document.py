"""A schema document: its nodes, their places, and where `$ref` leads.

Owns the tree of one document, the base URI of each node, anchors and embedded `$id` resources. Nothing is ever fetched: a reference out
of the document is a GrammarError that names it. Knows nothing of what keywords mean, except of those that name places ($id, id,
$anchor, $dynamicAnchor). Source: JSON Schema core, draft 4 to 2020-12; RFC 6901 (JSON pointer); RFC 3986 (resolution).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote, urldefrag, urljoin

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


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One schema at one place. Two nodes are the same only if they are the same object."""

    schema: dict[str, Json] | bool
    pointer: str  # from the root of the document, for errors and rule names
    base: str  # the URI that references here are resolved against


class Document:
    """All nodes of one schema document."""

    def __init__(self, tree: Json) -> None:
        if not isinstance(tree, (dict, bool)):
            raise GrammarError("a schema must be an object, true or false", place="#")
        root = cast("dict[str, Json] | bool", tree)
        self.draft = _draft_of(root)
        self.always = Node(True, "#", "")
        self.never = Node(False, "#", "")
        self._nodes: dict[int, Node] = {}
        self._made: list[
            Json
        ] = []  # schemas that are in no document: kept, so that their ids stay their own
        self._resources: dict[str, Node] = {}
        self._anchors: dict[tuple[str, str], Node] = {}
        self.root = self._node(root, "#", "")
        self._resources.setdefault("", self.root)
        self._resources.setdefault(self.root.base, self.root)
        self._index(self.root)

    def child(self, node: Node, *tokens: str | int) -> Node:
        """The subschema of `node` under the reference tokens."""
        value: Json = node.schema
        pointer = node.pointer
        for token in tokens:
            value = value[token]
            pointer = child_pointer(pointer, token)
        return self._node(value, pointer, node.base)

    def make(self, schema: dict[str, Json], near: Node) -> Node:
        """A node for a schema that the document does not hold, standing in for something at `near`."""
        self._made.append(schema)
        return self._node(schema, near.pointer, near.base)

    def _node(self, value: Json, pointer: str, base: str) -> Node:
        if value is True:
            return self.always
        if value is False:
            return self.never
        known = self._nodes.get(id(value))
        if known is None:
            known = Node(value, pointer, self._base_of(value, base))
            self._nodes[id(value)] = known
        return known

    def _base_of(self, schema: dict[str, Json], base: str) -> str:
        own = _own_id(schema, self.draft)
        return base if own is None or own.startswith("#") else urldefrag(_join(base, own))[0]

    # ------------------------------------------------------------------------------------------ references

    def resolve(self, node: Node, reference: str) -> Node:
        """The node that `reference`, standing at `node`, means."""
        place = child_pointer(node.pointer, "$ref")
        uri, fragment = urldefrag(_join(node.base, reference))
        start = self._resources.get(uri)
        if start is None:
            raise GrammarError(
                f"$ref {reference!r} leads out of this document, and nothing is fetched",
                place=place,
                keyword="$ref",
            )
        fragment = unquote(fragment)
        if not fragment:
            return start
        found = (
            self._walk(start, fragment)
            if fragment.startswith("/")
            else self._anchors.get((uri, fragment))
        )
        if found is None:
            raise GrammarError(f"$ref {reference!r} leads nowhere", place=place, keyword="$ref")
        return found

    def _walk(self, start: Node, fragment: str) -> Node | None:
        """Follow a JSON pointer down from `start`; embedded resources on the way change the base."""
        value: Json = start.schema
        pointer, base = start.pointer, start.base
        for raw in fragment.split("/")[1:]:
            token = raw.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and token in value:
                value = cast("dict[str, Json]", value)[token]
            elif (
                isinstance(value, list)
                and token.isdecimal()
                and int(token) < len(cast("list[Json]", value))
            ):
                value = cast("list[Json]", value)[int(token)]
            else:
                return None
            pointer = child_pointer(pointer, token)
            if isinstance(value, dict):
                base = self._base_of(cast("dict[str, Json]", value), base)
        return self._node(value, pointer, base) if isinstance(value, (dict, bool)) else None

    def _index(self, root: Node) -> None:
        """Find every embedded resource and anchor below `root`."""
        pending: list[tuple[Json, str, str]] = [(root.schema, root.pointer, root.base)]
        while pending:
            value, pointer, base = pending.pop()
            if isinstance(value, list):
                pending.extend(
                    (v, child_pointer(pointer, i), base)
                    for i, v in enumerate(cast("list[Json]", value))
                )
            if not isinstance(value, dict):
                continue
            schema = cast("dict[str, Json]", value)
            inner = self._base_of(schema, base)
            self._name_places(schema, pointer, base, inner)
            for key, below in schema.items():
                if key not in ("enum", "const", "default", "examples", "required", "example"):
                    pending.append((below, child_pointer(pointer, key), inner))

    def _name_places(self, schema: dict[str, Json], pointer: str, base: str, inner: str) -> None:
        if inner != base and inner not in self._resources:
            self._resources[inner] = self._node(schema, pointer, base)
        own = _own_id(schema, self.draft)
        if own is not None and own.startswith("#") and len(own) > 1:
            self._anchors[(inner, own[1:])] = self._node(schema, pointer, base)
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = schema.get(keyword)
            if isinstance(name, str):
                self._anchors[(inner, name)] = self._node(schema, pointer, base)


def _draft_of(root: dict[str, Json] | bool) -> int:
    declared = root.get("$schema") if isinstance(root, dict) else None
    if not isinstance(declared, str):
        return _LATEST
    return next((number for name, number in _DRAFTS if name in declared), _LATEST)


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
