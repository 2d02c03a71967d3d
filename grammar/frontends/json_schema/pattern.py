"""Syntax of ECMA-262 regular expressions, as the keyword `pattern` has them: text to a small tree.

Owns the parser and the tree. The tree speaks of code points (the `u` flag's view: a surrogate pair written as two escapes is one
character). What lies beyond regular languages (backreferences) or beyond ECMA-262 (inline flags, possessive and atomic groups,
\\A, \\Z) is refused by name with its column, never read as something else. Of the web-compatible leniency of Annex B only what every
engine agrees on is taken: identity escapes of punctuation, and braces or a closing bracket that stand for themselves. Knows nothing
of languages or schemas. Source: ECMA-262, section "Patterns" and Annex B.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from ....errors import GrammarError
from ...expr import MAX_CODE_POINT, normal_ranges, outside_ranges
from .categories import category_ranges

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class CharSet:
    """One character out of `ranges`."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Cat:
    """Parts, one after another."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any one of the parts."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Times:
    """`part`, `lo` to `hi` times (hi=None: no bound). Lazy and greedy are the same to a language."""

    part: Pattern
    lo: int
    hi: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """A zero-width place: "^", "$", "b" (word boundary) or "B" (not one)."""

    kind: str
    column: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """Lookahead: what follows here begins (negative: does not begin) with `part`."""

    part: Pattern
    negative: bool
    column: int


Pattern = CharSet | Cat | Or | Times | Edge | Ahead

DIGIT: Ranges = ((0x30, 0x39),)
WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Ranges = normal_ranges(
    [
        (9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F),
        (0x3000, 0x3000), (0xFEFF, 0xFEFF),
    ]
)  # fmt: skip
_DOT = CharSet(outside_ranges([(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]))
_CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
_CLASSES.update({name.upper(): outside_ranges(ranges) for name, ranges in list(_CLASSES.items())})
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_QUANTIFIER = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_BACKWARD_QUANTIFIER = re.compile(r"\{,\d+\}")
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_MAX_GROUP_DEPTH = 60
_MAX_LENGTH = 20_000


def parse(text: str, place: str) -> Pattern:
    """The tree of one pattern; GrammarError with the column at `place` for what is not taken."""
    if len(text) > _MAX_LENGTH:
        raise GrammarError(
            f"the pattern is longer than {_MAX_LENGTH} characters", place=place, keyword="pattern"
        )
    return _Parser(text, place).whole()


class _Parser:
    """Recursive descent over one pattern; `_at` is the next character."""

    def __init__(self, text: str, place: str) -> None:
        self._text = text
        self._place = place
        self._at = 0
        self._depth = 0

    def _refuse(self, what: str, column: int | None = None) -> NoReturn:
        shown = self._text if len(self._text) <= 80 else self._text[:77] + "..."
        column = self._at if column is None else column
        raise GrammarError(
            f"pattern {shown!r}: {what} (column {column + 1})", place=self._place, keyword="pattern"
        )

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else ""

    def _take(self, literal: str) -> bool:
        if self._text.startswith(literal, self._at):
            self._at += len(literal)
            return True
        return False

    def whole(self) -> Pattern:
        tree = self._alternatives()
        if self._at < len(self._text):
            self._refuse("unmatched )")
        return tree

    def _alternatives(self) -> Pattern:
        self._depth += 1
        if self._depth > _MAX_GROUP_DEPTH:
            self._refuse(f"groups nest deeper than {_MAX_GROUP_DEPTH}")
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        self._depth -= 1
        return branches[0] if len(branches) == 1 else Or(tuple(branches))

    def _sequence(self) -> Pattern:
        parts: list[Pattern] = []
        while self._at < len(self._text) and self._peek() not in "|)":
            parts.append(self._quantified())
        return parts[0] if len(parts) == 1 else Cat(tuple(parts))

    def _quantified(self) -> Pattern:
        column = self._at
        atom = self._atom()
        bounds = self._quantifier()
        if bounds is None:
            return atom
        if isinstance(atom, (Edge, Ahead)):
            self._refuse("a quantifier after an assertion", column)
        self._take("?")  # lazy: the same language
        if self._peek() == "+":
            self._refuse("possessive quantifiers are not ECMA-262")
        if self._peek() in ("*", "?") or self._quantifier_here():
            self._refuse("a quantifier after a quantifier")
        return Times(atom, *bounds)

    def _quantifier_here(self) -> bool:
        return _QUANTIFIER.match(self._text, self._at) is not None

    def _quantifier(self) -> tuple[int, int | None] | None:
        sign = self._peek()
        if sign in _SIGNS:
            self._at += 1
            return _SIGNS[sign]
        if sign != "{":
            return None
        found = _QUANTIFIER.match(self._text, self._at)
        if found is None:
            if _BACKWARD_QUANTIFIER.match(self._text, self._at):
                self._refuse(
                    "{,n} means a literal brace in ECMA-262 and a count elsewhere; write {0,n}"
                )
            return None
        column = self._at
        self._at = found.end()
        if max(len(found[1]), len(found[3] or "")) > 9:
            self._refuse("a repeat count of more than nine digits", column)
        low = int(found[1])
        high = low if not found[2] else int(found[3]) if found[3] else None
        if high is not None and high < low:
            self._refuse(f"the repeat {found[0]} has its bounds in the wrong order", column)
        return low, high

    def _atom(self) -> Pattern:
        char = self._peek()
        column = self._at
        if char in ("*", "+", "?") or (char == "{" and self._quantifier_here()):
            self._refuse("nothing to repeat")
        self._at += 1
        if char == "^" or char == "$":
            return Edge(char, column)
        if char == ".":
            return _DOT
        if char == "(":
            return self._group(column)
        if char == "[":
            return CharSet(self._char_class(column))
        if char == "\\":
            return self._escape(column)
        return _one(ord(char))

    def _group(self, column: int) -> Pattern:
        kind = ""
        if self._take("?"):
            kind = next((k for k in (":", "=", "!") if self._take(k)), "")
            if not kind:
                self._named_group(column)
        inner = self._alternatives()
        if not self._take(")"):
            self._refuse("a group is not closed", column)
        return Ahead(inner, kind == "!", column) if kind in ("=", "!") and kind else inner

    def _named_group(self, column: int) -> None:
        if self._text.startswith(("<=", "<!"), self._at):
            self._refuse("lookbehind is not supported", column)
        found = re.compile(r"<[A-Za-z_$][\w$]*>").match(self._text, self._at)
        if found is None:
            self._refuse(f"the group (?{self._peek()} is not ECMA-262 or not supported", column)
        self._at = found.end()

    def _escape(self, column: int) -> Pattern:
        char = self._peek()
        if not char:
            self._refuse("a lone backslash at the end", column)
        if char in "bB":
            self._at += 1
            return Edge(char, column)
        if char in "123456789":
            self._refuse("backreferences are not regular", column)
        if char == "k":
            self._refuse("named backreferences are not regular", column)
        value = self._escaped(column)
        return CharSet(value) if isinstance(value, tuple) else _one(value)

    def _escaped(self, column: int) -> int | Ranges:
        """What the escape after a backslash means, inside a class or outside: a code point, or a set of them."""
        char = self._peek()
        self._at += 1
        if char in _CLASSES:
            return _CLASSES[char]
        if char in "pP":
            ranges = self._property(column)
            return outside_ranges(ranges) if char == "P" else ranges
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "0" and not self._peek().isdigit():
            return 0
        if char == "c" and self._peek().isascii() and self._peek().isalpha():
            self._at += 1
            return ord(self._text[self._at - 1]) % 32
        if char == "x":
            return self._hex(2, column)
        if char == "u":
            return self._unicode(column)
        if not char or (char.isalnum() and char.isascii()):
            self._refuse(f"the escape \\{char} is not ECMA-262", column)
        return ord(char)

    def _hex(self, num_digits: int, column: int) -> int:
        digits = self._text[self._at : self._at + num_digits]
        if len(digits) < num_digits or not all(d in "0123456789abcdefABCDEF" for d in digits):
            self._refuse(f"an escape needs {num_digits} hexadecimal digits", column)
        self._at += num_digits
        return int(digits, 16)

    def _unicode(self, column: int) -> int:
        if self._take("{"):
            end = self._text.find("}", self._at)
            digits = self._text[self._at : max(end, self._at)]
            if not re.fullmatch(r"0*[0-9a-fA-F]{1,6}", digits) or int(digits, 16) > MAX_CODE_POINT:
                self._refuse("\\u{...} needs the number of a code point", column)
            self._at = end + 1
            return int(digits, 16)
        value = self._hex(4, column)
        if 0xD800 <= value < 0xDC00 and self._take("\\u"):
            low = self._hex(4, column)
            if 0xDC00 <= low < 0xE000:
                return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00)
            self._refuse("half of a surrogate pair", column)
        return value

    def _property(self, column: int) -> Ranges:
        end = self._text.find("}", self._at)
        if not self._take("{") or end < 0:
            self._refuse("\\p needs {Property}", column)
        name = self._text[self._at : end].removeprefix("General_Category=").removeprefix("gc=")
        self._at = end + 1
        ranges = category_ranges(name)
        if not ranges:
            self._refuse(
                f"the Unicode property {name!r} is not supported (general categories are)", column
            )
        return ranges

    def _char_class(self, column: int) -> Ranges:
        negative = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            if self._at >= len(self._text):
                self._refuse("a character class is not closed", column)
            low = self._class_atom()
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._class_atom()
                if isinstance(low, int) and isinstance(high, int):
                    if high < low:
                        self._refuse("a character range has its bounds in the wrong order")
                    ranges.append((low, high))
                    continue
                # a class escape is no bound: the hyphen stands for itself
                ranges.append((0x2D, 0x2D))
                ranges.extend(_as_ranges(high))
            ranges.extend(_as_ranges(low))
        return outside_ranges(ranges) if negative else normal_ranges(ranges)

    def _class_atom(self) -> int | Ranges:
        column = self._at
        char = self._peek()
        self._at += 1
        if char != "\\":
            return ord(char)
        if self._peek() == "b":
            self._at += 1
            return 8
        if self._peek() == "-":
            self._at += 1
            return 0x2D
        return self._escaped(column)


@lru_cache(maxsize=2048)
def _one(code_point: int) -> CharSet:
    return CharSet(normal_ranges([(code_point, code_point)]))


def _as_ranges(value: int | Ranges) -> Ranges:
    return ((value, value),) if isinstance(value, int) else value
