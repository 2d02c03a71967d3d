"""Keywords that speak of a value by itself: type, enum, const, bounds and multiples of numbers, length, pattern and format of strings.

Owns their meaning and that of their complements. A keyword constrains its own kind of value only; its complement therefore begins with
that kind. OpenAPI's `nullable: true` adds null to the `type` beside it, in documents that do not say they are JSON Schema by `$schema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import cast

from ....errors import GrammarError
from . import shape as s
from .branch import Branch, Option
from .document import Node
from .formats import Format, format_named
from .reading import Reader, Reading, Schema
from .shape import Atom, Fact, Shape
from .source import Json, child_pointer, value_key

_KINDS = {
    "null": s.NULL,
    "boolean": s.BOOLEAN,
    "integer": s.INTEGER,
    "number": s.NUMBER,
    "string": s.STRING,
    "array": s.ARRAY,
    "object": s.OBJECT,
}


def _type(reading: Reading, node: Node, value: Json, branch: Branch) -> None:
    branch.shape.kinds &= _kinds(reading, node, value)


def _enum(reading: Reading, node: Node, value: list[Json], branch: Branch) -> None:
    branch.shape.only(_table(reading, node, "enum", value))


def _const(reading: Reading, node: Node, value: Json, branch: Branch) -> None:
    branch.shape.only({value_key(value): value})


def _bound(keyword: str) -> Reader:
    is_lower = keyword.lower().endswith("minimum")
    is_plain = keyword in ("minimum", "maximum")
    flag_of = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}

    def read(_: Reading, node: Node, value: Json, branch: Branch) -> None:
        if isinstance(value, bool):
            return  # a flag of draft 4, read with the bound
        is_open = not is_plain or cast("Schema", node.schema).get(flag_of[keyword]) is True
        branch.shape.bound(value, lower=is_lower, is_open=is_open)

    return read


def _multiple_of(_: Reading, node: Node, value: Json, branch: Branch) -> None:
    step = Fraction(value)
    branch.shape.narrow_numbers(lambda n: n.divided(step))


def _min_length(reading: Reading, node: Node, value: Json, branch: Branch) -> None:
    branch.shape.limit_length(reading.bounded(node, "minLength", value), None)


def _max_length(reading: Reading, node: Node, value: Json, branch: Branch) -> None:
    branch.shape.limit_length(0, reading.bounded(node, "maxLength", value))


def _pattern(reading: Reading, node: Node, value: str, branch: Branch) -> None:
    language = reading.pattern(value, child_pointer(node.pointer, "pattern"))
    branch.shape.languages.append(language)


def _format(reading: Reading, node: Node, value: str, branch: Branch) -> None:
    found = _format_of(reading, node, value)
    if found is None:
        return
    if found.language is not None:
        branch.shape.languages.append(found.language)
    if found.bounds is not None:
        branch.shape.bound(found.bounds[0], lower=True, is_open=False)
        branch.shape.bound(found.bounds[1], lower=False, is_open=False)


READERS: dict[str, Reader] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    **{k: _bound(k) for k in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
    "multipleOf": _multiple_of,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
}


def complements(reading: Reading, node: Node, schema: Schema) -> Iterator[Option]:
    """Ways to fail one of these keywords."""
    if "type" in schema:
        yield [of_kind(s.ALL_KINDS & ~_kinds(reading, node, schema["type"]))]
    for keyword in ("enum", "const"):
        if keyword in schema:
            listed = [schema["const"]] if keyword == "const" else schema["enum"]
            yield _none_of(reading, node, _table(reading, node, keyword, listed))
    for lower in (True, False):
        for value, is_open in _bounds(schema, lower=lower):
            yield [of_kind(s.NUMBER), _beyond(value, lower=not lower, is_open=not is_open)]
    if "multipleOf" in schema:
        step = Fraction(schema["multipleOf"])
        yield [of_kind(s.NUMBER), lambda shape: shape.narrow_numbers(lambda n: n.undivided(step))]
    low, high = reading.count(node, "minLength", None), reading.count(node, "maxLength", None)
    if low:
        yield [of_kind(s.STRING), lambda shape: shape.limit_length(0, low - 1)]
    if high is not None:
        yield [of_kind(s.STRING), lambda shape: shape.limit_length(high + 1, None)]
    if "pattern" in schema:
        text = reading.pattern(schema["pattern"], child_pointer(node.pointer, "pattern"))
        yield [of_kind(s.STRING), lambda shape: shape.not_languages.append(text)]
    if "format" in schema:
        yield from _format_complements(_format_of(reading, node, schema["format"]))


def of_kind(mask: int) -> Fact:
    """Only values of these kinds."""

    def narrow(shape: Shape) -> None:
        shape.kinds &= mask

    return narrow


def _beyond(value: Decimal, *, lower: bool, is_open: bool) -> Fact:
    return lambda shape: shape.bound(value, lower=lower, is_open=is_open)


def _kinds(reading: Reading, node: Node, value: Json) -> int:
    mask = 0
    for name in (value,) if isinstance(value, str) else value:
        mask |= _KINDS[name]
    if "nullable" in cast("Schema", node.schema) and not reading.document.is_declared:
        mask |= s.NULL if cast("Schema", node.schema)["nullable"] is True else 0
    return mask


def _table(reading: Reading, node: Node, keyword: str, values: list[Json]) -> dict[object, Json]:
    if len(values) > reading.limits.choices:
        raise GrammarError(
            f"enum holds {len(values)} values, above the limit choices={reading.limits.choices}",
            place=child_pointer(node.pointer, keyword),
            keyword=keyword,
        )
    if keyword == "const":
        return {value_key(v): v for v in values}
    known = reading.value_tables.get(id(values))
    if known is None:
        known = reading.value_tables[id(values)] = {value_key(v): v for v in values}
    return known


def _none_of(reading: Reading, node: Node, table: dict[object, Json]) -> Option:
    """Facts that keep all values out. Arrays and objects are kept out by the complement of a schema of their structure."""
    simple = [v for v in table.values() if not isinstance(v, (list, dict))]
    option: list[Fact | Atom] = [lambda shape: shape.exclude(simple)] if simple else []
    option.extend(
        Atom(_structure(reading, node, value), False)
        for value in table.values()
        if isinstance(value, (list, dict))
    )
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


def _format_of(reading: Reading, node: Node, name: str) -> Format | None:
    place = child_pointer(node.pointer, "format")
    found = format_named(name, place)
    if found is None:
        reading.unasserted[place, name] = None
    return found


def _format_complements(found: Format | None) -> Iterator[Option]:
    language = None if found is None else found.language
    bounds = None if found is None else found.bounds
    if language is not None:
        yield [of_kind(s.STRING), lambda shape: shape.not_languages.append(language)]
    if bounds is not None:
        yield [of_kind(s.NUMBER), _beyond(Decimal(bounds[0]), lower=False, is_open=True)]
        yield [of_kind(s.NUMBER), _beyond(Decimal(bounds[1]), lower=True, is_open=True)]
