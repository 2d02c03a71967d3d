"""A pattern's tree as the language of the strings it is found in.

Owns the meaning of anchors, word boundaries and lookahead, and of an unanchored search. Works on decoded characters. Knows nothing of
pattern syntax or JSON.

A part with assertions in it is compiled together with what follows it: `_then(part, rest, left)` is the language of `part` followed by
`rest`, where `rest` reaches to the end of the string. So `$` keeps the empty string of `rest`, a lookahead intersects `rest` with
"begins with ...", and a negative one subtracts that. `left` says what is known of the character before: `^` and word boundaries need
no more than that. Parts without assertions are ordinary regular expressions and are never copied.
"""

from __future__ import annotations

from functools import cache

from ....errors import GrammarError
from ...expr import (
    EMPTY,
    NEVER,
    Chars,
    Expr,
    alt,
    conj,
    constant,
    minus,
    normal_ranges,
    outside_ranges,
    plus,
    repeat,
    seq,
)
from .code_points import ANY_CHAR, ANY_TEXT
from .left_context import Left, after, last_char_variants, needs_kind, splits
from .memo import Memo
from .pattern import WORD, Ahead, Cat, CharSet, Edge, Or, Pattern, Times, parse

_WORD_CHAR = Chars(WORD)
_OTHER_CHAR = Chars(outside_ranges(WORD))
_NO_WORD_NEXT = alt(EMPTY, seq(_OTHER_CHAR, ANY_TEXT))
_WORD_NEXT = seq(_WORD_CHAR, ANY_TEXT)
_MAX_KEPT = (
    1 << 15
)  # characters and ranges of patterns whose languages are remembered from schema to schema
_languages: Memo[str, Expr] = Memo(_MAX_KEPT)
_MAX_UNROLLED = 16  # repeats of parts with assertions are written out


def search_language(text: str, place: str) -> Expr:
    """The strings in which the ECMA-262 pattern `text` is found; GrammarError at `place` when it is refused."""
    known = _languages.get(text)
    if known is None:
        known = _languages.put(text, _search(parse(text, place), place), _weight(text))
    return known


def _weight(text: str) -> int:
    """About how many character ranges a pattern is: a Unicode property is hundreds of them."""
    return len(text) + 700 * text.lower().count("\\p")


@cache
def fixed_language(text: str) -> Expr:
    """The same for a pattern of this program's own, made once."""
    return constant(_search(parse(text, "format"), "format"))


def _search(tree: Pattern, place: str) -> Expr:
    kinds = _edges(tree)
    build = _Builder(place)
    if "b" in kinds or "B" in kinds:
        return alt(
            build.then(tree, ANY_TEXT, Left.START),
            seq(ANY_TEXT, _WORD_CHAR, build.then(tree, ANY_TEXT, Left.WORD)),
            seq(ANY_TEXT, _OTHER_CHAR, build.then(tree, ANY_TEXT, Left.OTHER)),
        )
    if "^" in kinds:
        found_first = build.then(tree, ANY_TEXT, Left.START)
        found_later = build.then(tree, ANY_TEXT, Left.SOME)
        return (
            found_first
            if found_later == NEVER
            else alt(found_first, seq(plus(ANY_CHAR), found_later))
        )
    return seq(ANY_TEXT, build.then(tree, ANY_TEXT, Left.UNKNOWN))


def _edges(part: Pattern) -> set[str]:
    """The kinds of assertions inside."""
    match part:
        case Edge(kind):
            return {kind}
        case Ahead(inner):
            return {"="} | _edges(inner)
        case Cat(parts) | Or(parts):
            return set[str]().union(*(_edges(p) for p in parts))
        case Times(inner):
            return _edges(inner)
        case _:
            return set()


