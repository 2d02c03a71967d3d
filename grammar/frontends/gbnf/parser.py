"""The syntax of GBNF, read straight into expressions.

    rule ::= alternative | alternative     a rule ends with its line, unless a bracket is open or the next line begins with |
    "text"  [a-z_]  [^\\n]  .  name  ( ... )     each followed by * + ? {m} {m,} {m,n}, one after another     # comment

Owns the scanner and the recursive descent. `.` and negated classes take any character, line breaks too. Refused by name: references to
tokens, and look-aheads of other dialects. Source: the notation's description in llama.cpp, grammars/README.md.
"""

from __future__ import annotations

import re

from ....errors import GrammarError
from ...expr import Expr, alt, any_char, chars, lit, outside_ranges, ref, repeat, seq
from ..grammar_text import GrammarText

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t]|#[^\n]*|\r(?=\n))+")
_BLANK_LINES = re.compile(r"(?:[ \t\r\n]|#[^\n]*)+")
_BOUNDS = re.compile(r"\{[ \t]*(\d+)[ \t]*(,[ \t]*(\d*)[ \t]*)?\}")
_ESCAPES = {
    "n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-", "^": "^", "/": "/", "'": "'", "b": "\b",
    "f": "\f",
}  # fmt: skip
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
_SUFFIXES: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class _Bracket:
    """An open bracket, or the rule itself: its alternatives so far."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.items: list[Expr] = []
        self._branches: list[Expr] = []

    def end_branch(self) -> None:
        """The alternative that `items` hold is whole."""
        self._branches.append(seq(*self.items))
        self.items = []

    def whole(self) -> Expr:
        """All alternatives."""
        self.end_branch()
        return alt(*self._branches)


class Parser:
    """One grammar: `rules` by name, where each is defined, and the first place each name is called at."""

    def __init__(self, source: GrammarText) -> None:
        self.rules: dict[str, Expr] = {}
        self.places: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self._source = source
        self._text = source.text
        self._at = 0

    def parse(self) -> None:
        """Read the whole text. Raises GrammarError."""
        self._skip(lines=True)
        while self._at < len(self._text):
            self._rule()
            self._skip(lines=True)

    def _rule(self) -> None:
        at = self._at
        name = self._name()
        if name is None:
            raise self._unexpected("a rule begins with its name")
        self._skip()
        if not self._text.startswith("::=", self._at):
            raise self._unexpected(f"::= is needed behind the name {name}")
        self._at += 3
        self._skip(lines=True)
        body = self._body()
        line_start = self._text.rfind("\n", 0, self._at) + 1
        is_new_line = line_start > at and not self._text[line_start : self._at].strip()
        if self._at < len(self._text) and self._text[self._at] != "\n" and not is_new_line:
            raise self._unexpected("a rule ends with its line")
        if name in self.rules:
            first = self._source.place(self.places[name])
            raise self._source.error(
                f"the rule {name} is already defined at {first}", at, keyword="duplicate"
            )
        self.rules[name] = body
        self.places[name] = at

    def _body(self) -> Expr:
        """Alternatives up to the end of the rule. Brackets are kept on a stack of their own, so nesting costs no Python recursion."""
        open_: list[_Bracket] = []
        here = _Bracket(self._at)
        while True:
            is_inside = bool(open_)
            self._skip(lines=is_inside)
            if self._text.startswith("(", self._at):
                self._source.check_depth(len(open_) + 1, self._at)
                self._refuse_look_ahead()
                open_.append(here)
                here = _Bracket(self._at)
                self._at += 1
            elif is_inside and self._text.startswith(")", self._at):
                self._at += 1
                inner, here = here.whole(), open_.pop()
                here.items.append(self._repeated(inner, lines=bool(open_)))
            elif self._takes_bar():
                here.end_branch()
            elif (atom := self._atom()) is not None:
                here.items.append(self._repeated(atom, lines=is_inside))
            elif is_inside:
                raise self._unexpected(f"the ( of {self._source.place(here.start)} needs its )")
            else:
                return here.whole()

    def _takes_bar(self) -> bool:
        """Step over a `|`, which may stand on a later line, to the next alternative."""
        here = self._at
        self._skip(lines=True)
        if self._text.startswith("|", self._at):
            self._at += 1
            self._skip(lines=True)
            return True
        self._at = here
        return False

    def _repeated(self, item: Expr, *, lines: bool) -> Expr:
        """`item` with the repeats that follow it."""
        self._skip(lines=lines)
        while (bounds := self._bounds()) is not None:
            item = repeat(item, *bounds)
            self._skip(lines=lines)
        return item

    def _refuse_look_ahead(self) -> None:
        if self._text.startswith(("(=", "(!"), self._at):
            raise self._source.error(
                "a look-ahead cannot be part of a constraint", self._at, keyword="lookahead"
            )

    def _atom(self) -> Expr | None:
        at = self._at
        character = self._text[at : at + 1]
        if character == '"':
            return self._literal()
        if character == "[":
            return self._class()
        if character == ".":
            self._at += 1
            return any_char()
        if character in "<!" and character:
            raise self._source.error(
                "a reference to a token cannot be part of a constraint",
                at,
                keyword="token",
                hint="Special tokens are never part of a text; write the text itself",
            )
        name = self._name()
        if name is None:
            return None
        self._skip()
        if self._text.startswith("::=", self._at):
            self._at = at  # the next rule, on this line
            return None
        self._at = at + len(name)
        self.calls.setdefault(name, at)
        return ref(name)

    def _bounds(self) -> tuple[int, int | None] | None:
        """The repeat that stands here, if there is one."""
        character = self._text[self._at : self._at + 1]
        if character in _SUFFIXES:
            self._at += 1
            return _SUFFIXES[character]
        if character != "{":
            return None
        start = self._at
        found = _BOUNDS.match(self._text, start)
        if found is None:
            raise self._source.error("a repeat is {m}, {m,} or {m,n}", start, keyword="repeat")
        self._at = found.end()
        low = self._source.number(found[1], found.start(1))
        if found[2] is None:
            return low, low
        if not found[3]:
            return low, None
        high = self._source.number(found[3], found.start(3))
        if high < low:
            raise self._source.error(
                f"a repeat of {low} to {high} times has no meaning", start, keyword="repeat"
            )
        return low, high

    # ------------------------------------------------------------------------------------------ characters

    def _literal(self) -> Expr:
        start = self._at
        self._at += 1
        found: list[str] = []
        while not self._text.startswith('"', self._at):
            found.append(self._character(start, "string"))
        self._at += 1
        return lit("".join(found))

    def _class(self) -> Expr:
        start = self._at
        is_negated = self._text.startswith("[^", start)
        self._at += 1 + is_negated
        ranges: list[tuple[int, int]] = []
        while not self._text.startswith("]", self._at):
            at = self._at
            low = high = ord(self._character(start, "class"))
            is_range = self._text.startswith("-", self._at)
            if is_range and not self._text.startswith("-]", self._at):
                self._at += 1
                high = ord(self._character(start, "class"))
            if high < low:
                raise self._source.error("the range ends before it begins", at, keyword="class")
            ranges.append((low, high))
        self._at += 1
        if not ranges:
            raise self._source.error("the class is empty", start, keyword="class")
        return chars(*(outside_ranges(ranges) if is_negated else ranges))

    def _character(self, start: int, kind: str) -> str:
        """The next character of a string or class that began at `start`, escapes resolved."""
        at = self._at
        character = self._text[at : at + 1]
        if character in ("", "\n"):
            raise self._source.error(f"this {kind} is not closed on its line", start, keyword=kind)
        if character != "\\":
            self._at += 1
            return character
        letter = self._text[at + 1 : at + 2]
        num_digits = _HEX_ESCAPES.get(letter, 0)
        self._at += 2 + num_digits
        if num_digits:
            digits = self._text[at + 2 : self._at]
            if not re.fullmatch(f"[0-9a-fA-F]{{{num_digits}}}", digits):
                raise self._source.error(
                    f"\\{letter} needs {num_digits} hexadecimal digits", at, keyword="escape"
                )
            return self._source.character(int(digits, 16), at)
        if letter not in _ESCAPES:
            raise self._source.error(
                f"the escape \\{letter.strip()} is unknown", at, keyword="escape"
            )
        return _ESCAPES[letter]

    def _name(self) -> str | None:
        found = _NAME.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[0]

    def _skip(self, *, lines: bool = False) -> None:
        found = (_BLANK_LINES if lines else _BLANK).match(self._text, self._at)
        if found is not None:
            self._at = found.end()

    def _unexpected(self, wanted: str) -> GrammarError:
        character = self._text[self._at : self._at + 1]
        what = {"": "end of the grammar", "\n": "end of the line"}.get(character, repr(character))
        return self._source.error(f"unexpected {what}: {wanted}", self._at, keyword="syntax")
