"""The keywords of JSON Schema, draft 4 to 2020-12 with OpenAPI's additions: what each one is to this front end, and its right shape.

Owns the table of known keywords and the check of one schema object's keywords: a known keyword that is not enforced is refused by name,
a wrongly shaped one too, and an unknown keyword that looks like a misspelt one. Other unknown keywords are annotations, as the
specification says. Knows nothing of what a keyword means.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import cast

from ....errors import GrammarError
from .source import Json, child_pointer

ANNOTATIONS = frozenset(
    {
        "title", "description", "default", "examples", "example", "$schema", "$id", "id", "$comment", "deprecated", "readOnly",
        "writeOnly", "$defs", "definitions", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "contentEncoding", "contentMediaType",
        "contentSchema", "nullable", "discriminator", "xml", "externalDocs",
    }
)  # fmt: skip
"""Known keywords that allow or forbid nothing (`nullable` could only widen a schema: ignoring it keeps every output valid)."""

REFUSED = {
    "extends": "it is a keyword of draft 3",
    "disallow": "it is a keyword of draft 3",
    "divisibleBy": "it is a keyword of draft 3",
}
"""Known keywords that constrain and are not enforced, with the reason."""


def is_number(value: Json) -> bool:
    """Is this JSON value a number?"""
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def is_count(value: Json) -> bool:
    """Is this JSON value a non-negative whole number (2.0 is one)?"""
    return is_number(value) and value >= 0 and value == int(value)


def is_schema(value: Json) -> bool:
    """Can this JSON value be a schema?"""
    return isinstance(value, (dict, bool))


def _is_schema_list(value: Json) -> bool:
    listed = cast("list[Json]", value) if isinstance(value, list) else []
    return len(listed) > 0 and all(map(is_schema, listed))


def _is_schema_map(value: Json) -> bool:
    if not isinstance(value, dict):
        return False
    for below in cast("dict[str, Json]", value).values():  # many: a loop is quicker than all()
        if type(below) is not dict and type(below) is not bool:
            return False
    return True


def _is_names(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in cast("list[Json]", value))


_TYPES = frozenset(("null", "boolean", "object", "array", "number", "integer", "string"))


def _is_type(value: Json) -> bool:
    if isinstance(value, str):
        return value in _TYPES
    return _is_names(value) and bool(value) and all(v in _TYPES for v in value)


def _is_dependencies(value: Json) -> bool:
    entries = cast("dict[str, Json]", value).values() if isinstance(value, dict) else ("wrong",)
    return all(is_schema(v) or _is_names(v) for v in entries)


def _is_names_map(value: Json) -> bool:
    return isinstance(value, dict) and all(
        _is_names(v) for v in cast("dict[str, Json]", value).values()
    )


def _is_bool(value: Json) -> bool:
    return isinstance(value, bool)


def _is_bound(value: Json) -> bool:
    return is_number(value) or isinstance(value, bool)


_Check = tuple[Callable[[Json], bool], str]
_COUNT: _Check = (is_count, "a whole number that is not negative")
_SCHEMA: _Check = (is_schema, "a schema: an object, true or false")
_SCHEMAS: _Check = (_is_schema_list, "a list of schemas that is not empty")
_SCHEMA_MAP: _Check = (_is_schema_map, "an object whose values are schemas")
_STRING: _Check = (lambda v: isinstance(v, str), "a string")
_NUMBER: _Check = (is_number, "a number")

ENFORCED: dict[str, _Check] = {
    "$ref": _STRING,
    "$dynamicRef": _STRING,
    "$recursiveRef": _STRING,
    "type": (_is_type, "one of " + ", ".join(sorted(_TYPES)) + ", or a list of these"),
    "enum": (lambda v: isinstance(v, list), "a list of values"),
    "const": (lambda _: True, "a value"),
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "not": _SCHEMA,
    "if": _SCHEMA,
    "then": _SCHEMA,
    "else": _SCHEMA,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": (_is_bound, "a number (true or false in draft 4)"),
    "exclusiveMaximum": (_is_bound, "a number (true or false in draft 4)"),
    "multipleOf": (lambda v: is_number(v) and v > 0, "a number above 0"),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _STRING,
    "format": _STRING,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "items": (
        lambda v: is_schema(v) or _is_schema_list(v) or v == [],
        "a schema or a list of schemas",
    ),
    "prefixItems": _SCHEMAS,
    "additionalItems": _SCHEMA,
    "unevaluatedItems": _SCHEMA,
    "contains": _SCHEMA,
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "uniqueItems": (_is_bool, "true or false"),
    "properties": _SCHEMA_MAP,
    "patternProperties": _SCHEMA_MAP,
    "additionalProperties": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "propertyNames": _SCHEMA,
    "required": (_is_names, "a list of strings"),
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "dependentRequired": (_is_names_map, "an object whose values are lists of strings"),
    "dependentSchemas": _SCHEMA_MAP,
    "dependencies": (_is_dependencies, "an object whose values are schemas or lists of strings"),
}
"""Keywords that constrain and are enforced: the check of their value, and its description for the error."""


def check(
    schema: dict[str, Json],
    pointer: str,
    leave_out: Callable[[str, str, str], None] | None = None,
) -> None:
    """GrammarError for the first keyword of this one schema object that cannot be taken as it stands.

    With `leave_out`, keywords that are not known to be enforced go there (place, keyword, reason) instead; wrong values are errors still.
    """
    for name, value in schema.items():
        shape = ENFORCED.get(name)
        if shape is not None:
            if not shape[0](value):
                raise GrammarError(
                    f"{name} must be {shape[1]}, not {_brief(value)}",
                    place=child_pointer(pointer, name),
                    keyword=name,
                )
        elif name not in ANNOTATIONS:
            reason = _why_refused(name)
            if not reason:
                continue
            place = child_pointer(pointer, name)
            if leave_out is None:
                raise GrammarError(reason, place=place, keyword=name)
            leave_out(place, name, reason)


@lru_cache(maxsize=1024)
def _why_refused(name: str) -> str:
    if name in REFUSED:
        return f"the keyword {name} is not supported: {REFUSED[name]}"
    meant = _misspelt(name)
    return f"the unknown keyword {name!r} looks like a misspelt {meant}" if meant else ""


def _brief(value: Json) -> str:
    text = repr(str(value)) if isinstance(value, (str, Decimal)) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_CONSTRAINING = frozenset(ENFORCED) | frozenset(REFUSED)
_FOLDED = {name.lower(): name for name in _CONSTRAINING}
_MIN_TYPO_LENGTH = 7  # shorter words are too near to ordinary ones ("item", "patterns")


def _misspelt(name: str) -> str | None:
    """The constraining keyword that `name` probably means, if any. Names led by x- or _ are deliberate annotations."""
    if name.startswith(("x-", "_", "$")):
        return None
    folded = name.replace("_", "").replace("-", "").strip().lower()
    if folded in _FOLDED:
        return _FOLDED[folded]
    if len(folded) < _MIN_TYPO_LENGTH:
        return None
    return next(
        (
            known
            for low, known in _FOLDED.items()
            if len(low) >= _MIN_TYPO_LENGTH and _one_edit(folded, low)
        ),
        None,
    )


def _one_edit(a: str, b: str) -> bool:
    """Is `a` one insertion, deletion, replacement or swap of neighbours away from `b`?"""
    if abs(len(a) - len(b)) > 1:
        return False
    start = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    tail_a, tail_b = a[start:], b[start:]
    return (
        tail_a[1:] == tail_b[1:]
        or tail_a[1:] == tail_b
        or tail_a == tail_b[1:]
        or (
            len(tail_a) > 1
            and len(tail_b) > 1
            and tail_a[1::-1] == tail_b[:2]
            and tail_a[2:] == tail_b[2:]
        )
    )
