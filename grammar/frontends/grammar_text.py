"""The source text of a grammar: its checks, places in it, and errors that show the line with a caret.

Owns positions (line and column, both from 1, in code points) and the shape of an error message. Knows nothing of any grammar's syntax.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from ...errors import GrammarError
from ..expr import Limits

_SHOWN = 100  # characters of a line that an error shows
_MARGIN = 60  # of them before the place, if the line is longer
_NUM_DIGITS = 9  # of a number that is read: more than any limit allows


class GrammarText:
    """One grammar's text. Raises GrammarError at once if it is longer than `limits.spec_bytes` or holds lone surrogates."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        if len(text) > limits.spec_bytes:
            raise GrammarError(
                f"the grammar has {len(text)} characters, more than limits.spec_bytes={limits.spec_bytes}",
                keyword="spec_bytes",
            )
        surrogate = re.search("[\ud800-\udfff]", text)
        if surrogate is not None:
            raise self.error("a lone surrogate cannot be part of any text", surrogate.start())

    def place(self, at: int) -> str:
        """Line and column of the character `at`, as "line:column"."""
        return f"{self.text.count(chr(10), 0, at) + 1}:{at - self._line_start(at) + 1}"

    def error(self, message: str, at: int, *, keyword: str = "", hint: str = "") -> GrammarError:
        """An error at the character `at`: the message, below it the line, below that a caret."""
        start = self._line_start(at)
        end = self.text.find("\n", at)
        line = self.text[start : len(self.text) if end < 0 else end].rstrip("\r")
        column = at - start
        if len(line) > _SHOWN:
            first = max(0, min(column - _MARGIN, len(line) - _SHOWN))
            line, column = line[first : first + _SHOWN], column - first
        shown = "".join(c if c.isprintable() else " " for c in line)
        whole = f"{message}\n    {shown}\n    {' ' * column}^"
        return GrammarError(whole, place=self.place(at), hint=hint, keyword=keyword)

    def unknown(self, what: str, name: str, at: int, known: Iterable[str]) -> GrammarError:
        """The error for a name that nothing defines, with the nearest name that is. `what` tells it to the reader."""
        near = difflib.get_close_matches(name, list(known), 1)
        hint = f"Did you mean {near[0]}?" if near else ""
        return self.error(f"{what} is not defined", at, keyword=name, hint=hint)

    def number(self, digits: str, at: int) -> int:
        """The value of a repeat's bound, checked against `limits.repeat_bound`."""
        bound = self.limits.repeat_bound
        value = int(digits) if len(digits) <= _NUM_DIGITS else bound + 1
        if value > bound:
            raise self.error(
                f"a repeat of {digits[:20]} times exceeds limits.repeat_bound={bound}",
                at,
                keyword="repeat_bound",
            )
        return value

    def check_depth(self, depth: int, at: int) -> None:
        """Raise the error for brackets nested deeper than `limits.depth`."""
        if depth > self.limits.depth:
            raise self.error(
                f"brackets are nested deeper than limits.depth={self.limits.depth}",
                at,
                keyword="depth",
            )

    def character(self, code_point: int, at: int) -> str:
        """The character of an escape; an error for what is no character."""
        if code_point > 0x10FFFF or 0xD800 <= code_point <= 0xDFFF:
            raise self.error(f"U+{code_point:04X} is no character that a text can hold", at)
        return chr(code_point)

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1
