"""A Lark grammar's text as tokens.

Owns strings, regular expressions, comments and where lines end: an alternative on the next line and open brackets continue a rule. Refused
by name here, because nothing else can come of them: references to special tokens and to other grammars.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ..grammar_text import GrammarText

_BLANK = re.compile(r"(?:[ \t\f\r]|(?://|#)[^\n]*|\\[ \t\r]*\n)+")
_LINES = re.compile(r"(?:[ \t\f\r\n]|(?://|#)[^\n]*|\\[ \t\r]*\n)+")
_TOKEN = re.compile(
    r"""
    (?P<name>[A-Za-z_](?:[A-Za-z0-9_]|-(?!>))*)
  | (?P<string>"(?:\\.|[^"\\\n])*"(?:i(?![A-Za-z0-9_]))?)
  | (?P<regexp>/(?:\\(?:.|\n)|[^/\\])+/[A-Za-z]*)
  | (?P<number>[+-]?[0-9]+)
  | (?P<directive>%[A-Za-z_]*)
  | (?P<sign>->|\.\.|::=|::|[:|()\[\]{},.~?*+!&=])
    """,
    re.VERBOSE,
)
_REFUSED = {
    "<": ("a special token", "token", "Special tokens are never part of a text"),
    "@": ("a reference to another grammar", "reference", ""),
}
_UNCLOSED = {'"': ("string", "string"), "/": ("regular expression", "regexp")}
_OPENING, _CLOSING = "([{", ")]}"
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is name, string, regexp, number, directive, json, line, end, or the sign itself."""

    kind: str
    text: str
    at: int


def tokens_of(source: GrammarText) -> list[Token]:
    """All tokens, the last of them `end`. Raises GrammarError."""
    tokens: list[Token] = []
    num_open = 0
    at = 0
    while True:
        at = _after_blanks(source.text, at, tokens, is_inside=num_open > 0)
        if at >= len(source.text):
            tokens.append(Token("end", "", at))
            return tokens
        token = _token(source, at)
        at += len(token.text)
        num_open += (token.kind in _OPENING) - (token.kind in _CLOSING)
        num_open = max(num_open, 0)
        if token.text == "%json":
            token = _schema(source, token, at)
            at = token.at + len(token.text)
        if token.kind == "|" and tokens and tokens[-1].kind == "line":
            tokens.pop()  # the alternative goes on
        tokens.append(token)


def _after_blanks(text: str, at: int, tokens: list[Token], *, is_inside: bool) -> int:
    """Step over blanks and comments; the end of a line is a token, unless a bracket is open."""
    found = _BLANK.match(text, at)
    at = at if found is None else found.end()
    if not text.startswith("\n", at):
        return at
    if tokens and tokens[-1].kind != "line" and not is_inside:
        tokens.append(Token("line", "\n", at))
    found = _LINES.match(text, at)
    return at if found is None else found.end()


def _token(source: GrammarText, at: int) -> Token:
    found = _TOKEN.match(source.text, at)
    if found is None:
        raise _no_token(source, at)
    kind = str(found.lastgroup)
    text = found[0]
    if kind == "regexp" and "\n" in text and "x" not in text[text.rindex("/") :]:
        raise source.error(
            "this regular expression is not closed on its line",
            at,
            keyword="regexp",
            hint="Only with the flag x may it have several",
        )
    return Token(text if kind == "sign" else kind, text, at)


def _no_token(source: GrammarText, at: int) -> Exception:
    character = source.text[at]
    if character in _REFUSED:
        name, keyword, hint = _REFUSED[character]
        return source.error(
            f"{name} cannot be part of a constraint", at, keyword=keyword, hint=hint
        )
    if character in _UNCLOSED:
        kind, keyword = _UNCLOSED[character]
        return source.error(f"this {kind} is not closed", at, keyword=keyword)
    return source.error(f"unexpected {character!r}", at, keyword="syntax")


def _schema(source: GrammarText, directive: Token, at: int) -> Token:
    """The JSON value behind `%json`, as it stands."""
    found = _LINES.match(source.text, at)
    start = at if found is None else found.end()
    try:
        _, end = _DECODER.raw_decode(source.text, start)
    except (ValueError, RecursionError) as error:
        place = min(getattr(error, "pos", start), len(source.text))
        raise source.error(
            f"the schema behind %json is not JSON: {getattr(error, 'msg', 'nested too deeply')}",
            place,
            keyword="%json",
        ) from None
    return Token("json", source.text[start:end], start)
