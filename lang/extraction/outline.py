"""A schema as a few lines of text that small models understand better than JSON Schema.

Owns the wording. Must not know prompts: it describes, line by line, what the fields are called, of what kind they are and what their
descriptions say. Whatever it leaves out is still enforced by the grammar.

    - vendor (text): who sent the invoice
    - lines (list of objects), each with:
      - sku (text)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from .references import resolved

_KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "object",
    "array": "list",
}
_MAX_DEPTH = 8


def outline(schema: Mapping[str, Any]) -> str:
    """The fields of an object schema, one a line; the schema as JSON if it is something else."""
    lines = list(_fields(schema, schema, 0))
    return "\n".join(lines) if lines else json.dumps(dict(schema), ensure_ascii=False)


def _fields(root: Mapping[str, Any], node: Any, depth: int) -> Iterator[str]:
    node = resolved(root, node)
    properties = node.get("properties")
    if not isinstance(properties, dict) or depth > _MAX_DEPTH:
        return
    for name, part in cast("dict[str, Any]", properties).items():
        inner = resolved(root, part)
        description = inner.get("description")
        line = f"{'  ' * depth}- {name} ({_kind(root, inner)})"
        yield f"{line}: {' '.join(description.split())}" if isinstance(description, str) else line
        yield from _fields(root, _body(root, inner), depth + 1)


def _kind(root: Mapping[str, Any], node: dict[str, Any]) -> str:
    if "const" in node:
        return json.dumps(node["const"], ensure_ascii=False)
    if isinstance(node.get("enum"), list):
        return " or ".join(json.dumps(value, ensure_ascii=False) for value in node["enum"])
    for word in ("anyOf", "oneOf"):
        if isinstance(node.get(word), list):
            kinds = [_kind(root, resolved(root, part)) for part in node[word]]
            return " or ".join(dict.fromkeys(kinds))
    kind = node.get("type")
    if isinstance(kind, list):
        return " or ".join(_KINDS.get(str(one), str(one)) for one in cast("list[Any]", kind))
    if kind == "array" and "items" in node:
        return f"list of: {_kind(root, resolved(root, node['items']))}"
    text = _KINDS.get(str(kind), "any value")
    form = node.get("format")
    return f"{text}, {form}" if isinstance(form, str) else text


def _body(root: Mapping[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """The object schema whose fields are worth listing below a field: its own, its items', or the one of its alternatives."""
    if "items" in node:
        return _body(root, resolved(root, node["items"]))
    for word in ("anyOf", "oneOf"):
        parts = [resolved(root, part) for part in node.get(word) or ()]
        having = [part for part in parts if "properties" in part or "items" in part]
        if len(having) == 1:
            return _body(root, having[0])
    return node