def _plain(part: Pattern) -> Expr:
    """A part without assertions as an ordinary expression."""
    match part:
        case CharSet(ranges):
            return Chars(ranges) if ranges else NEVER
        case Cat(parts):
            return seq(*(_plain(p) for p in parts))
        case Or(parts):
            singles = [p.ranges for p in parts if isinstance(p, CharSet)]
            if len(singles) == len(parts):
                return Chars(normal_ranges(pair for ranges in singles for pair in ranges))
            return alt(*(_plain(p) for p in parts))
        case Times(inner, lo, hi):
            return repeat(_plain(inner), lo, hi)
        case _:
            raise TypeError("an assertion is no plain part")


class _Builder:
    """The compilation of one pattern; `place` is for errors."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._plainness: dict[int, tuple[Pattern, bool]] = {}  # by id, beside the part itself

    def _is_plain(self, part: Pattern) -> bool:
        known = self._plainness.get(id(part))
        if known is None:
            known = self._plainness[id(part)] = (part, not _edges(part))
        return known[1]

    def _refuse(self, what: str) -> GrammarError:
        return GrammarError(f"the pattern uses {what}", place=self._place, keyword="pattern")

    def then(self, part: Pattern, rest: Expr, left: Left) -> Expr:
        """The language of `part` followed by `rest`, the whole remainder of the string."""
        if self._is_plain(part):
            return seq(_plain(part), rest)
        match part:
            case Edge(kind):
                return self._edge(kind, rest, left)
            case Ahead(inner, negative):
                begins = self.then(inner, ANY_TEXT, left)
                return minus(rest, begins) if negative else conj(begins, rest)
            case Or(parts):
                return alt(*(self.then(p, rest, left) for p in parts))
            case Cat(parts):
                return self._cat(parts, rest, left)
            case Times(inner, lo, hi):
                return self._times(inner, lo, hi, rest, left)
            case _:
                raise TypeError("unknown part of a pattern")

    def _edge(self, kind: str, rest: Expr, left: Left) -> Expr:
        if kind == "$":
            return conj(rest, EMPTY) if rest not in (ANY_TEXT, EMPTY) else EMPTY
        if kind == "^":
            if left is Left.UNKNOWN:
                raise self._refuse("^ after something that may be empty")
            return rest if left is Left.START else NEVER
        if left in (Left.SOME, Left.UNKNOWN):
            raise self._refuse("a word boundary after a character that may be of either kind")
        next_is_word = (left is not Left.WORD) == (kind == "b")
        return conj(rest, _WORD_NEXT if next_is_word else _NO_WORD_NEXT)

    def _cat(self, parts: tuple[Pattern, ...], rest: Expr, left: Left) -> Expr:
        lefts: list[Left] = []
        for index, part in enumerate(parts):
            lefts.append(left)
            if index + 1 < len(parts) and needs_kind(parts[index + 1]) and splits(part):
                return self._split(parts, index, rest, lefts[0])
            left = after(part, left)
        for part, before in zip(reversed(parts), reversed(lefts), strict=True):
            rest = self.then(part, rest, before)
        return rest

    def _split(self, parts: tuple[Pattern, ...], index: int, rest: Expr, left: Left) -> Expr:
        """Before a word boundary, the last character is taken as a word character or as another one."""
        variants = last_char_variants(parts[index])
        if not variants:
            raise self._refuse(
                "a word boundary after something that may end in either kind of character"
            )
        ahead, behind = parts[:index], parts[index + 1 :]
        return alt(*(self.then(Cat((*ahead, *last, *behind)), rest, left) for last in variants))

    def _times(self, inner: Pattern, lo: int, hi: int | None, rest: Expr, left: Left) -> Expr:
        if hi is None or hi > _MAX_UNROLLED or after(inner, left) is not left:
            if lo <= 1 and hi == 1:
                return alt(self.then(inner, rest, left), *((rest,) if lo == 0 else ()))
            raise self._refuse("an assertion inside a repeat")
        for count in range(hi, 0, -1):
            again = self.then(inner, rest, left)
            rest = again if count <= lo else alt(again, rest)
        return rest
