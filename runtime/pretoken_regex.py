"""Which two characters can stand side by side inside one match of a pre-tokenizer's regex, and which never can.

Owns a parser for the small regex dialect that pre-tokenizers use, and the follow relation of its positions (Glushkov 1961, "The abstract
theory of automata": position q may follow position p). Knows nothing of tokenizers or tokens.

A text is cut into the successive matches of the regex. If no position whose set holds the character b can follow one whose set holds a,
then no match spans the place between a and b, in any text: the text is always cut there. For the cut to be the same when the text ends
there, nothing may look across: a lookahead is allowed only over a single character set, and `may_join` answers True for characters after
which one can be evaluated. Whatever else the parser does not know makes `Pattern.parse` give None.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

CharSet = Callable[[str], bool]
_WHITE_SPACE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {
    chr(code) for code in range(0x2000, 0x200B)
}
_ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "f": "\f", "v": "\v"}
_MAX_POSITIONS = 500


class _Unknown(Exception):
    """A construct outside the dialect."""


@dataclass(slots=True)
class _Part:
    """A sub-expression: the positions it can begin and end with, and whether it can be empty."""

    first: set[int] = field(default_factory=set[int])
    last: set[int] = field(default_factory=set[int])
    nullable: bool = True


class Pattern:
    """The follow relation of one regex."""

    def __init__(
        self, sets: list[CharSet], follow: list[set[int]], single: set[int], looked: set[int]
    ) -> None:
        self._sets = sets
        self._follow = follow
        self._single = single
        self._looked = looked

    @staticmethod
    def parse(source: str) -> Pattern | None:
        """The pattern of `source`, None when it uses a construct whose effect on neighbours is not known here."""
        try:
            parser = _Parser(source)
            whole = parser.alternatives(ignore_case=False)
            if parser.at < len(source) or whole.nullable or len(parser.sets) > _MAX_POSITIONS:
                return None
        except (_Unknown, RecursionError):
            return None
        single = (whole.first & whole.last) - parser.looked
        return Pattern(parser.sets, parser.follow, single, parser.looked)

    def may_join(self, left: str, right: str) -> bool:
        """False when every text with `left` directly before `right` is cut between them, and cut alike when it ends there."""
        before = [position for position, charset in enumerate(self._sets) if charset(left)]
        # Text that no match covers stays in one piece with its neighbours, so `left` must always be matched.
        if not self._single.intersection(before) or not self._looked.isdisjoint(before):
            return True
        after = {position for position, charset in enumerate(self._sets) if charset(right)}
        return any(not self._follow[position].isdisjoint(after) for position in before)


class _Parser:
    """Recursive descent over the source; builds position sets and the follow relation as it goes."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.sets: list[CharSet] = []
        self.follow: list[set[int]] = []
        self.looked: set[int] = set()  # positions after which a lookahead is evaluated

    def alternatives(self, ignore_case: bool) -> _Part:
        whole = self.sequence(ignore_case)
        while self._take("|"):
            other = self.sequence(ignore_case)
            whole = _Part(
                whole.first | other.first, whole.last | other.last, whole.nullable or other.nullable
            )
        return whole

    def sequence(self, ignore_case: bool) -> _Part:
        whole = _Part()
        while self.at < len(self.source) and self.source[self.at] not in "|)":
            if self.source.startswith(("(?!", "(?="), self.at):
                self._lookahead(whole)
                continue
            item = self._quantified(self._atom(ignore_case))
            self._link(whole.last, item.first)
            whole = _Part(
                whole.first | item.first if whole.nullable else whole.first,
                whole.last | item.last if item.nullable else item.last,
                whole.nullable and item.nullable,
            )
        return whole

    def _take(self, text: str) -> bool:
        if self.source.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def _link(self, before: Iterable[int], after: set[int]) -> None:
        for position in before:
            self.follow[position] |= after

    def _position(self, charset: CharSet) -> _Part:
        self.sets.append(charset)
        self.follow.append(set())
        position = len(self.sets) - 1
        return _Part({position}, {position}, False)

    def _lookahead(self, before: _Part) -> None:
        self.at += 3
        num_before = len(self.sets)
        self._atom(False)
        if not self._take(")") or len(self.sets) != num_before + 1 or before.nullable:
            raise _Unknown  # several characters ahead, or at a match's start: it could see across a cut
        self.sets.pop()
        self.follow.pop()
        self.looked |= before.last

    def _atom(self, ignore_case: bool) -> _Part:
        if self._take("("):
            if self._take("?i:"):
                ignore_case = True
            elif not self._take("?:") and self.source.startswith("?", self.at):
                raise _Unknown
            inner = self.alternatives(ignore_case)
            if not self._take(")"):
                raise _Unknown
            return inner
        if self._take("["):
            return self._position(self._bracket(ignore_case))
        if self._take("."):
            return self._position(lambda character: character != "\n")
        character = self._next()
        if character == "\\":
            return self._position(self._escape(ignore_case))
        if character in "^$*+?{})]":
            raise _Unknown
        return self._position(_literal(character, ignore_case))

    def _next(self) -> str:
        if self.at >= len(self.source):
            raise _Unknown
        self.at += 1
        return self.source[self.at - 1]

    def _quantified(self, item: _Part) -> _Part:
        while self.at < len(self.source):
            low, many = self._quantifier()
            if low < 0:
                break
            if many:
                self._link(item.last, item.first)
            item = _Part(item.first, item.last, item.nullable or low == 0)
        return item

    def _quantifier(self) -> tuple[int, bool]:
        """Least count and whether more than one is possible; (-1, False) when none stands here. A second one (lazy, possessive) is the same, or wider."""
        for sign, result in (("?", (0, False)), ("*", (0, True)), ("+", (1, True))):
            if self._take(sign):
                return result
        if not self._take("{"):
            return -1, False
        end = self.source.find("}", self.at)
        low, comma, high = self.source[self.at : end].partition(",")
        if (
            end < 0
            or not (low or comma)
            or not all(text.isdecimal() for text in (low, high) if text)
        ):
            raise _Unknown
        self.at = end + 1
        return int(low or 0), (high if comma else low) not in ("0", "1")

    def _escape(self, ignore_case: bool) -> CharSet:
        character = self._next()
        if character in "pP":
            return self._property(negated=character == "P")
        if character in "sS":
            return (
                _WHITE_SPACE.__contains__
                if character == "s"
                else lambda text: text not in _WHITE_SPACE
            )
        if character in "dD":
            return _category(("Nd",), character == "D")
        if character in _ESCAPES:
            return _literal(_ESCAPES[character], False)
        if character.isalnum():
            raise _Unknown
        return _literal(character, ignore_case)

    def _property(self, negated: bool) -> CharSet:
        end = self.source.find("}", self.at)
        if not self._take("{") or end < 0:
            raise _Unknown
        name = self.source[self.at : end]
        self.at = end + 1
        if not (name[:1] in "LMNPSZC" and len(name) <= 2 and (len(name) == 1 or name[1].islower())):
            raise _Unknown  # scripts and the like
        return _category((name,), negated)

    def _bracket(self, ignore_case: bool) -> CharSet:
        negated = self._take("^")
        members: list[CharSet] = []
        while not self._take("]"):
            character = self._next()
            if character == "[" or self.source.startswith("&&", self.at - 1):
                raise _Unknown
            if character == "\\":
                members.append(self._escape(ignore_case))
            elif self.source.startswith("-", self.at) and not self.source.startswith("-]", self.at):
                self.at += 1
                high = self._next()
                if high in "[\\" or ignore_case:
                    raise _Unknown
                members.append(_between(character, high))
            else:
                members.append(_literal(character, ignore_case))
        if not members or (negated and ignore_case):
            raise _Unknown
        return lambda text: any(member(text) for member in members) != negated


def _literal(character: str, ignore_case: bool) -> CharSet:
    if not ignore_case:
        return character.__eq__
    folded = character.casefold()
    # Wider than the truth where a character folds into several (a ligature): that only loses cuts.
    return lambda text: folded in text.casefold()


def _between(low: str, high: str) -> CharSet:
    return lambda text: low <= text <= high


def _category(prefixes: tuple[str, ...], negated: bool) -> CharSet:
    return lambda text: unicodedata.category(text).startswith(prefixes) != negated
