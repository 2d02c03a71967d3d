"""The bodies of definitions in a Lark grammar: alternatives, sequences, repeats and what they are made of.

Owns that part of the syntax. Names are looked up later.
"""

from __future__ import annotations

from .brackets import Bracket
from .nodes import Name, Node, Schema, Span, Text, Times
from .reader import Reader
from .scanner import Token
from .strings import pattern_of, text_of

_SUFFIXES: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_DIVIDERS = ("|", "&", "->")
_ATOMS = ("name", "string", "regexp", "json")


class Bodies:
    """Reads bodies off a reader's tokens. Raises GrammarError."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._source = reader.source

    def body(self) -> Node:
        """Alternatives up to the end of the definition. Brackets are kept on a stack of their own, so nesting costs no Python recursion."""
        open_: list[Bracket] = []
        here = Bracket(Token("body", "", self._reader.peek.at))
        while True:
            token = self._reader.peek
            if token.kind in ("(", "[") or self._is_call():
                name = self._reader.next() if token.kind == "name" else None
                self._source.check_depth(len(open_) + 1, token.at)
                open_.append(here)
                here = Bracket(self._reader.next(), name)
            elif open_ and token.kind == here.closing:
                self._refuse_dangling(here)
                self._reader.next()
                inner, here = here.whole(), open_.pop()
                here.add(self._repeated(here.negated(inner)))
            elif token.kind in _DIVIDERS or (token.kind == "," and here.is_call):
                self._refuse_dangling(here)
                self._divide(here)
            elif token.kind == "~":
                here.negate(self._reader.next().at)
            elif token.kind in _ATOMS:
                here.add(self._repeated(here.negated(self._atom())))
            else:
                self._refuse_dangling(here)
                if open_:
                    opening = here.opening
                    place = self._source.place(opening.at)
                    raise self._reader.unexpected(
                        f"the {opening.text} of {place} needs its {here.closing}"
                    )
                return here.whole()

    def _divide(self, here: Bracket) -> None:
        token = self._reader.next()
        if token.kind == "|":
            here.end_branch()
        elif token.kind == "&":
            here.end_factor(token.at)
        elif token.kind == ",":
            here.end_argument()
        else:  # an alias names a branch of the syntax tree
            self._reader.expect("name", "an alias is a name")
            if self._reader.peek.kind not in ("|", "line", "end", here.closing):
                raise self._reader.unexpected("an alias ends its alternative")

    def _is_call(self) -> bool:
        """Whether a template with its arguments begins here, and not a name with a repeat."""
        is_named = (self._reader.peek.kind, self._reader.behind(1).kind) == ("name", "{")
        return is_named and self._reader.behind(2).kind not in ("number", ",")

    def _atom(self) -> Node:
        token = self._reader.next()
        if token.kind == "name":
            name = self._reader.checked_name(token)
            self._reader.refuse_other_dialects()
            return Name(name, token.at)
        if token.kind == "regexp":
            return pattern_of(self._source, token)
        if token.kind == "json":
            return Schema(token.text, token.at)
        first = text_of(self._source, token)
        return self._span(first) if self._reader.peek.kind == ".." else first

    def _span(self, first: Text) -> Node:
        self._reader.next()
        last = text_of(
            self._source, self._reader.expect("string", "the end of the range is needed")
        )
        for end in (first, last):
            if len(end.value) != 1 or end.ignores_case:
                raise self._source.error(
                    "a range is between two single characters", end.at, keyword="range"
                )
        if last.value < first.value:
            raise self._source.error("the range ends before it begins", first.at, keyword="range")
        return Span(first.value, last.value, first.at)

    def _repeated(self, item: Node) -> Node:
        """`item` with the repeats that follow it."""
        while True:
            token = self._reader.peek
            if token.kind in _SUFFIXES:
                self._reader.next()
                item = Times(item, *_SUFFIXES[token.kind])
            elif token.kind == "~" and self._reader.behind(1).kind == "number":
                self._reader.next()
                low = high = self._number()
                if self._reader.takes(".."):
                    high = self._number()
                item = self._times(item, low, high, token)
            elif token.kind == "{":
                self._reader.next()
                low = 0 if self._reader.peek.kind == "," else self._number()
                high: int | None = low
                if self._reader.takes(","):
                    high = None if self._reader.peek.kind == "}" else self._number()
                self._reader.expect("}", "the bounds end with }")
                item = self._times(item, low, high, token)
            else:
                return item

    def _times(self, item: Node, low: int, high: int | None, token: Token) -> Node:
        if high is not None and high < low:
            raise self._source.error(
                f"a repeat of {low} to {high} times has no meaning", token.at, keyword="repeat"
            )
        return Times(item, low, high)

    def _number(self) -> int:
        token = self._reader.expect("number", "a number is needed")
        if not token.text.isdigit():
            raise self._source.error("a repeat's bound has no sign", token.at, keyword="repeat")
        return self._source.number(token.text, token.at)

    def _refuse_dangling(self, here: Bracket) -> None:
        if here.is_waiting:
            raise self._reader.unexpected("~ negates what stands behind it")
