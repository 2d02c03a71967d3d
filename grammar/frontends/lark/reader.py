"""The tokens of a Lark grammar, read one after another.

Owns the expectations: what stands next, and the error where it is something else; names; and what other dialects write behind a name.
"""

from __future__ import annotations

from ....errors import GrammarError
from ..grammar_text import GrammarText
from .scanner import Token, tokens_of

_NAMES = {"end": "end of the grammar", "line": "end of the line"}


class Reader:
    """A place among the tokens of `source`. Raises GrammarError."""

    def __init__(self, source: GrammarText) -> None:
        self.source = source
        self._tokens = tokens_of(source)
        self._index = 0

    @property
    def peek(self) -> Token:
        """The token that stands next."""
        return self._tokens[self._index]

    def behind(self, count: int) -> Token:
        """The token `count` places behind the next one."""
        return self._tokens[min(self._index + count, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Step over a token. The end stays where it is."""
        token = self._tokens[self._index]
        if token.kind != "end":
            self._index += 1
        return token

    def takes(self, kind: str) -> bool:
        """Step over a token of this kind, if one stands next."""
        if self.peek.kind != kind:
            return False
        self.next()
        return True

    def expect(self, kind: str, wanted: str) -> Token:
        """Step over a token of this kind, which must stand next."""
        if self.peek.kind != kind:
            raise self.unexpected(wanted)
        return self.next()

    def unexpected(self, wanted: str) -> GrammarError:
        """The error for the token that stands next."""
        token = self.peek
        what = _NAMES.get(token.kind, f"{token.text!r:.20}")
        return self.source.error(f"unexpected {what}: {wanted}", token.at, keyword="syntax")

    def checked_name(self, token: Token) -> str:
        """The name that `token` spells, if it is one."""
        letters = token.text.strip("_")
        if not letters or not (letters.islower() or letters.isupper()) or token.text[-1] == "-":
            raise self.source.error(
                f"{token.text} is no name: rules are written in lower case, terminals in upper case",
                token.at,
                keyword="name",
            )
        return token.text

    def refuse_other_dialects(self) -> None:
        """What may stand behind a name in a grammar that is not Lark's, or goes beyond it."""
        behind = self.peek
        if behind.kind == "::=":
            raise self.source.error(
                "::= is GBNF, not Lark", behind.at, keyword="::=", hint="Lark writes name: ..."
            )
        if behind.kind == "::":
            raise self.source.error(
                "a rule with a parameter cannot be part of a constraint",
                behind.at,
                keyword="parametric",
            )
