"""Short texts that satisfy a constraint, to be played as results while a program is traced.

Owns one text per (constraint, variant); two variants differ where the constraint leaves a choice. They need not be likely, and for what
is not understood here (lookarounds, grammars) they need not even fit: a program that cannot use them is traced as far as it gets. Must not
know graphs or backends.

Of a JSON Schema the keywords that types are written with are understood, with references into the schema itself. Optional members are played
near the top only, and what is still too large is not played at all: a trace must stay quick whatever the schema.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from ...grammar.spec import AfterReasoning, Choice, JsonSchema, Regex
from .regex_samples import SampleTooLarge, check_length, sample_of_regex

if TYPE_CHECKING:
    from ...grammar.spec import Spec

_MAX_DEPTH = 12
_MAX_OPTIONAL = 2  # objects in one another whose optional members are played
_MAX_NODES = 1000  # of one sample


def sample_of(spec: Spec, variant: int) -> str:
    """A text for the constraint; variant 0, 1, ... choose differently. SampleTooLarge for one that is not short."""
    if isinstance(spec, Choice):
        return spec.options[variant % len(spec.options)]
    if isinstance(spec, Regex):
        return sample_of_regex(spec.pattern, variant)
    if isinstance(spec, JsonSchema):
        schema = json.loads(spec.text)
        return json.dumps(_Sampler(schema, variant).value(schema), ensure_ascii=False)
    if isinstance(spec, AfterReasoning):
        return f"{spec.begin}...{spec.end}{sample_of(spec.content, variant)}"
    return "x"


class _Sampler:
    """One sample of a schema, and how large it has become."""

    def __init__(self, root: Any, variant: int) -> None:
        self._root = root
        self._variant = variant
        self._num_nodes = 0
        self._num_chars = 0

    def value(self, schema: Any, depth: int = _MAX_DEPTH, num_around: int = 0) -> Any:
        """A value for a schema, in `num_around` objects."""
        self._count(nodes=1)
        if not isinstance(schema, dict) or depth == 0:
            return None if depth == 0 else "x"
        node = cast("dict[str, Any]", schema)
        if "$ref" in node:
            return self.value(_referred(self._root, str(node["$ref"])), depth - 1, num_around)
        if "const" in node:
            return self._given(node["const"])
        for several in ("enum", "anyOf", "oneOf", "allOf"):
            options = node.get(several)
            if options:
                chosen = options[self._variant % len(options) if several != "allOf" else 0]
                if several == "enum":
                    return self._given(chosen)
                return self.value(chosen, depth - 1, num_around)
        return self._of_type(node, depth, num_around)

    def _of_type(self, node: dict[str, Any], depth: int, num_around: int) -> Any:
        kind: Any = node.get("type", "object" if "properties" in node else "string")
        if isinstance(kind, list):
            kind = cast("list[Any]", kind)[0]
        if kind == "object":
            return self._object(node, depth, num_around)
        if kind == "array":
            first: list[Any] = node.get("prefixItems", [])
            count = max(int(node.get("minItems", 1)), len(first))
            self._count(nodes=count)
            item = node.get("items", {"type": "string"})
            each = [*first, *[item] * (count - len(first))]
            return [self.value(schema, depth - 1, num_around) for schema in each]
        if kind in ("integer", "number"):
            low = node.get(
                "minimum", node.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in node)
            )
            high = node.get(
                "maximum", node.get("exclusiveMaximum", low + 2) - ("exclusiveMaximum" in node)
            )
            return min(low + self._variant % 2, max(high, low))
        if kind in ("boolean", "null"):
            return self._variant % 2 == 0 if kind == "boolean" else None
        return self._string(node)

    def _object(self, node: dict[str, Any], depth: int, num_around: int) -> dict[str, Any]:
        wanted = cast("dict[str, Any]", node.get("properties", {}))
        if num_around >= _MAX_OPTIONAL:
            required = set(cast("list[str]", node.get("required", [])))
            wanted = {name: each for name, each in wanted.items() if name in required}
        found: dict[str, Any] = {}
        for name, each in wanted.items():
            self._count(chars=len(name))
            found[name] = self.value(each, depth - 1, num_around + 1)
        return found

    def _string(self, node: dict[str, Any]) -> str:
        if "pattern" in node:
            text = sample_of_regex(str(node["pattern"]), self._variant)
            self._count(chars=len(text))
            return text
        formats = {"date": "2001-02-03", "date-time": "2001-02-03T04:05:06Z", "time": "04:05:06Z",
                   "uuid": "00000000-0000-4000-8000-000000000000", "email": "a@b.org",
                   "uri": "http://a.org/"}  # fmt: skip
        text = str(formats.get(str(node.get("format")), "ab"[self._variant % 2]))
        length = max(int(node.get("minLength", 0)), len(text))
        self._count(chars=length)
        return text.ljust(length, text[0])

    def _given(self, value: Any) -> Any:
        self._count(chars=len(str(value)))
        return value

    def _count(self, nodes: int = 0, chars: int = 0) -> None:
        """So much more is about to be played."""
        self._num_nodes += nodes
        self._num_chars += chars
        if self._num_nodes > _MAX_NODES:
            raise SampleTooLarge(f"a result of more than {_MAX_NODES} values is not played")
        check_length(self._num_chars)


def _referred(root: Any, pointer: str) -> Any:
    """The schema at a pointer into the root, "#/$defs/Name"."""
    node: Any = root
    for name in pointer.removeprefix("#").split("/")[1:]:
        node = cast("dict[str, Any]", node).get(name, {}) if isinstance(node, dict) else {}
    return node
