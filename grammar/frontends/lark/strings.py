"""Strings and regular expressions of a Lark grammar, from their spelling to what they mean.

Owns escapes and flags. An escape that is unknown is refused: what other readers make of it differs.
"""

from __future__ import annotations

import re

from ..grammar_text import GrammarText
from .nodes import Pattern, Text
from .scanner import Token

_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_CHARACTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "\\": "\\", '"': '"'}
_FLAGS = "imsxau"


def text_of(source: GrammarText, token: Token) -> Text:
    """The string that a token spells."""
    ignores_case = token.text.endswith("i")
    inner = token.text[1 : -2 if ignores_case else -1]
    pieces: list[str] = []
    done = 0
    for found in _ESCAPE.finditer(inner):
        at = token.at + 1 + found.start()
        digits = found[1] or found[2] or found[3]
        if digits is None and found[4] not in _CHARACTERS:
            hint = f"Write \\\\{found[4]} for a backslash" if found[4].isprintable() else ""
            raise source.error(
                f"the escape {found[0]!r:.12} is unknown", at, keyword="escape", hint=hint
            )
        meant = _CHARACTERS[found[4]] if digits is None else source.character(int(digits, 16), at)
        pieces += [inner[done : found.start()], meant]
        done = found.end()
    return Text("".join([*pieces, inner[done:]]), ignores_case, token.at)


def pattern_of(source: GrammarText, token: Token) -> Pattern:
    """The regular expression that a token spells; its flags, those that lead the expression included."""
    end = token.text.rindex("/")
    flags = token.text[end + 1 :]
    for index, flag in enumerate(flags):
        if flag not in _FLAGS:
            raise source.error(
                f"the flag {flag} of a regular expression is not supported",
                token.at + end + 1 + index,
                keyword="flag",
            )
    return Pattern(token.text[1:end], "".join(sorted(set(flags))), token.at)
