"""Languages of decoded characters as languages of JSON string text.

Owns the mapping of a whole language, and strings other than some texts; `spelling` has the spellings of one character. Knows nothing of
schemas. Each text between quotation marks spells exactly one string, and spellings of different characters never begin alike in full: the
mapping commutes with intersection and difference, so `pattern`, `not` and lengths hold of what the text means.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, lru_cache

from ...expr import (
    CONSTANTS,
    EMPTY,
    Alt,
    And,
    Bytes,
    Chars,
    Expr,
    Lit,
    Minus,
    Repeat,
    Seq,
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
_LETTERS = {c: Lit(c.encode()) for c in _SIMPLE}


@dataclass(slots=True)
class _Fork:
    """A place in the tree of texts where some part, or where one ends and others go on."""

    depth: int
    is_end: bool
    free: int = _PLAIN  # the characters that leave the tree here
    parts: list[Expr] = field(default_factory=list[Expr])  # one for each character that stays in it

    def add(self, char: str, below: Expr) -> None:
        """`char` leads to `below`."""
        self.free &= ~(1 << ord(char))
        self.parts.append(Seq((_LETTERS[char], below)))


class OtherTexts:
    """JSON strings other than some texts, without an automaton: off the tree of their beginnings, or ending inside it.

    Only for texts of simple characters. Each step off the tree leads to the same tail, so the whole is deterministic and about as large
    as the texts.
    """

    def __init__(self) -> None:
        self._tail, self._special, self._off_one, self._end = _ways_off()
        self._off: dict[int, Expr] = {}

    @staticmethod
    def can_take(texts: Iterable[str]) -> bool:
        """Are all of `texts` made of simple characters?"""
        return all(map(_SIMPLE.issuperset, texts))

    def quoted(self, texts: Iterable[str]) -> Expr:
        """JSON texts, quotation marks included, of all strings but `texts`."""
        if not texts:
            return any_string(0, None)
        return Seq((_QUOTE, self._leaving(sorted(set(texts))), _QUOTE))

    def _leaving(self, texts: list[str]) -> Expr:
        """Strings that leave the tree of the sorted `texts`. `forks` are the places on the way to the text at hand that are not finished."""
        forks: list[_Fork] = []
        for text, after in zip(texts, [*texts[1:], None], strict=True):
            shared = -1 if after is None else _num_shared(text, after)
            depth = len(text)
            if shared == depth:
                forks.append(_Fork(depth, is_end=True))
                continue
            below = self._end
            while True:
                # from `below`, the place at `depth`, up to the next fork
                fork = forks[-1] if forks else None
                stop = max(shared, fork.depth if fork else -1)
                for char in text[stop + 1 : depth][::-1]:
                    below = Alt(
                        (Seq((_LETTERS[char], below)), EMPTY, self._off_one[char], self._special)
                    )
                if stop < 0:
                    return below
                if fork is None or fork.depth < stop:
                    fork = _Fork(stop, is_end=False)
                    forks.append(fork)
                fork.add(text[stop], below)
                if stop == shared:
                    break
                below, depth = self._finished(forks.pop()), stop
        raise AssertionError("the last text closes the tree")

    def _finished(self, fork: _Fork) -> Expr:
        off = self._off.get(fork.free)
        if off is None:
            off = self._off[fork.free] = Seq((Bytes(fork.free), self._tail))
        return Alt((*fork.parts, *(() if fork.is_end else (EMPTY,)), off, self._special))


@cache
def _ways_off() -> tuple[Expr, Expr, dict[str, Expr], Expr]:
    """The tail of a string that has left the tree, the step by a character of more spellings, by one but the key, and from a text's end."""
    tail = constant(star(spelled(ANY_CHAR.ranges)))
    rest = outside_ranges([(ord(c), ord(c)) for c in _SIMPLE])
    # one object for every place of every tree, with a tail of its own: large enough to be built once and called
    special = constant(Seq((spelled(rest), star(spelled(ANY_CHAR.ranges)))))
    off_one = {c: constant(Seq((Bytes(_PLAIN & ~(1 << ord(c))), tail))) for c in _SIMPLE}
    return tail, special, off_one, constant(Alt((Seq((Bytes(_PLAIN), tail)), special)))


def _num_shared(a: str, b: str) -> int:
    """The length of the common beginning."""
    num = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        num += 1
    return num
