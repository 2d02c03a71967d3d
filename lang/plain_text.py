"""What may stand in a text: characters, not halves of them.

Owns the check that a text can be encoded, made where the program hands it over. Must not know nodes, branches or messages.
"""

from __future__ import annotations

from ..errors import PromptError
from .place import user_place


def check_text(text: str, place: str = "") -> None:
    """PromptError if `text` has a lone surrogate, which nothing can encode. Without a place, the program's line is named."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(
            f"character {error.start} of the text is the lone surrogate {text[error.start]!a}",
            place=place or str(user_place()),
            hint="Decode the bytes it comes from with errors='replace'",
        ) from None
