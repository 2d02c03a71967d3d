"""Schemas that mean the same wherever they stand, and their texts as they are remembered from one schema to the next.

Owns which schemas are such leaves, and what of one decides its text. A leaf has keywords of strings, numbers and constants only, or is an
array or open object of leaves; none of its keywords asks what stands elsewhere in its document. So equal leaves have equal texts in every
document, those with parts in every document of one layout. Knows nothing of what the keywords mean.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import cast

from ...expr import (
    CONSTANTS,
    Alt,
    And,
    Bytes,
    Chars,
    Expr,
    Lit,
    Members,
    Minus,
    Ref,
    Repeat,
    Seq,
    Unlisted,
)
from .keywords import ANNOTATIONS
from .memo import Memo
from .source import Json

_DECIDING = frozenset(
    ("type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "format",
     "minItems", "maxItems")
)  # fmt: skip
_BELOW = frozenset(("items", "additionalProperties"))
_SILENT = ANNOTATIONS - {"nullable"}
_LISTS = frozenset(("type", "enum"))
_WITH_PARTS = frozenset(("array", "object"))
_WITHOUT_PARTS = frozenset((Lit, Bytes, Chars, Ref))
_MAX_DEPTH = 4  # of leaves in leaves
_MAX_KEPT_PARTS = 1 << 17  # parts of texts that are remembered, and characters of their keys
_MAX_PARTS = 4096  # of one text, and characters of its key

Key = tuple[Hashable, ...]
TEXTS: Memo[Key, Expr] = Memo(_MAX_KEPT_PARTS)
"""What is remembered: texts under the default limits."""


def key_of(schema: dict[str, Json], layout: str, depth: int = _MAX_DEPTH) -> Key | None:
    """What decides the text of a leaf; None for what is no leaf, or might be wrong. Numbers that are no plain integers are no part of one.

    `layout` names the layout, empty if it has levels: what has parts is no leaf there.
    """
    parts: list[Hashable] = []
    for keyword, value in schema.items():
        if keyword in _DECIDING:
            kind = cast("type[object]", type(value))
            if kind is list and keyword in _LISTS:
                listed = cast("list[Json]", value)
                if not all(type(item) is str for item in listed):
                    return None
                value = tuple(listed)
            elif kind is not str and kind is not int:
                return None
        elif keyword in _BELOW:
            if type(value) is dict:
                value = key_of(cast("dict[str, Json]", value), layout, depth - 1) if depth else None
            elif type(value) is not bool:
                return None
            if value is None:
                return None
        elif keyword in _SILENT:
            continue
        else:
            return None
        parts.append(keyword)
        parts.append(value)
    if _is_simple(schema):
        return tuple(parts)
    return (layout, *parts) if layout else None


def _is_simple(schema: dict[str, Json]) -> bool:
    """Do all its values have no parts? The schema is a leaf so far."""
    if "enum" in schema or "const" in schema:
        return True
    kinds = schema.get("type")
    if type(kinds) is str:
        return kinds not in _WITH_PARTS
    return type(kinds) is list and _WITH_PARTS.isdisjoint(cast("list[str]", kinds))


def keep(key: Key, text: Expr) -> None:
    """Remember the text of a leaf, unless it is large."""
    weight = _num_parts(text) + _num_characters(key)
    if weight <= _MAX_PARTS:
        TEXTS.put(key, text, weight)


def _num_characters(part: Hashable) -> int:
    if isinstance(part, tuple):
        return sum(map(_num_characters, cast("tuple[Hashable, ...]", part)))
    return len(part) if isinstance(part, str) else 1


def _num_parts(text: Expr) -> int:
    """How many parts a text is made of, constants of the process left out; a number above `_MAX_PARTS` if they are more than that."""
    seen: set[int] = set()
    work: list[Expr] = [text]
    num_extra = 0
    for part in work:
        key = id(part)
        if key in seen or key in CONSTANTS:
            continue
        seen.add(key)
        kind = type(part)
        if kind in _WITHOUT_PARTS:
            continue
        if len(seen) > _MAX_PARTS:
            break
        match part:
            case Seq(items) | Alt(items) | And(items):
                work += items
            case Repeat(item):
                work.append(item)
            case Minus(left, right):
                work += (left, right)
            case Members(members, separator):
                work += (separator, *(member.text for member in members))
            case Unlisted(texts):
                num_extra += sum(map(len, texts))
            case _:
                pass
    return len(seen) + num_extra
