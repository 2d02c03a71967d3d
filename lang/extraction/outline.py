"""A schema as a few lines of text that small models understand better than JSON Schema.

Owns the wording. Must not know prompts: it describes, line by line, what the fields are called, of what kind they are and what their
descriptions say. Whatever it leaves out is still enforced by the grammar.

    - vendor (text)                                                     `outline`: before the documents
    - lines (list of: object)
      - sku (text): article number
    Report as JSON: who sent the invoice (vendor), lines.               `reminder`: after each one

The descriptions of the outermost fields stand in the reminder alone, and before the names: a small model copies what it has read twice,
or after a name.
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
_MAX_REMINDER_CHARACTERS = 400


def outline(schema: Mapping[str, Any]) -> str:
    """The fields of an object schema, one a line; the schema as JSON if it is something else.

    Without the descriptions that are in the `reminder`.
    """
    lines = list(_fields(schema, schema, 0, _is_told_by_reminder(schema)))
    return "\n".join(lines) if lines else json.dumps(dict(schema), ensure_ascii=False)


def reminder(schema: Mapping[str, Any]) -> str:
    """The task once more in a sentence: the outermost fields, with their descriptions unless those are long; "" if there are too many."""
    if _is_told_by_reminder(schema):
        return _sentence(schema, has_descriptions=True)
    names = _sentence(schema, has_descriptions=False)
    return names if len(names) <= _MAX_REMINDER_CHARACTERS else ""


def _is_told_by_reminder(schema: Mapping[str, Any]) -> bool:
    return 0 < len(_sentence(schema, has_descriptions=True)) <= _MAX_REMINDER_CHARACTERS


def _sentence(schema: Mapping[str, Any], *, has_descriptions: bool) -> str:
    properties = resolved(schema, schema).get("properties")
    if not isinstance(properties, dict) or not properties:
        return ""
    parts: list[str] = []
    for name, part in cast("dict[str, Any]", properties).items():
        description = _description(resolved(schema, part)) if has_descriptions else ""
        parts.append(f"{description} ({name})" if description else name)
    return f"Report as JSON: {', '.join(parts)}."


def _description(node: Mapping[str, Any]) -> str:
    given = node.get("description")
    return " ".join(given.split()) if isinstance(given, str) else ""


def _fields(root: Mapping[str, Any], node: Any, depth: int, is_bare: bool = False) -> Iterator[str]:
    node = resolved(root, node)
    properties = node.get("properties")
    if not isinstance(properties, dict) or depth > _MAX_DEPTH:
        return
    for name, part in cast("dict[str, Any]", properties).items():
        inner = resolved(root, part)
        description = "" if is_bare else _description(inner)
        line = f"{'  ' * depth}- {name} ({_kind(root, inner)})"
        yield f"{line}: {description}" if description else line
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
