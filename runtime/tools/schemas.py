"""Schemas of a tool's arguments: made ready for the grammar, loosened where the grammar refuses them.

Owns what is done to `parameters` before they become a constraint. Both changes keep every output valid or say so: closing objects only
narrows a schema, loosening one is asked for by the caller. Knows nothing of messages or tags.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ...grammar.spec import JsonSchema

# Beside these, closing an object could forbid what another part of the schema demands.
_DELICATE = frozenset(
    [
        "allOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
        "patternProperties",
        "propertyNames",
        "unevaluatedProperties",
        "$dynamicRef",
        "$recursiveRef",
        "minProperties",
    ]
)
_MAPS_OF_SCHEMAS = ("properties", "$defs", "definitions")
_SCHEMAS = ("items", "additionalProperties", "prefixItems", "anyOf", "contains", "additionalItems")


def arguments_schema(parameters: Mapping[str, Any]) -> JsonSchema:
    """The constraint on a call's arguments: an object valid under `parameters`, with declared properties only.

    Small models fill an object that takes any property with nonsense, so objects that declare properties and say nothing of others
    are closed, unless the schema combines its parts in a way that this could contradict.
    """
    schema = dict(parameters)
    schema.setdefault("type", "object")
    if not _is_delicate(schema):
        schema = _closed(schema)
    return JsonSchema(json.dumps(schema, ensure_ascii=False))


def loosened(parameters: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """`parameters` without a constraint on the argument that `pointer` leads to or into; on no argument if it leads elsewhere."""
    tokens = [
        token.replace("~1", "/").replace("~0", "~") for token in pointer.lstrip("#").split("/")[1:]
    ]
    properties = parameters.get("properties")
    if len(tokens) >= 2 and tokens[0] == "properties" and isinstance(properties, dict):
        members = cast("dict[str, Any]", properties)
        if members.get(tokens[1]) not in (None, {}):
            return {**parameters, "properties": {**members, tokens[1]: {}}}
    return {"type": "object"}


def _parts(node: dict[str, Any]) -> list[Any]:
    """The schemas directly below `node`."""
    found: list[Any] = []
    for key in _MAPS_OF_SCHEMAS:
        if isinstance(node.get(key), dict):
            found += node[key].values()
    for key in _SCHEMAS:
        value = node.get(key)
        found += cast("list[Any]", value) if isinstance(value, list) else [value]
    return [part for part in found if isinstance(part, dict)]


def _is_delicate(schema: dict[str, Any]) -> bool:
    pending = [schema]
    for node in pending:
        is_combined = "properties" in node and ("$ref" in node or "anyOf" in node)
        if is_combined or not _DELICATE.isdisjoint(node):
            return True
        pending += _parts(node)
    return False


def _closed(node: Any) -> Any:
    if isinstance(node, list):
        return [_closed(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    closed = dict(cast("dict[str, Any]", node))
    for key in _MAPS_OF_SCHEMAS:
        if isinstance(closed.get(key), dict):
            closed[key] = {name: _closed(part) for name, part in closed[key].items()}
    for key in _SCHEMAS:
        if key in closed:
            closed[key] = _closed(closed[key])
    properties, required = closed.get("properties"), closed.get("required")
    # a property that is required but not declared needs the object open
    names: list[Any] = cast("list[Any]", required) if isinstance(required, list) else []
    if isinstance(properties, dict) and all(isinstance(n, str) and n in properties for n in names):
        closed.setdefault("additionalProperties", False)
    return closed
