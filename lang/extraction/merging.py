"""The values of a long document's parts become one value. Owns the rule, and must not know documents or how they were cut.

The rule "union", at every place of the value, over the parts in their order:

    objects    property by property; a property that only some parts have is taken from those
    arrays     one after the other; an item that was there already (the same JSON) is left out; cut at maxItems
    booleans   true if a part says true
    others     the first that says something: not null, not "", not blank
    mixed kinds   the first that is not null

Where the merged object or array breaks the schema of its place (alternatives that do not mix, maxProperties, ...), the first part's stays
as it is, so the result always satisfies the schema if each part does. The rule "first" takes the first part's value that says something.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from ...errors import ConfigError
from .references import resolved
from .target import Target

Merge: TypeAlias = Callable[[Sequence[Any]], Any]
RULES = ("union", "first")


def merge_rule(rule: str | Merge, target: Target) -> Merge:
    """The function behind a rule's name, or the caller's own: it gets the parts' values in order."""
    if callable(rule):
        return rule
    if rule == "union":
        return Union(target).merge
    if rule == "first":
        return first_telling
    raise ConfigError(
        f"merge={rule!r} is not a rule", place="merge", hint=f"The rules are {', '.join(RULES)}"
    )


def first_telling(values: Sequence[Any]) -> Any:
    """The first value that is not empty, else the first."""
    return next((value for value in values if not _is_silent(value)), values[0])


class Union:
    """The rule "union" under one schema."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def merge(self, values: Sequence[Any]) -> Any:
        """One value of all."""
        return self._merge(values, self._target.schema)

    def _merge(self, values: Sequence[Any], schema: Any) -> Any:
        """`schema` is the part of the schema that holds here; {} where that is not plain to see."""
        telling = [value for value in values if value is not None]
        if len(telling) < 2:
            return telling[0] if telling else None
        node = resolved(self._target.schema, schema)
        if all(isinstance(value, dict) for value in telling):
            merged: Any = self._objects(telling, node)
        elif all(isinstance(value, list) for value in telling):
            merged = _arrays(telling, node)
        elif all(isinstance(value, bool) for value in telling):
            merged = any(telling)
        else:
            return first_telling(telling)
        return merged if self._target.first_error(merged, schema) is None else telling[0]

    def _objects(self, values: Sequence[dict[str, Any]], node: dict[str, Any]) -> dict[str, Any]:
        found = node.get("properties")
        declared = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        keys = dict.fromkeys(key for value in values for key in value)
        order = dict.fromkeys([*(key for key in declared if key in keys), *keys])
        return {
            key: self._merge([v[key] for v in values if key in v], declared.get(key, {}))
            for key in order
        }


def _arrays(values: Sequence[list[Any]], node: dict[str, Any]) -> list[Any]:
    seen: dict[str, Any] = {}
    for item in (item for value in values for item in value):
        seen.setdefault(json.dumps(item, sort_keys=True), item)
    most = node.get("maxItems")
    items = list(seen.values())
    return items[:most] if isinstance(most, int) else items


def _is_silent(value: Any) -> bool:
    return value is None or value in ({}, []) or (isinstance(value, str) and not value.strip())
