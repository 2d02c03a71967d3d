"""The values of `format`: which strings (for a few: which numbers) each one names.

Owns the table of names. Formats are asserted, not annotations; any name that is not in the table is an annotation, as its meaning is
its author's. What is made of a format is kept for the process. Knows nothing of schemas.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ...expr import Expr
from .bounded_formats import register
from .format_patterns import PATTERNS
from .pattern_language import fixed_language
from .regex_format import regex_language

_BOUNDS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


@dataclass(frozen=True, slots=True)
class Format:
    """What a format demands of strings (`language`) or of numbers (`bounds`)."""

    language: Expr | None = None
    bounds: tuple[int, int] | None = None


def format_named(name: str, place: str) -> Format | None:
    """What the format `name` demands; None when it is an annotation."""
    return _known(name) if name in _BOUNDS or name in PATTERNS or name == "regex" else None


@cache
def _known(name: str) -> Format:
    if name in _BOUNDS:
        return Format(bounds=_BOUNDS[name])
    if name == "regex":
        return Format(regex_language())
    language = fixed_language(f"^({PATTERNS[name]})$")
    register(name, language)
    return Format(language)
