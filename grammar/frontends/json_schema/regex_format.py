"""The format `regex`: texts that are valid regular expressions.

Owns a language of patterns that are valid in ECMA-262 and mean the same to Python's `re`, so that whoever checks an output agrees. It is
a subset of all valid patterns: groups nest at most five deep, a range in a class is of digits, small or capital letters, and left out
are backreferences, named groups, lookbehind, properties, flags, and brackets or braces that stand for themselves. Works on
decoded characters. Knows nothing of schemas. Source: ECMA-262, section "Patterns".
"""

from __future__ import annotations

from functools import cache
from string import ascii_lowercase, ascii_uppercase, digits

from ...expr import Expr, alt, chars, constant, opt, outside_ranges, plus, repeat, seq, star
from .code_points import text_language

_MAX_NESTING = 5
_SYNTAX = "^$\\.*+?()[]{}|"
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~"  # what a backslash may make a character that stands for itself
_HEX = chars("0123456789abcdefABCDEF")
_DIGIT = chars(digits)


@cache
def regex_language() -> Expr:
    """The language, of decoded characters."""
    pattern = _alternatives(_atoms())
    for _ in range(_MAX_NESTING):
        group = seq(text_language("("), opt(text_language("?:")), pattern, text_language(")"))
        look = seq(alt(text_language("(?="), text_language("(?!")), pattern, text_language(")"))
        pattern = _alternatives(alt(_atoms(), group), look)
    return constant(pattern)


def _alternatives(atom: Expr, assertion: Expr | None = None) -> Expr:
    """Sequences of atoms, each with a quantifier or none, and of assertions, with bars between."""
    edges = alt(
        chars("^$"), text_language("\\b"), text_language("\\B"), *([assertion] if assertion else [])
    )
    term = alt(seq(atom, opt(_quantifier())), edges)
    return star(alt(term, chars("|")))


@cache
def _quantifier() -> Expr:
    number, comma = repeat(_DIGIT, 1, 4), chars(",")
    counts = alt(
        seq(number, opt(comma)),
        seq(chars("0"), comma, number),
        *(seq(chars(digits[low]), comma, chars(digits[low:])) for low in range(1, 10)),
        seq(chars(digits), comma, chars(digits[1:]), repeat(_DIGIT, 1, 2)),
        seq(chars(digits[1:]), _DIGIT, comma, chars(digits[1:]), _DIGIT, _DIGIT),
    )
    return seq(alt(chars("*+?"), seq(chars("{"), counts, chars("}"))), opt(chars("?")))


@cache
def _escape() -> Expr:
    """What is escaped alike inside a class and outside."""
    named = chars("dDwWsStnrfv" + _PUNCTUATION)
    numbered = alt(seq(chars("x"), _HEX, _HEX), seq(chars("u"), _basic_hex()))
    return seq(chars("\\"), alt(named, numbered))


@cache
def _basic_hex() -> Expr:
    """Four hexadecimal digits, no half of a surrogate pair."""
    return alt(
        seq(chars("0123456789abcefABCEF"), _HEX, _HEX, _HEX),
        seq(chars("dD"), chars("01234567"), _HEX, _HEX),
    )


@cache
def _atoms() -> Expr:
    """One character, a set of characters, or an escape: what a quantifier may follow, apart from groups."""
    special = chars(*outside_ranges([(ord(c), ord(c)) for c in _SYNTAX]), ".")
    return alt(special, _escape(), _class())


@cache
def _class() -> Expr:
    """A character class that is not empty."""
    plain = chars(*outside_ranges([(ord(c), ord(c)) for c in "[]\\^-"]))
    hyphen = chars("-")
    ranges = (
        seq(chars(sort[low]), hyphen, chars(sort[low:]))
        for sort in (digits, ascii_lowercase, ascii_uppercase)
        for low in range(len(sort))
    )
    member = alt(plain, _escape(), *ranges)
    members = alt(hyphen, seq(opt(hyphen), plus(member), opt(hyphen)))
    return seq(chars("["), opt(chars("^")), members, chars("]"))
