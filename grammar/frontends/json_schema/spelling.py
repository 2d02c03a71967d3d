"""The spellings of one character inside a JSON string.

Owns the escapes and the mapping of a set of code points to text. Knows nothing of schemas. The rules:

    printable ASCII             as itself; "/" also as "\\/"
    quotation mark, backslash   \\" and \\\\
    U+0000 .. U+001F            the short escape (\\b \\f \\n \\r \\t) where there is one, \\u00XX (hex digits in either case) always
    U+007F and above            as itself in UTF-8, or \\uXXXX, above U+FFFF as a pair of escapes; never half of a pair
"""

from __future__ import annotations

from functools import cache

from ...expr import Chars, Expr, alt, byte_set, constant, lit, seq
from .memo import Memo

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
_MAX_KEPT_RANGES = 4096  # of character sets whose spelling is remembered from schema to schema

Ranges = tuple[tuple[int, int], ...]
_spellings: Memo[Ranges, Expr] = Memo(_MAX_KEPT_RANGES)


def spelled(ranges: Ranges) -> Expr:
    """All spellings of one character out of `ranges`."""
    known = _spellings.get(ranges)
    if known is None:
        low = tuple((a, min(b, 0x7F)) for a, b in ranges if a <= 0x7F)
        high = tuple((max(a, 0x80), b) for a, b in ranges if b >= 0x80)
        if low and high:
            known = alt(*_ascii_spellings(low), spelled(high))
        elif high:
            known = alt(Chars(high), seq(lit("\\u"), _escapes(high)))
        else:
            known = alt(*_ascii_spellings(low))
        known = _spellings.put(ranges, known, len(ranges))
    return known


def _ascii_spellings(ranges: Ranges) -> list[Expr]:
    code_points = [c for a, b in ranges for c in range(a, b + 1)]
    plain = [c for c in code_points if c >= 0x20 and c not in (0x22, 0x5C)]
    short = [ord(_SHORT[c][1]) for c in code_points if c in _SHORT]
    control = tuple((a, min(b, 0x1F)) for a, b in ranges if a <= 0x1F)
    if code_points[-1] == 0x7F:
        control = (*control, (0x7F, 0x7F))
    result: list[Expr] = []
    if plain:
        result.append(byte_set(plain) if len(plain) > 1 else lit(bytes(plain)))
    escapes: list[Expr] = []
    if short:
        escapes.append(byte_set(short))
    if control:
        escapes.append(seq(lit("u"), _hex_ranges(control, 4)))
    if escapes:
        result.append(seq(lit("\\"), alt(*escapes)))
    return result


def _escapes(ranges: Ranges) -> Expr:
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


def _hex_ranges(ranges: Ranges, width: int) -> Expr:
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


@cache
def _hex_digits(first: int, last: int) -> Expr:
    digits = "0123456789abcdef"[first : last + 1]
    return byte_set({*digits.encode(), *digits.upper().encode()})


_ANY_HEX = constant(_hex_digits(0, 15))
