"""Zero-width assertions by markers: anchors, word boundaries, look-ahead and look-behind, exact wherever they stand.

Owns the marker bytes and the conditions they stand for. An assertion is lowered to a marker, a byte that UTF-8 never has, in the text it
asserts something about. The language with markers is intersected with the condition of each marker used, then the markers are erased:

    language = Erase( And(marked pattern, condition of each marker ...), all markers )

A condition speaks of the text without markers: `Gap` below is any run of markers, and every character may be followed by one. Knows
nothing of Python's syntax.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from ...errors import GrammarError
from ..expr import (
    Alt,
    And,
    Bytes,
    Erase,
    Expr,
    Minus,
    Repeat,
    Seq,
    alt,
    chars,
    outside_ranges,
    seq,
    star,
)
from .char_classes import Ranges

_MARKER_BYTES = (0xC0, 0xC1, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)
_ALL_MARKERS = sum(1 << byte for byte in _MARKER_BYTES)
_GAP = star(Bytes(_ALL_MARKERS))
_ANY = seq(chars((0, 0x10FFFF)), _GAP)
_ALL = seq(_GAP, star(_ANY))


MAX_COPIES = 2000
"""How often repeats may write out a part with an assertion in it."""
MAX_EMPTY_COPIES = 200
"""The same of a part that may be no more than its assertions."""


class Anchor(Enum):
    """The assertions without an argument."""

    TEXT_START = "^"
    TEXT_END = r"\Z"
    TEXT_END_OR_LAST_NEWLINE = "$"
    LINE_START = "(?m)^"
    LINE_END = "(?m)$"
    WORD_BOUNDARY = r"\b"
    NO_WORD_BOUNDARY = r"\B"
    ASCII_WORD_BOUNDARY = r"(?a)\b"
    ASCII_NO_WORD_BOUNDARY = r"(?a)\B"


def gap() -> Expr:
    """Any run of markers: what may follow a character inside an expression given to `look`."""
    return _GAP


def may_vanish(marked: Expr) -> bool:
    """May a part with markers be empty once they are taken out?"""
    match marked:
        case Bytes(mask):
            return mask & ~_ALL_MARKERS == 0
        case Seq(items):
            return all(map(may_vanish, items))
        case Alt(items):
            return any(map(may_vanish, items))
        case Repeat(item, lo):
            return lo == 0 or may_vanish(item)
        case _:
            return False


@dataclass(slots=True)
class Assertions:
    """The assertions of one pattern; `word` and `ascii_word` are the characters of a word."""

    word: Ranges
    ascii_word: Ranges
    _conditions: list[Expr] = field(default_factory=list[Expr])
    _markers: dict[object, int] = field(default_factory=dict[object, int])

    def anchor(self, kind: Anchor) -> Expr:
        """A marker that stands for `kind`."""
        if kind not in self._markers:
            marker = self._new_marker(kind)
            self._conditions.append(self._condition(kind, marker))
        return Bytes(1 << self._markers[kind])

    def look(self, inside: Expr, *, is_behind: bool, is_negative: bool) -> Expr:
        """A marker where the text after (or before) it must, or must not, begin (end) with `inside`, a language with gaps."""
        key = object()
        marker = self._new_marker(key)
        if is_behind:
            found = seq(_ALL, inside, _GAP)
            self._conditions.append(
                _never(seq(found if is_negative else Minus(_ALL, found), marker, _ALL))
            )
        else:
            found = seq(_GAP, inside, _ALL)
            self._conditions.append(
                _never(seq(_ALL, marker, found if is_negative else Minus(_ALL, found)))
            )
        return Bytes(1 << self._markers[key])

    def applied(self, marked: Expr) -> Expr:
        """`marked` with all conditions met and the markers gone."""
        if not self._conditions:
            return marked
        return Erase(
            And((marked, *self._conditions)), sum(1 << byte for byte in self._markers.values())
        )

    def _new_marker(self, key: object) -> Expr:
        if len(self._markers) >= len(_MARKER_BYTES):
            raise GrammarError(
                f"the pattern has more than {len(_MARKER_BYTES)} different assertions",
                keyword="assertion",
            )
        self._markers[key] = _MARKER_BYTES[len(self._markers)]
        return Bytes(1 << self._markers[key])

    def _condition(self, kind: Anchor, marker: Expr) -> Expr:
        """The texts in which every marker of `kind` stands where it may."""
        newline = seq(chars("\n"), _GAP)
        other = seq(chars(*outside_ranges([(10, 10)])), _GAP)
        if kind is Anchor.TEXT_START:
            return _never(seq(_GAP, _ANY, _ALL, marker, _ALL))
        if kind is Anchor.TEXT_END:
            return _never(seq(_ALL, marker, _GAP, _ANY, _ALL))
        if kind is Anchor.TEXT_END_OR_LAST_NEWLINE:
            return _never(
                seq(_ALL, marker, _GAP, other, _ALL), seq(_ALL, marker, _GAP, newline, _ANY, _ALL)
            )
        if kind is Anchor.LINE_START:
            return _never(seq(_ALL, other, marker, _ALL))
        if kind is Anchor.LINE_END:
            return _never(seq(_ALL, marker, _GAP, other, _ALL))
        is_ascii = kind in (Anchor.ASCII_WORD_BOUNDARY, Anchor.ASCII_NO_WORD_BOUNDARY)
        word = self.ascii_word if is_ascii else self.word
        free = _gap_without(marker)
        if kind in (Anchor.WORD_BOUNDARY, Anchor.ASCII_WORD_BOUNDARY):
            return _boundaries(
                word, inside=free, between=_GAP, word_edge=_GAP, other_edge=free, empty=free
            )
        # Until Python 3.14, \B does not hold in an empty text.
        empty = _GAP if re.fullmatch(r"\B", "") else free
        return _boundaries(
            word, inside=_GAP, between=free, word_edge=free, other_edge=_GAP, empty=empty
        )


def _gap_without(marker: Expr) -> Expr:
    """Any run of the other markers."""
    taken = marker.mask if isinstance(marker, Bytes) else 0
    return star(Bytes(_ALL_MARKERS & ~taken))


def _boundaries(
    word: Ranges, *, inside: Expr, between: Expr, word_edge: Expr, other_edge: Expr, empty: Expr
) -> Expr:
    """Runs of word and of other characters in turn, with one kind of gap inside runs, one between them, and one at an edge of each kind."""
    word_char, other_char = chars(*word), chars(*outside_ranges(word))
    words = seq(word_char, star(seq(inside, word_char)))
    others = seq(other_char, star(seq(inside, other_char)))
    tail = star(seq(between, words, between, others))
    from_word = seq(
        word_edge,
        words,
        alt(word_edge, seq(between, others, tail, alt(other_edge, seq(between, words, word_edge)))),
    )
    from_other = seq(other_edge, others, tail, alt(other_edge, seq(between, words, word_edge)))
    return alt(empty, from_word, from_other)


def _never(*violations: Expr) -> Expr:
    return Minus(_ALL, alt(*violations))
