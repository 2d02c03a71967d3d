"""The strings of shapes, as a language of decoded characters.

Owns how lengths, patterns, formats and excluded values of a shape meet in one language. Knows nothing of JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...expr import NEVER, Expr, alt, conj, minus, repeat
from .code_points import ANY_CHAR, accepts, text_language, within_lengths
from .shape import STRING, Shape


def string_language(shapes: Iterable[Shape]) -> Expr:
    """The strings that are values of some of the shapes."""
    parts: list[Expr] = []
    for shape in shapes:
        if shape.values is not None:
            parts.extend(text_language(v) for v in shape.values.values() if isinstance(v, str))
        elif shape.kinds & STRING:
            parts.append(shape_language(shape))
    return alt(*parts)


def shape_language(shape: Shape) -> Expr:
    """The strings of one shape without an enum."""
    language = _all_within(shape.languages, shape.min_length, shape.max_length)
    texts = [v for v in shape.excluded.values() if isinstance(v, str)]
    outside = [
        *shape.not_languages,
        *(text_language(text) for text in texts if accepts(language, text)),
    ]
    return minus(language, alt(*outside)) if outside else language


def _all_within(languages: list[Expr], low: int, high: int | None) -> Expr:
    """The strings of all of `languages` with `low` to `high` characters."""
    if not languages:
        return repeat(ANY_CHAR, low, high)
    narrowed = [within_lengths(language, low, high) for language in languages]
    if len(narrowed) == 1 or NEVER in narrowed:
        return NEVER if NEVER in narrowed else narrowed[0]
    return conj(*narrowed)
