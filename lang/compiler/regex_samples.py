"""A short match of a regular expression in Python's syntax, found by walking its parsed form.

Owns that walk; two variants differ where the pattern leaves a choice. A lookaround adds nothing, so its pattern may be missed. Must not
know constraints or graphs.
"""

from __future__ import annotations

import re
from typing import Any, cast

_CATEGORIES = {
    "CATEGORY_DIGIT": ("12", r"\d"),
    "CATEGORY_NOT_DIGIT": ("ab", r"\D"),
    "CATEGORY_WORD": ("ab", r"\w"),
    "CATEGORY_NOT_WORD": ("-;", r"\W"),
    "CATEGORY_SPACE": (" \t", r"\s"),
    "CATEGORY_NOT_SPACE": ("ab", r"\S"),
}  # characters of a category, and how it is written
MAX_CHARS = 10_000  # of a sample


class SampleTooLarge(Exception):
    """The shortest text that would be played is longer than is worth it."""


def check_length(num_chars: int) -> None:
    """SampleTooLarge for a sample of more than MAX_CHARS."""
    if num_chars > MAX_CHARS:
        raise SampleTooLarge(f"a result of more than {MAX_CHARS} characters is not played")


def sample_of_regex(pattern: str, variant: int) -> str:
    """A short match of a pattern in Python's syntax; "x" for a pattern that Python cannot read. SampleTooLarge if it is not short."""
    try:
        parsed: Any = re._parser.parse(pattern)  # type: ignore[attr-defined]  # pyright: ignore
    except re.error:
        return "x"
    return _all(cast("list[Any]", parsed), variant, {})


def _matched(item: Any, variant: int, groups: dict[int, str]) -> str:
    """A match of one item of a parsed pattern: (operation, argument)."""
    operation, argument = str(item[0]), item[1]
    if operation == "LITERAL":
        return chr(argument)
    if operation == "NOT_LITERAL":
        return next(c for c in "abc" if ord(c) != argument)
    if operation == "ANY":
        return "ab"[variant % 2]
    if operation == "IN":
        return _member(argument, variant)
    if operation == "BRANCH":
        options = argument[1]
        return _all(options[variant % len(options)], variant, groups)
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        low, high, repeated = argument
        count = min(max(int(low), 1), int(high))
        text = _all(repeated, variant, groups)  # each time the same
        check_length(len(text) * count)
        return text * count if text else ""
    if operation == "SUBPATTERN":
        number, text = argument[0], _all(argument[-1], variant, groups)
        if number is not None:
            groups[number] = text
        return text
    if operation == "ATOMIC_GROUP":
        return _all(argument, variant, groups)
    if operation == "GROUPREF":
        return groups.get(argument, "")
    return ""  # anchors and lookarounds add nothing


def _all(items: Any, variant: int, groups: dict[int, str]) -> str:
    texts: list[str] = []
    length = 0
    for item in items:
        texts.append(_matched(item, variant, groups))
        length += len(texts[-1])
        check_length(length)
    return "".join(texts)


def _member(members: Any, variant: int) -> str:
    """A character of a set."""
    if str(members[0][0]) == "NEGATE":
        pattern = f"[^{''.join(map(_source_of, members[1:]))}]"
        return next((c for c in "ab1 .\n\t" if re.fullmatch(pattern, c)), "")
    found: list[str] = []
    for kind, argument in members:
        if str(kind) == "LITERAL":
            found.append(chr(argument))
        elif str(kind) == "RANGE":
            found += [chr(argument[0]), chr(argument[1])]
        else:
            found += _CATEGORIES[str(argument)][0]
    return found[variant % len(found)]


def _source_of(member: Any) -> str:
    kind, argument = str(member[0]), member[1]
    if kind == "LITERAL":
        return re.escape(chr(argument))
    if kind == "RANGE":
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    return _CATEGORIES[str(argument)][1]
