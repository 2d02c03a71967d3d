"""What became of each keyword of a schema: enforced, left out, an annotation, or never used; and where a schema is looser than it looks.

Owns the walk over a schema's text and the table made of it. What was read and left out comes from the front end itself, by one run of it.
Knows nothing of compiled programs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from ...errors import GrammarError
from ..expr import Limits
from ..frontends.json_schema import read
from ..frontends.json_schema.keywords import ANNOTATIONS, ENFORCED, REFUSED, check
from ..frontends.json_schema.source import Json, child_pointer, parse, value_text
from ..spec import JsonSchema

# Keywords by what they hold: schemas stand below these.
_HOLDS_SCHEMA = frozenset(
    [
        "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
        "unevaluatedItems", "unevaluatedProperties",
    ]
)  # fmt: skip
_HOLDS_LIST = frozenset(["allOf", "anyOf", "items", "oneOf", "prefixItems"])
_HOLDS_MAP = frozenset(
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
)
_PARTIAL = frozenset(("allOf", "if", "then", "else", "not"))  # below them stands part of an object
_SILENT = frozenset(
    ("$defs", "definitions", "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$comment")
)
_MAX_VALUE = 48

How = Literal["enforced", "left out", "not asserted", "annotation", "not used"]


@dataclass(frozen=True, slots=True)
class KeywordReport:
    """One keyword at one place. `place` is its JSON pointer, as in the front end's errors."""

    place: str
    keyword: str
    value: str
    """In brief."""
    how: How
    reason: str
    """Why it is not enforced; empty if it is."""


@dataclass(frozen=True, slots=True)
class LooseObject:
    """An object schema with properties that an output need not have, or beside which it may have any others."""

    place: str
    is_optional: bool
    is_open: bool

    def advice(self) -> str:
        """What is loose, and what to add."""
        parts: list[str] = []
        add: list[str] = []
        if self.is_optional:
            parts.append("no property is required")
            add.append("required")
        if self.is_open:
            parts.append("others are allowed" if parts else "undeclared properties are allowed")
            add.append("additionalProperties: false")
        return f"{' and '.join(parts)} at {self.place}; add {' and '.join(add)}"


def loose_objects(spec: JsonSchema, limits: Limits | None = None) -> tuple[LooseObject, ...]:
    """Where outputs of a schema may be emptier or fuller than its author thinks. A small model makes use of that."""
    found: list[LooseObject] = []
    for pointer, node, _ in _schemas(parse(spec.text, limits or Limits())):
        if node.get("properties") and not _PARTIAL.intersection(pointer.split("/")):
            is_open = node.get("additionalProperties", True) is not False
            loose = LooseObject(pointer, not node.get("required"), is_open)
            if loose.is_optional or loose.is_open:
                found.append(loose)
    return tuple(found)


def keyword_reports(spec: JsonSchema, limits: Limits | None = None) -> tuple[KeywordReport, ...]:
    """What became of each keyword, in the order of the schema; names of definitions and identifiers are not listed.

    Raises GrammarError as the front end does.
    """
    limits = limits or Limits()
    normaliser = read(spec, limits, is_report=True)[0].normaliser
    reading = normaliser.reading
    counted = {node.pointer: reading.keywords(node) for node in reading.checked}
    left_out = {(place, keyword): reason for place, keyword, reason in normaliser.left_out}
    found: list[KeywordReport] = []
    silences = normaliser.document.draft <= 7
    for pointer, node, above in _schemas(parse(spec.text, limits)):
        if pointer not in counted and above in counted and _is_reference(node, silences):
            # references to one schema share what is made of it
            counted[pointer] = {"$ref": node["$ref"]} if silences else node
        for name, value in node.items():
            if name in _SILENT:
                continue
            place = child_pointer(pointer, name)
            reason = left_out.pop((place, name), None) or left_out.pop((pointer, name), None)
            how, reason = _how(name, value, counted.get(pointer), reason)
            found.append(KeywordReport(place, name, _brief(name, value), how, reason))
    found += [
        KeywordReport(place, keyword, "", "left out", reason)
        for (place, keyword), reason in left_out.items()
    ]
    unasserted = {place for place, _ in normaliser.unasserted}
    return tuple(_with_format(each) if each.place in unasserted else each for each in found)


def keywords_left_out(spec: JsonSchema, limits: Limits | None = None) -> tuple[KeywordReport, ...]:
    """What `best_effort` would leave out of a schema; nothing if keywords are misspelt or have wrong values, which is to be mended.

    Raises GrammarError if leaving out would not help.
    """
    for pointer, node, _ in _schemas(parse(spec.text, limits or Limits())):
        try:
            check(node, pointer)
        except GrammarError as error:
            if error.keyword not in REFUSED:
                return ()
    loose = JsonSchema(spec.text, spec.any_order, spec.whitespace, best_effort=True)
    return tuple(each for each in keyword_reports(loose, limits) if each.how == "left out")


def _how(
    name: str, value: Json, counted: dict[str, Json] | None, left_out: str | None
) -> tuple[How, str]:
    if name not in ENFORCED:
        return "annotation", "" if name in ANNOTATIONS else "the keyword is not known"
    if left_out is not None:
        return "left out", left_out
    if counted is None:
        return "not used", "no output has a value here"
    if name not in counted:
        return "not used", "beside $ref it does not count in this draft"
    needed = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
    if name in needed and needed[name] not in counted:
        return "not used", f"it needs {needed[name]} beside it"
    return "enforced", ""


def _with_format(report: KeywordReport) -> KeywordReport:
    reason = "the format is not known: any string passes"
    return KeywordReport(report.place, report.keyword, report.value, "not asserted", reason)


def _is_reference(node: dict[str, Json], silences: bool) -> bool:
    """Is a schema nothing but a reference (which in older drafts silences its siblings)?"""
    return "$ref" in node and (silences or set(node) - ANNOTATIONS == {"$ref"})


def _schemas(schema: Json) -> Iterator[tuple[str, dict[str, Json], str]]:
    """Every schema object with its pointer and that of the schema around it, from the top."""
    todo: list[tuple[str, Json, str]] = [("#", schema, "")]
    while todo:
        pointer, node, above = todo.pop()
        if not isinstance(node, dict):
            continue
        fields = cast("dict[str, Json]", node)
        yield pointer, fields, above
        below: list[tuple[str, Json]] = []
        for name, value in fields.items():
            place = child_pointer(pointer, name)
            if name in _HOLDS_MAP and isinstance(value, dict):
                entries = cast("dict[str, Json]", value)
                below += [(child_pointer(place, key), each) for key, each in entries.items()]
            elif name in _HOLDS_LIST and isinstance(value, list):
                items = cast("list[Json]", value)
                below += [(child_pointer(place, number), each) for number, each in enumerate(items)]
            elif name in _HOLDS_SCHEMA:
                below.append((place, value))
        todo.extend((place, each, pointer) for place, each in reversed(below))


def _brief(name: str, value: Json) -> str:
    """The value of a keyword on part of a line: names of a map, the number of schemas in a list, else its JSON text."""
    if name in _HOLDS_MAP and isinstance(value, dict):
        text = ", ".join(cast("dict[str, Json]", value))
    elif name in _HOLDS_LIST and isinstance(value, list):
        text = f"{len(cast('list[Json]', value))} schemas"
    elif name in _HOLDS_SCHEMA and isinstance(value, dict):
        text = "a schema"
    else:
        text = value_text(value)
    return text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 3] + "..."
