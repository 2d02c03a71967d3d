"""Constant text as an explicit node.

Owns `text`, for programs that build pieces before they append them. Strings need no wrapping in `s += "..."`.
"""

from __future__ import annotations

from ..ir import Text


def text(constant: str) -> Text:
    """Constant text. `text("a") + gen("x")` is `"a" + gen("x")`."""
    return Text(constant)
