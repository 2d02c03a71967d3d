"""Is an output a row? JSON text to value and back, checked. Owns the strictness of both ways; must not know documents or requests."""

from __future__ import annotations

import json
from typing import Any

from ...errors import OutputError
from .target import Target


def read_output(target: Target, text: str) -> Any:
    """The value of an output. OutputError if it is no JSON, or breaks the schema."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        write_value(value)
    except (ValueError, RecursionError) as error:
        raise OutputError(f"the output is no JSON: {error}") from None
    target.check(value)
    return value


def write_value(value: Any) -> str:
    """Compact JSON text. A lone surrogate is escaped; a number beyond what JSON readers take (1e999) is a ValueError."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text


def write_merged(value: Any) -> str:
    """The JSON text of what a caller's merge made. OutputError if it is no JSON value."""
    try:
        return write_value(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise OutputError(f"the merged value is no JSON: {error}", hint="See merge=") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
