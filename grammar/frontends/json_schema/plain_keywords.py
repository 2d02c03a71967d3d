"""Keywords that speak of a value by itself: type, enum, const, bounds and multiples of numbers, length, pattern and format of strings.

Owns their meaning and that of their complements. A keyword constrains its own kind of value only; its complement therefore begins with
that kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import cast

from ....errors import GrammarError
from . import shape as s
from .document import Node
from .formats import Format, format_named
from .reading import Option, Reading, Requirement, Schema
from .shape import Atom, Fact
from .source import Json, child_pointer

_KINDS = {
    "null": s.NULL,
    "boolean": s.BOOLEAN,
    "integer": s.INTEGER,
    "number": s.NUMBER,
    "string": s.STRING,
    "array": s.ARRAY,
    "object": s.OBJECT,
}


def demands(reading: Reading, node: Node, schema: Schema) -> Iterator[Requirement]:
    """The requirements of these keywords."""
    if "type" in schema:
        yield [[s.kinds(_kinds(schema["type"]))]]
    for keyword in ("enum", "const"):
        if keyword in schema:
            yield [[s.one_of(_values(reading, node, keyword, schema[keyword]))]]
    for lower in (True, False):
        for value, is_open in _bounds(schema, lower=lower):
            yield [[s.bound(value, lower=lower, is_open=is_open)]]
    if "multipleOf" in schema:
        yield [[_divided(Fraction(schema["multipleOf"]))]]
    low, high = reading.count(node, "minLength", 0) or 0, reading.count(node, "maxLength", None)
    if low or high is not None:
        yield [[s.length(low, high)]]
    if "pattern" in schema:
        text = reading.pattern(schema["pattern"], child_pointer(node.pointer, "pattern"))
        yield [[s.language(text, inside=True)]]
    found = _format(node, schema)
    if found is not None:
        yield [list(_format_facts(found))]


def complements(reading: Reading, node: Node, schema: Schema) -> Iterator[Option]:
    """Ways to fail one of these keywords."""
    if "type" in schema:
        yield [s.kinds(s.ALL_KINDS & ~_kinds(schema["type"]))]
    for keyword in ("enum", "const"):
        if keyword in schema:
            yield _none_of(reading, node, _values(reading, node, keyword, schema[keyword]))
    for lower in (True, False):
        for value, is_open in _bounds(schema, lower=lower):
            yield [s.kinds(s.NUMBER), s.bound(value, lower=not lower, is_open=not is_open)]
    if "multipleOf" in schema:
        step = Fraction(schema["multipleOf"])
        yield [s.kinds(s.NUMBER), s.numbers(lambda n: n.undivided(step))]
    low, high = reading.count(node, "minLength", 0) or 0, reading.count(node, "maxLength", None)
    if low:
        yield [s.kinds(s.STRING), s.length(0, low - 1)]
    if high is not None:
        yield [s.kinds(s.STRING), s.length(high + 1, None)]
    if "pattern" in schema:
        text = reading.pattern(schema["pattern"], child_pointer(node.pointer, "pattern"))
        yield [s.kinds(s.STRING), s.language(text, inside=False)]
    found = _format(node, schema)
    if found is not None:
        yield from _format_complements(found)


def _kinds(value: Json) -> int:
    mask = 0
    for name in [value] if isinstance(value, str) else value:
        mask |= _KINDS[name]
    return mask


def _values(reading: Reading, node: Node, keyword: str, value: Json) -> list[Json]:
    if keyword == "const":
        return [value]
    if len(value) > reading.limits.choices:
        raise GrammarError(
            f"enum holds {len(value)} values, above the limit choices={reading.limits.choices}",
            place=child_pointer(node.pointer, keyword),
            keyword=keyword,
        )
    return value


def _none_of(reading: Reading, node: Node, values: list[Json]) -> Option:
    """Facts that keep all of `values` out. Arrays and objects are kept out by the complement of a schema of their structure."""
    simple = [v for v in values if not isinstance(v, (list, dict))]
    option: Option = [s.none_of(simple)] if simple else []
    for value in values:
        if isinstance(value, (list, dict)):
            option.append(Atom(_structure(reading, node, value), False))
    return option


def _structure(reading: Reading, node: Node, value: Json) -> Node:
    made: dict[str, Json]
    if isinstance(value, dict):
        members = cast("dict[str, Json]", value)
        made = {
            "type": "object",
            "properties": {name: {"const": item} for name, item in members.items()},
            "required": list(members),
            "additionalProperties": False,
        }
    else:
        listed = cast("list[Json]", value)
        made = {"type": "array", "minItems": len(listed), "maxItems": len(listed)}
        if listed:
            made["prefixItems"] = [{"const": item} for item in listed]
    return reading.document.make(made, node)


def _bounds(schema: Schema, *, lower: bool) -> list[tuple[Decimal, bool]]:
    """The bounds that minimum and exclusiveMinimum (or their upper twins) state, each with "the bound itself is out"."""
    plain, exclusive = ("minimum", "exclusiveMinimum") if lower else ("maximum", "exclusiveMaximum")
    flag = schema.get(exclusive)
    bounds: list[tuple[Decimal, bool]] = []
    if plain in schema:
        bounds.append((Decimal(schema[plain]), flag is True))
    if exclusive in schema and not isinstance(flag, bool):
        bounds.append((Decimal(schema[exclusive]), True))
    return bounds


def _divided(step: Fraction) -> Fact:
    return s.numbers(lambda n: n.divided(step))


def _format(node: Node, schema: Schema) -> Format | None:
    if "format" not in schema:
        return None
    return format_named(schema["format"], child_pointer(node.pointer, "format"))


def _format_facts(found: Format) -> Iterator[Fact | Atom]:
    if found.language is not None:
        yield s.language(found.language, inside=True)
    if found.bounds is not None:
        yield s.bound(found.bounds[0], lower=True, is_open=False)
        yield s.bound(found.bounds[1], lower=False, is_open=False)


def _format_complements(found: Format) -> Iterator[Option]:
    if found.language is not None:
        yield [s.kinds(s.STRING), s.language(found.language, inside=False)]
    if found.bounds is not None:
        yield [s.kinds(s.NUMBER), s.bound(found.bounds[0], lower=False, is_open=True)]
        yield [s.kinds(s.NUMBER), s.bound(found.bounds[1], lower=True, is_open=True)]
