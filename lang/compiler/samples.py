"""Short texts that satisfy a constraint, to be played as results while a program is traced.

Owns one text per (constraint, variant); two variants differ where the constraint leaves a choice. They need not be likely, and for what
is not understood here (lookarounds, grammars) they need not even fit: a program that cannot use them is traced as far as it gets. Must not
know graphs or backends.

Of a JSON Schema the keywords that types are written with are understood, with references into the schema itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from ...grammar.spec import AfterReasoning, Choice, JsonSchema, Regex
from .regex_samples import sample_of_regex

if TYPE_CHECKING:
    from ...grammar.spec import Spec

_MAX_DEPTH = 12


def sample_of(spec: Spec, variant: int) -> str:
    """A text for the constraint; variant 0, 1, ... choose differently."""
    if isinstance(spec, Choice):
        return spec.options[variant % len(spec.options)]
    if isinstance(spec, Regex):
        return sample_of_regex(spec.pattern, variant)
    if isinstance(spec, JsonSchema):
        schema = json.loads(spec.text)
        return json.dumps(_value(schema, schema, variant, _MAX_DEPTH), ensure_ascii=False)
    if isinstance(spec, AfterReasoning):
        return f"{spec.begin}...{spec.end}{sample_of(spec.content, variant)}"
    return "x"


def _value(schema: Any, root: Any, variant: int, depth: int) -> Any:
    """A value for a schema."""
    if not isinstance(schema, dict) or depth == 0:
        return None if depth == 0 else "x"
    node = cast("dict[str, Any]", schema)
    if "$ref" in node:
        return _value(_referred(root, str(node["$ref"])), root, variant, depth - 1)
    if "const" in node:
        return node["const"]
    for several in ("enum", "anyOf", "oneOf", "allOf"):
        options = node.get(several)
        if options:
            chosen = options[variant % len(options) if several != "allOf" else 0]
            return chosen if several == "enum" else _value(chosen, root, variant, depth - 1)
    return _of_type(node, root, variant, depth)


def _of_type(node: dict[str, Any], root: Any, variant: int, depth: int) -> Any:
    kind: Any = node.get("type", "object" if "properties" in node else "string")
    if isinstance(kind, list):
        kind = cast("list[Any]", kind)[0]
    if kind == "object":
        wanted = cast("dict[str, Any]", node.get("properties", {}))
        return {name: _value(each, root, variant, depth - 1) for name, each in wanted.items()}
    if kind == "array":
        first: list[Any] = node.get("prefixItems", [])
        count = max(int(node.get("minItems", 1)), len(first))
        item = node.get("items", {"type": "string"})
        each = [*first, *[item] * (count - len(first))]
        return [_value(schema, root, variant, depth - 1) for schema in each]
    if kind in ("integer", "number"):
        low = node.get("minimum", node.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in node))
        high = node.get(
            "maximum", node.get("exclusiveMaximum", low + 2) - ("exclusiveMaximum" in node)
        )
        return min(low + variant % 2, max(high, low))
    if kind in ("boolean", "null"):
        return variant % 2 == 0 if kind == "boolean" else None
    if "pattern" in node:
        return sample_of_regex(str(node["pattern"]), variant)
    formats = {"date": "2001-02-03", "date-time": "2001-02-03T04:05:06Z", "time": "04:05:06Z",
               "uuid": "00000000-0000-4000-8000-000000000000", "email": "a@b.org",
               "uri": "http://a.org/"}  # fmt: skip
    text = str(formats.get(str(node.get("format")), "ab"[variant % 2]))
    return text.ljust(int(node.get("minLength", 0)), text[0])


def _referred(root: Any, pointer: str) -> Any:
    """The schema at a pointer into the root, "#/$defs/Name"."""
    node: Any = root
    for name in pointer.removeprefix("#").split("/")[1:]:
        node = cast("dict[str, Any]", node).get(name, {}) if isinstance(node, dict) else {}
    return node
