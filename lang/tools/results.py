"""A tool's result as text for the model.

Owns its form: texts as they are, other values as JSON, errors as one line; long ones are cut. Must not know calls or prompts.
"""

from __future__ import annotations

from typing import Any

from ...errors import ProgramError
from ..schema import plain_json

MAX_RESULT_CHARS = 10_000


def value_text(value: Any, max_chars: int = MAX_RESULT_CHARS) -> str:
    """A result in words: a text as it is, else JSON, else `str(value)`; behind `max_chars` characters only how many there were."""
    if isinstance(value, str):
        text = value
    else:
        try:
            text = plain_json(value)
        except ValueError:
            text = str(value)
    return cut(text, max_chars)


def error_text(error: BaseException, max_chars: int = MAX_RESULT_CHARS) -> str:
    """What the model is told of a call that failed."""
    return cut(f"error: {type(error).__name__}: {error}", max_chars)


def cut(text: str, max_chars: int) -> str:
    """The text, or its beginning and how much is left out."""
    if max_chars < 1:
        raise ProgramError(f"{max_chars} characters hold no result", place="max_result_chars")
    left = len(text) - max_chars
    return text if left <= 0 else f"{text[:max_chars]} ... ({left} more characters)"


def result_text(results: list[str]) -> str:
    """The user message that holds the results of one turn, in the order of the calls."""
    from ...runtime.tools import result_text as one

    return "\n".join(map(one, results))
