"""Languages of decoded characters as languages of JSON string text.

Owns the spellings of a character inside a JSON string and the mapping of a whole language. Knows nothing of schemas. The rules:

    printable ASCII             as itself; "/" also as "\\/"
    quotation mark, backslash   \\" and \\\\
    U+0000 .. U+001F            the short escape (\\b \\f \\n \\r \\t) where there is one, \\u00XX (hex digits in either case) always
    U+007F and above            as itself in UTF-8, or \\uXXXX, above U+FFFF as a pair of escapes; never half of a pair

Each text between quotation marks spells exactly one string, and spellings of different characters never begin alike in full: the
mapping commutes with intersection and difference, so `pattern`, `not` and lengths hold of what the text means.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...expr import (
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
    byte_set,
    chars,
    conj,
    lit,
    minus,
    outside_ranges,
    repeat,
    seq,
    star,
)

_SHORT = {
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
    0x22: '\\"',
    0x2F: "\\/",
    0x5C: "\\\\",
}
_QUOTE = lit('"')


class StringText:
    """The mapping from decoded languages to text, remembering what it has mapped so that equal parts are shared."""

    def __init__(self) -> None:
        self._chars: dict[tuple[tuple[int, int], ...], Expr] = {}
        self._parts: dict[int, tuple[Expr, Expr]] = {}

    def quoted(self, language: Expr) -> Expr:
        """JSON texts, quotation marks included, of the strings of `language`."""
        return seq(_QUOTE, self.map(language), _QUOTE)

    def map(self, part: Expr) -> Expr:
        """JSON text, without quotation marks, of the strings of `part`."""
        if isinstance(part, Chars):
            return self._spell(part.ranges)
        known = self._parts.get(id(part))
        if known is None:
            # the part itself is kept beside its image: its id stays its own
            known = self._parts[id(part)] = (part, self._work_out(part))
        return known[1]

    def _work_out(self, part: Expr) -> Expr:
        match part:
            case Seq(items):
                return seq(*(self.map(item) for item in items))
            case Alt(items):
                return alt(*(self.map(item) for item in items))
            case And(items):
                return conj(*(self.map(item) for item in items))
            case Minus(keep, drop):
                return minus(self.map(keep), self.map(drop))
            case Repeat(item, lo, hi):
                return repeat(self.map(item), lo, hi)
            case _:
                raise TypeError(f"{type(part).__name__} is no language of characters")

    def _spell(self, ranges: tuple[tuple[int, int], ...]) -> Expr:
        known = self._chars.get(ranges)
        if known is None:
            low = tuple((a, min(b, 0x7F)) for a, b in ranges if a <= 0x7F)
            high = tuple((max(a, 0x80), b) for a, b in ranges if b >= 0x80)
            if low and high:
                known = alt(*_ascii_spellings(low), self._spell(high))
            elif high:
                known = alt(Chars(high), seq(lit("\\u"), _escapes(high)))
            else:
                known = alt(*_ascii_spellings(low))
            self._chars[ranges] = known
        return known


class _Tree(dict[str, "_Tree"]):
    """Texts by their first characters; the key "" marks the end of one."""


_SIMPLE = frozenset(map(chr, range(0x20, 0x7F))) - set(
    '"/\\'
)  # characters with one spelling, themselves


def _any_text() -> Expr:
    return StringText().map(star(chars((0, 0x10FFFF))))


class OtherTexts:
    """JSON strings other than some texts, without an automaton: off the tree of their beginnings, or ending inside it.

    Only for texts of simple characters. Each step off the tree leads to the same tail, so the whole is deterministic and about as large
    as the texts.
    """

    def __init__(self) -> None:
        self._tail = _any_text()
        self._plain = sum(1 << ord(c) for c in _SIMPLE)
        rest = outside_ranges([(ord(c), ord(c)) for c in _SIMPLE])
        # one object for every node of every tree, with a tail of its own: large enough to be built once and called
        self._special = Seq((StringText().map(Chars(rest)), _any_text()))
        self._off: dict[int, Expr] = {}

    @staticmethod
    def can_take(texts: Iterable[str]) -> bool:
        """Are all of `texts` made of simple characters?"""
        return all(_SIMPLE.issuperset(text) for text in texts)

    def quoted(self, texts: Iterable[str]) -> Expr:
        """JSON texts, quotation marks included, of all strings but `texts`."""
        tree = _Tree()
        for text in texts:
            below = tree
            for char in text:
                below = below.setdefault(char, _Tree())
            below[""] = _Tree()
        return seq(_QUOTE, self._leaving(tree), _QUOTE)

    def _leaving(self, tree: _Tree) -> Expr:
        """Strings that leave the tree; leaves first, without recursion since texts may be long."""
        order = [tree]
        for below in order:
            order.extend(child for char, child in below.items() if char)
        built: dict[int, Expr] = {}
        for below in reversed(order):
            mask = self._plain
            parts: list[Expr] = [] if "" in below else [EMPTY]
            for char, child in below.items():
                if char:
                    mask &= ~(1 << ord(char))
                    parts.append(Seq((Lit(char.encode()), built[id(child)])))
            off = self._off.get(mask)
            if off is None:
                off = self._off[mask] = Seq((Bytes(mask), self._tail))
            built[id(below)] = Alt((*parts, off, self._special))
        return built[id(tree)]


def _ascii_spellings(ranges: tuple[tuple[int, int], ...]) -> list[Expr]:
    code_points = [c for a, b in ranges for c in range(a, b + 1)]
    plain = [c for c in code_points if c >= 0x20 and c not in (0x22, 0x5C)]
    short = [ord(_SHORT[c][1]) for c in code_points if c in _SHORT]
    control = tuple((a, min(b, 0x1F)) for a, b in ranges if a <= 0x1F)
    if code_points[-1] == 0x7F:
        control = (*control, (0x7F, 0x7F))
    result: list[Expr] = []
    if plain:
        result.append(byte_set(plain))
    escapes: list[Expr] = []
    if short:
        escapes.append(byte_set(short))
    if control:
        escapes.append(seq(lit("u"), _hex_ranges(control, 4)))
    if escapes:
        result.append(seq(lit("\\"), alt(*escapes)))
    return result


def _escapes(ranges: tuple[tuple[int, int], ...]) -> Expr:
    """What follows backslash-u for code points above ASCII: four digits, or four digits and a second escape."""
    basic = tuple((a, min(b, 0xFFFF)) for a, b in ranges if a <= 0xFFFF)
    parts: list[Expr] = [_hex_ranges(basic, 4)] if basic else []
    for low, high in ((max(a, 0x10000), b) for a, b in ranges if b >= 0x10000):
        parts.extend(_pairs(low - 0x10000, high - 0x10000))
    return alt(*parts)


def _pairs(low: int, high: int) -> list[Expr]:
    """Surrogate pairs for the 20-bit offsets low..high: at most a partial block, whole blocks, a partial block."""
    first, last = low >> 10, high >> 10
    if first == last:
        return [_pair(first, first, low & 0x3FF, high & 0x3FF)]
    parts: list[Expr] = []
    if low & 0x3FF:
        parts.append(_pair(first, first, low & 0x3FF, 0x3FF))
        first += 1
    tail = high & 0x3FF
    if tail != 0x3FF:
        last -= 1
    if first <= last:
        parts.append(_pair(first, last, 0, 0x3FF))
    if tail != 0x3FF:
        parts.append(_pair(last + 1, last + 1, 0, tail))
    return parts


def _pair(first: int, last: int, low: int, high: int) -> Expr:
    lead = _hex_ranges(((0xD800 + first, 0xD800 + last),), 4)
    return seq(lead, lit("\\u"), _hex_ranges(((0xDC00 + low, 0xDC00 + high),), 4))


def _hex_ranges(ranges: tuple[tuple[int, int], ...], width: int) -> Expr:
    """Numbers inside `ranges` as `width` hexadecimal digits, in either case."""
    return alt(*(part for low, high in ranges for part in _hex_between(low, high, width)))


def _hex_between(low: int, high: int, width: int) -> list[Expr]:
    if width == 0:
        return [seq()]
    unit = 16 ** (width - 1)
    first, last = low // unit, high // unit
    if first == last:
        inner = alt(*_hex_between(low % unit, high % unit, width - 1))
        return [seq(_hex_digits(first, first), inner)]
    parts: list[Expr] = []
    if low % unit:
        parts.append(
            seq(_hex_digits(first, first), alt(*_hex_between(low % unit, unit - 1, width - 1)))
        )
        first += 1
    tail = high % unit
    if tail != unit - 1:
        last -= 1
    if first <= last:
        parts.append(seq(_hex_digits(first, last), *([_ANY_HEX] * (width - 1))))
    if tail != unit - 1:
        parts.append(seq(_hex_digits(last + 1, last + 1), alt(*_hex_between(0, tail, width - 1))))
    return parts


def _hex_digits(first: int, last: int) -> Expr:
    digits = "0123456789abcdef"[first : last + 1]
    return byte_set({*digits.encode(), *digits.upper().encode()})


_ANY_HEX = _hex_digits(0, 15)
