"""What may come next at one place of a text, in words a person can use: short texts shown whole, sets of characters by name.

Owns the summary. It asks a matcher over a vocabulary of single bytes (`tokens.byte_vocabulary`) and looks as far ahead as one word: from
`"`, where only declared keys may follow, to `"name":` or `"age":`. Knows nothing of schemas or of where in a text it stands.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

from ..matcher import Matcher
from .tokens import allowed_tokens, byte_vocabulary

_WORD = frozenset((string.ascii_letters + string.digits + "_-").encode())
_NUMBER = frozenset(b"0123456789.eE+-")
_BLANKS = frozenset(b" \t\r\n")
_NAMED_SETS = (
    (string.digits, "a digit", "a digit {}"),
    (string.ascii_lowercase, "a small letter", "a letter {}"),
    (string.ascii_uppercase, "a capital letter", "a letter {}"),
)
_NAMES = {" ": "a space", "\n": "a line break", "\r": "a carriage return", "\t": "a tab"}
_MIN_RUN = 3
_KINDS = (
    (frozenset(string.digits.encode()), _MIN_RUN),
    (frozenset(string.ascii_lowercase.encode()), 26),
    (frozenset(string.ascii_uppercase.encode()), 26),
)
_WIDE = 60  # printable ASCII characters that make nearly everything
_MAX_BUT = 8
_MAX_SHOWN = 16
_MAX_LITERAL = 60
_MAX_LEAVES = 40
_MAX_LOOKS = 400
_MAX_OTHER_CHARS = 8

# One word of JSON: up to the colon behind a key, else up to the end of a string, a name, a number, a bracket or a comma.
_JSON_WORD = re.compile(
    r'[\[{,\s]*"(?:[^"\\]|\\.)*"(?:\s*:)?|[a-z]+|-?[0-9][0-9.eE+-]*|[\[\]{},:]', re.DOTALL
)
_JSON_OPENING = re.compile(r'[\[{,\s]+"(?:[^"\\]|\\.)*', re.DOTALL)


def expected_next(
    matcher: Matcher, *, is_json: bool = False, string_so_far: str = ""
) -> tuple[str, ...]:
    """What may follow, the end of the text included. Texts stand in backquotes, sets of characters have names.

    `string_so_far` is the JSON string in which the text stands, from its quote on: texts that end it are shown whole.
    """
    look = _Look(_JSON_WORD if is_json else None, string_so_far)
    allowed = allowed_tokens(matcher, byte_vocabulary())
    found = _described(look, matcher, allowed)
    if len(found) > _MAX_SHOWN:
        found = [*found[:_MAX_SHOWN], f"{len(found) - _MAX_SHOWN} others"]
    if matcher.is_accepting:
        found.append("the end of the text")
    return tuple(found)


def shown(text: str) -> str:
    """A short text in backquotes, white space and the like by name or escape."""
    if text in _NAMES:
        return _NAMES[text]
    cut = text if len(text) <= _MAX_LITERAL else f"{text[:_MAX_LITERAL]}..."
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return f"`{plain}`"


def _described(look: _Look, matcher: Matcher, allowed: list[int]) -> list[str]:
    ascii_bytes = {byte for byte in allowed if byte < 0x80}
    leads = [byte for byte in allowed if byte >= 0xC2]
    printable = {byte for byte in ascii_bytes if 0x20 <= byte < 0x7F}
    has_all_others = bool(leads) and leads[0] <= 0xC3 and leads[-1] >= 0xF3
    if len(printable) >= _WIDE:
        missing = [chr(byte) for byte in range(0x20, 0x7F) if byte not in printable]
        kind = "any character" if has_all_others else "any ASCII character"
        but = f" but {' '.join(map(shown, missing))}" if 0 < len(missing) <= _MAX_BUT else ""
        return [kind + but if len(missing) <= _MAX_BUT else f"nearly {kind}"]
    blanks = ascii_bytes & _BLANKS if len(ascii_bytes & _BLANKS) > 1 else set[int]()
    number = _NUMBER.intersection(ascii_bytes) if look.is_json_value else set[int]()
    if ord(".") not in number and not number.issuperset(b"eE"):
        number = set[
            int
        ]()  # at a number's first digit, or within an integer: it matters which digits
    ascii_bytes -= number
    alike = _alike(ascii_bytes)
    words, rest = look.words(matcher, sorted(ascii_bytes - blanks - alike))
    found = [*(shown(text) for text in words), *_sets([*rest, *map(chr, sorted(alike))])]
    if leads:
        found += ["a character beyond ASCII"] if has_all_others else look.others(matcher, leads)
    if number:
        found.append("more of the number")
    return [*found, *(["white space"] if blanks else [])]


def _alike(allowed: Iterable[int]) -> set[int]:
    """Digits and letters that are choices of one kind rather than beginnings of words: several digits, all letters of a case."""
    found: set[int] = set()
    for members, least in _KINDS:
        present = members.intersection(allowed)
        if len(present) >= least:
            found |= present
    return found


def _sets(characters: Iterable[str]) -> list[str]:
    """Single characters, with runs of digits and letters under one name."""
    rest = dict.fromkeys(characters)
    found: list[str] = []
    for members, whole, part in _NAMED_SETS:
        present = "".join(c for c in members if c in rest)
        if present == members:
            found.append(whole)
        elif len(present) >= _MIN_RUN and present in members:
            found.append(part.format(f"{present[0]} to {present[-1]}"))
        else:
            continue
        for character in present:
            del rest[character]
    return [*map(shown, rest), *found]


class _Look:
    """Looking ahead from one place, within a budget."""

    def __init__(self, word: re.Pattern[str] | None, before: str) -> None:
        self._word = word
        self._before = before
        self.is_json_value = word is not None and not before
        self._num_looks = 0

    def words(self, matcher: Matcher, first: list[int]) -> tuple[list[str], list[str]]:
        """The texts that go on from single bytes, and the bytes that lead to nothing definite."""
        words: list[str] = []
        rest: list[str] = []
        for byte in first:
            found = self._follow(matcher, byte, self._before)
            if found is None or found == [chr(byte)]:
                rest.append(chr(byte))
            else:
                words += found
        return words, rest

    def _follow(self, matcher: Matcher, byte: int, before: str) -> list[str] | None:
        """The words that begin with `before` and the byte; None where they are too many, or none is definite."""
        self._num_looks += 1
        if self._num_looks > _MAX_LOOKS:
            return None
        after = matcher.fork()
        after.advance_bytes(bytes((byte,)))
        forced = after.forced_bytes()
        after.advance_bytes(forced)
        text = before + chr(byte) + forced.decode()
        cut = self._cut(text)
        if cut != text or self._is_closed(text):
            return [cut] if len(cut) > 1 else None
        further = self._branches(after, text)
        if further is not None:
            return further
        if self._is_open(text):
            text = text.rstrip('"')  # a string of any kind
            return [text] if len(text) > 1 else None
        return [text] if forced or after.is_accepting else None

    def _branches(self, matcher: Matcher, text: str) -> list[str] | None:
        """The words that `text` goes on to, if they are few and each is definite."""
        if matcher.is_accepting:
            return None
        allowed = allowed_tokens(matcher, byte_vocabulary())
        ends = {ord('"')} if '"' in text else set[int]()
        if len(allowed) < 2 or not _WORD.union(ends).issuperset(allowed) or _alike(allowed):
            return None
        leaves: list[str] = []
        for byte in allowed:
            found = self._follow(matcher, byte, text)
            if found is None or len(leaves) + len(found) > _MAX_LEAVES:
                return None
            leaves += found
        return leaves

    def _cut(self, text: str) -> str:
        """`text` up to the end of its first word."""
        match = self._word.match(text) if self._word is not None else None
        if self._is_open(text):
            return text
        return text if match is None or not match.end() else text[: match.end()]

    def _is_open(self, text: str) -> bool:
        """Whether `text` is nothing but the opening of a string, with what may stand before it."""
        return self._word is not None and _JSON_OPENING.fullmatch(text) is not None

    def _is_closed(self, text: str) -> bool:
        return self._word is not None and len(text) > 1 and self._word.fullmatch(text) is not None

    def _whole(self, after: Matcher, character: str) -> str:
        """The word that a character begins, if it is definite; else the character."""
        text = self._before + character + after.forced_bytes().decode()
        return self._cut(text) if self._is_closed(self._cut(text)) else character

    def others(self, matcher: Matcher, leads: list[int]) -> list[str]:
        """Characters beyond ASCII, if they are few."""
        found: list[str] = []
        work = [bytes((lead,)) for lead in reversed(leads)]
        while work and len(found) <= _MAX_OTHER_CHARS and self._num_looks < _MAX_LOOKS:
            self._num_looks += 1
            data = work.pop()
            after = matcher.fork()
            after.advance_bytes(data)
            try:
                found.append(self._whole(after, data.decode()))
            except UnicodeDecodeError:
                following = allowed_tokens(after, byte_vocabulary())
                work += [data + bytes((byte,)) for byte in reversed(following)]
        is_few = not work and len(found) <= _MAX_OTHER_CHARS
        return [shown(c) for c in found] if is_few else ["some characters beyond ASCII"]
