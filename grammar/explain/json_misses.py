"""Why a JSON text misses its schema: layout, spelling, or something that is lacking.

Owns the comparison with other layouts, and the notes. Each comparison compiles the schema again with another layout, so this is for people,
not for a hot path. Knows nothing of words for what was expected.
"""

from __future__ import annotations

import json
from typing import Any, cast

from msgspec.structs import replace

from ...errors import GrammarError
from ..expr import Limits
from ..frontends.json_schema.source import Spelled, parse, value_text
from ..spec import JsonSchema
from .byte_reading import byte_matcher, is_output
from .json_places import OpenPlace, parts_behind

SPACE, ORDER = "white space", "order of properties"


def differences(spec: JsonSchema, text: str, limits: Limits | None) -> tuple[str, ...]:
    """What keeps an accepted text from being accepted as compact text in declared order."""
    strict = replace(spec, whitespace="compact", any_order=False)
    if spec == strict or _takes(strict, text, limits):
        return ()
    if _takes(replace(spec, any_order=False), text, limits):
        return (SPACE,)
    return (ORDER,) if _takes(replace(spec, whitespace="compact"), text, limits) else (SPACE, ORDER)


def lacking_freedoms(spec: JsonSchema, text: str, limits: Limits | None) -> tuple[str, ...]:
    """The fewest freedoms of layout under which a refused text would be accepted; none if no layout helps."""
    spaced = replace(spec, whitespace="flexible")
    both = replace(spaced, any_order=True)
    if spec == both or not _takes(both, text, limits):
        return ()
    if _takes(spaced, text, limits):
        return (SPACE,)
    return (ORDER,) if _takes(replace(spec, any_order=True), text, limits) else (SPACE, ORDER)


def note_on(
    spec: JsonSchema,
    text: str,
    position: int,
    place: OpenPlace,
    completion: str,
    limits: Limits | None,
) -> str:
    """What helps to understand why `text` is refused at `position`, where `completion` is a way on; empty if there is nothing to say."""
    try:
        json.loads(text)
        value = parse(text, Limits())
    except json.JSONDecodeError as error:
        message = error.msg.removesuffix(" at")
        if error.pos != position or "control character" in message:
            return f"the text is not JSON ({message} at {error.lineno}:{error.colno})"
        return ""
    except (GrammarError, ValueError, RecursionError):
        return ""
    loose = replace(spec, whitespace="compact", any_order=True)
    if _takes(loose, value_text(_with_whole_numbers(value)), limits):
        return "the value is valid, but this spelling of it is never written (numbers, escapes, long white space)"
    return _lack(text[position], text[:position] + completion, position, place)


def _lack(found: str, completed: str, position: int, place: OpenPlace) -> str:
    """What a container that ends at `position` still needs."""
    if found not in "]}":
        return ""
    parts = parts_behind(completed, position, place.container)
    if found == "}" and parts:
        keys = (completed[at:].partition(":")[0].strip() for at in parts)
        return f"the object at {place.container} still needs {', '.join(keys)}"
    items = "1 more item" if len(parts) == 1 else f"{len(parts)} more items"
    return f"the array at {place.container} still needs {items}" if parts else ""


def _takes(spec: JsonSchema, text: str, limits: Limits | None) -> bool:
    try:
        return is_output(byte_matcher(spec, limits), text)
    except GrammarError:
        return False


def _with_whole_numbers(value: Any) -> Any:
    """The value with integers such as 1.0 or 1e3 written as integers."""
    if isinstance(value, Spelled):
        return int(value) if value == int(value) else value
    if isinstance(value, list):
        return [_with_whole_numbers(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {k: _with_whole_numbers(v) for k, v in cast("dict[str, Any]", value).items()}
    return value
