"""Languages of decoded characters as languages of JSON string text.

Owns the mapping of a whole language, and strings other than some texts; `spelling` has the spellings of one character. Knows nothing of
schemas. Each text between quotation marks spells exactly one string, and spellings of different characters never begin alike in full: the
mapping commutes with intersection and difference, so `pattern`, `not` and lengths hold of what the text means.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

from ...expr import (
    CONSTANTS,
    Alt,
    And,
    Chars,
    Expr,
    Minus,
    Repeat,
    Seq,
    Unlisted,
    alt,
    conj,
    constant,
    lit,
    minus,
    outside_ranges,
    repeat,
    seq,
    star,
)
from .code_points import ANY_CHAR
from .memo import Memo
from .spelling import spelled

_QUOTE = lit('"')
_MAX_KEPT_PARTS = 1 << 16  # parts of languages whose text is remembered from schema to schema

_quoted: Memo[int, tuple[Expr, Expr]] = Memo(_MAX_KEPT_PARTS)  # each language beside its text
_fixed: dict[int, Expr] = {}  # of constant languages


class StringText:
    """The mapping from decoded languages to text, remembering what it has mapped so that equal parts are shared."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[Expr, Expr]] = {}
        self._num_ranges = 0

    def quoted(self, language: Expr) -> Expr:
        """JSON texts, quotation marks included, of the strings of `language`."""
        if type(language) is Repeat and language.item is ANY_CHAR:
            return any_string(language.lo, language.hi)
        if CONSTANTS.get(id(language)) is language:
            return self._fixed(language)
        known = _quoted.get(id(language))
        if known is None:
            before = len(self._parts) + self._num_ranges
            text = seq(_QUOTE, self.map(language), _QUOTE)
            weight = 1 + len(self._parts) + self._num_ranges - before
            # the language itself is kept beside its text: its id stays its own
            known = _quoted.put(id(language), (language, text), weight)
        return known[1]

    def _fixed(self, language: Expr) -> Expr:
        known = _fixed.get(id(language))
        if known is None:
            known = _fixed[id(language)] = constant(seq(_QUOTE, self.map(language), _QUOTE))
        return known

    def map(self, part: Expr) -> Expr:
        """JSON text, without quotation marks, of the strings of `part`."""
        if type(part) is Chars:
            self._num_ranges += len(part.ranges)
            return spelled(part.ranges)
        known = self._parts.get(id(part))
        if known is None:
            known = self._parts[id(part)] = (part, self._work_out(part))
        return known[1]

    def _work_out(self, part: Expr) -> Expr:
        match part:
            case Seq(items):
                return seq(*map(self.map, items))
            case Alt(items):
                return alt(*map(self.map, items))
            case Repeat(item, lo, hi):
                return repeat(self.map(item), lo, hi)
            case And(items):
                return conj(*map(self.map, items))
            case Minus(keep, drop):
                return minus(self.map(keep), self.map(drop))
            case _:
                raise TypeError(f"{type(part).__name__} is no language of characters")


def any_string(low: int, high: int | None) -> Expr:
    """JSON texts of all strings of `low` to `high` characters."""
    return _any_string() if low == 0 and high is None else _counted_string(low, high)


@cache
def _any_char() -> Expr:
    return constant(spelled(ANY_CHAR.ranges))


@cache
def _any_string() -> Expr:
    return constant(_counted_string(0, None))


@lru_cache(maxsize=512)
def _counted_string(low: int, high: int | None) -> Expr:
    return seq(_QUOTE, repeat(_any_char(), low, high), _QUOTE)


_SIMPLE = frozenset(map(chr, range(0x20, 0x7F))) - set('"/\\')  # with one spelling, themselves
_PLAIN = sum(1 << ord(c) for c in _SIMPLE)


def are_simple(texts: Iterable[str]) -> bool:
    """Are all of `texts` made of simple characters?"""
    return all(map(_SIMPLE.issuperset, texts))


def other_strings(texts: Iterable[str]) -> Expr:
    """JSON texts, quotation marks included, of all strings but `texts`, which are made of simple characters. It needs no automaton."""
    listed = tuple(sorted(text.encode() for text in set(texts)))
    if not listed:
        return any_string(0, None)
    tail, special = _ways_off()
    return Seq((_QUOTE, Unlisted(listed, _PLAIN, tail, special), _QUOTE))


@cache
def _ways_off() -> tuple[Expr, Expr]:
    """The tail of a string that has left the tree of some texts, and the step out of it by a character of more spellings."""
    rest = outside_ranges([(ord(c), ord(c)) for c in _SIMPLE])
    # one object for every place of every tree, with a tail of its own: large enough to be built once and called
    special = constant(Seq((spelled(rest), star(spelled(ANY_CHAR.ranges)))))
    return constant(star(spelled(ANY_CHAR.ranges))), special
