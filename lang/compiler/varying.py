"""Arguments made different, to see what depends on them. Owns the other value of a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def varied(value: Any) -> Any:
    """Another value of the same type and size, with another beginning and end; the value itself where none is known."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{'^' if value.startswith('~') else '~'}{value[::-1]}{'^' if value.endswith('~') else '~'}"
    if isinstance(value, list | tuple):
        items = [varied(item) for item in cast("list[Any]", value)]
        return tuple(items) if type(cast("Any", value)) is tuple else items
    if isinstance(value, Mapping):
        return {key: varied(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    return value
