"""Character classes agree with the interpreter's `re` on every code point."""

from __future__ import annotations

import re
from bisect import bisect_right

import pytest

from radixlm.grammar.frontends.char_classes import ASCII, Ranges, ignoring_case, unicode_class


def holds(ranges: Ranges, code: int) -> bool:
    index = bisect_right(ranges, (code, 0x110000)) - 1
    return index >= 0 and code <= ranges[index][1]


@pytest.mark.parametrize(("name", "escape"), [("digit", r"\d"), ("space", r"\s"), ("word", r"\w")])
def test_unicode_classes_hold_what_re_matches(name: str, escape: str) -> None:
    everything = "".join(map(chr, range(0x110000)))
    ranges = tuple((m.start(), m.end() - 1) for m in re.finditer(escape + "+", everything))
    assert unicode_class(name) == ranges
    ascii_only = tuple((m.start(), m.end() - 1) for m in re.finditer(f"(?a:{escape})+", everything))
    assert ASCII[name] == ascii_only


def test_ignoring_case_finds_every_partner_that_re_finds() -> None:
    # One text of all characters that have any case at all, so that partners are searched among all of them.
    cased = [c for c in range(0x110000) if chr(c).lower() != chr(c) or chr(c).upper() != chr(c)]
    assert max(cased) < 0x20000
    text = "".join(map(chr, cased))
    for code in [*cased[::37], *map(ord, "sSſkKKåÅåßẞιΙͅιµμiIİı")]:
        found = {ord(m) for m in re.findall(re.escape(chr(code)), text, re.IGNORECASE)} | {code}
        ranges = ignoring_case([(code, code)], is_ascii=False)
        assert {c for low, high in ranges for c in range(low, high + 1)} == found, hex(code)


def test_character_classes_need_no_partners() -> None:
    """`re` looks up the lower case of a character, which is in a class exactly if the character is."""
    for name in ("digit", "space", "word"):
        ranges = unicode_class(name)
        for code in range(0x20000):
            assert holds(ranges, code) == holds(ranges, ord(chr(code).lower()[0]))


def test_ascii_ignores_only_the_case_of_ascii_letters() -> None:
    assert set(ignoring_case([(0x6B, 0x6B)], is_ascii=True)) == {(0x6B, 0x6B), (0x4B, 0x4B)}
    assert set(ignoring_case([(0xE9, 0xE9), (0x40, 0x40)], is_ascii=True)) == {
        (0xE9, 0xE9),
        (0x40, 0x40),
    }
