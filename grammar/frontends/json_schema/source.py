"""Schema text to a Python tree, and values back to compact JSON text.

Owns everything about JSON as text: the checked parse (nesting depth, duplicate keys, endless numbers, lone surrogates), JSON pointers,
the canonical spelling of a value, and equality of JSON values as JSON Schema defines it (1 equals 1.0, true does not equal 1). Knows
nothing of schemas.

Numbers keep their spelling: an integer becomes `int`, anything with a fraction or exponent a `Spelled` decimal, so that a constant is
written into the output exactly as the schema writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from decimal import Decimal
from typing import Any, NoReturn, cast

import msgspec

from ....errors import GrammarError
from ...expr import Limits

Json = Any  # None, bool, int, Spelled, str, list[Json] or dict[str, Json]

_MAX_NUMBER_DIGITS = 400  # of a number written in a schema; longer ones are an attack, not a bound
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACED_COLON = re.compile(r'"\s+:')
_DIGIT = re.compile("[0-9]")
_LONG_INTEGER = re.compile(f"[0-9]{{{_MAX_NUMBER_DIGITS + 1}}}")
_UNSURE = object()
_CONTAINERS = (dict, list)
_SHORT_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_NEEDS_ESCAPE = re.compile(r'["\\\x00-\x1f]')


class Spelled(Decimal):
    """A decimal that remembers how it was written."""

    text: str

    def __new__(cls, text: str) -> Spelled:
        """The number `text` spells."""
        self = super().__new__(cls, text)
        self.text = text
        return self


def parse(text: str, limits: Limits) -> Json:
    """The tree of one JSON text; GrammarError with line:column or a JSON pointer when it cannot be used."""
    data = b"" if len(text) > limits.spec_bytes else text.encode(errors="surrogatepass")
    if max(len(text), len(data)) > limits.spec_bytes:
        raise GrammarError(f"the schema is longer than the limit spec_bytes={limits.spec_bytes}")
    tree = _quickly(text, data, limits.depth)
    return _carefully(text, limits) if tree is _UNSURE else tree


def _quickly(text: str, data: bytes, depth: int) -> Json:
    """The tree, where it is plain that nothing is wrong with the text; else _UNSURE."""
    num_colons = text.count('":')
    if num_colons != text.count(":") and _SPACED_COLON.search(text):
        return _UNSURE
    if _has_long_integer(text):
        return _UNSURE
    try:
        tree = _DECODER.decode(data)  # which refuses surrogates
    except (msgspec.DecodeError, GrammarError, RecursionError, ValueError):
        return _UNSURE
    # Every key of the text is followed by a colon, so this counts them all, and perhaps more. If as many are left, none came twice.
    num_keys, num_levels = _size(tree)
    return tree if num_colons == num_keys and num_levels <= depth else _UNSURE


def _has_long_integer(text: str) -> bool:
    """Are there more digits in a row than a number may have? So many would reach over one of the places looked at first."""
    places = text[_MAX_NUMBER_DIGITS :: _MAX_NUMBER_DIGITS + 1]
    return _DIGIT.search(places) is not None and _LONG_INTEGER.search(text) is not None


def _size(tree: Json) -> tuple[int, int]:
    """The number of keys, and how deep arrays and objects nest."""
    num_keys = num_levels = 0
    level: list[Json] = [tree] if type(tree) in _CONTAINERS else []
    while level:
        num_levels += 1
        below: list[Json] = []
        for value in level:
            parts = cast("Iterable[Json]", value)
            if type(value) is dict:
                members = cast("dict[str, Json]", value)
                num_keys += len(members)
                parts = members.values()
            for part in parts:
                if type(part) in _CONTAINERS:
                    below.append(part)  # noqa: PERF401
        level = below
    return num_keys, num_levels


def mentions(text: str, names: tuple[str, ...]) -> bool:
    """May a key of this JSON text be one of `names`? No is certain."""
    return any(f'"{name}"' in text for name in names) or "\\u" in text


def _carefully(text: str, limits: Limits) -> Json:
    """The tree, or the error with its place."""
    _check_depth(text, limits.depth)
    duplicates: list[tuple[int, str]] = []

    def pairs(items: list[tuple[str, Json]]) -> dict[str, Json]:
        result = dict(items)
        if len(result) != len(items):
            keys = [key for key, _ in items]
            duplicates.append((id(result), next(k for k in keys if keys.count(k) > 1)))
        return result

    try:
        tree = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=_integer,
            parse_float=_decimal,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise GrammarError(
            f"the schema is not JSON: {error.msg}", place=f"{error.lineno}:{error.colno}"
        ) from None
    except RecursionError:
        raise GrammarError(f"the schema nests deeper than the limit depth={limits.depth}") from None
    if duplicates:
        owner, key = duplicates[0]
        place = _find(tree, owner, "#") or "#"
        raise GrammarError(f"the key {key!r} stands twice in one object", place=place)
    if _SURROGATE.search(text) or "\\u" in text:
        _check_surrogates(tree, "#")
    return tree


def _check_depth(text: str, limit: int) -> None:
    if text.count("[") + text.count("{") <= limit:
        return
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
            if depth > limit:
                raise GrammarError(f"the schema nests deeper than the limit depth={limit}")
        elif token in "]}":
            depth -= 1


def _integer(text: str) -> int:
    if len(text) > _MAX_NUMBER_DIGITS:
        raise GrammarError(f"a number of {len(text)} digits is too long: {text[:20]}...")
    return int(text)


def _decimal(text: str) -> Spelled:
    if len(text) > _MAX_NUMBER_DIGITS:
        raise GrammarError(f"a number of {len(text)} characters is too long: {text[:20]}...")
    exponent = text.lower().partition("e")[2]
    if exponent and abs(int(exponent)) > _MAX_NUMBER_DIGITS:
        raise GrammarError(f"the exponent of {text} is beyond {_MAX_NUMBER_DIGITS}")
    return Spelled(text)


def _constant(text: str) -> NoReturn:
    raise GrammarError(f"the schema is not JSON: {text} is no JSON number")


_DECODER = msgspec.json.Decoder(float_hook=_decimal)


def _find(tree: Json, owner: int, pointer: str) -> str | None:
    if id(tree) == owner:
        return pointer
    found: str | None = None
    if isinstance(tree, dict):
        for key, value in cast("dict[str, Json]", tree).items():
            found = found or _find(value, owner, child_pointer(pointer, key))
    elif isinstance(tree, list):
        for index, value in enumerate(cast("list[Json]", tree)):
            found = found or _find(value, owner, child_pointer(pointer, index))
    return found


def _check_surrogates(tree: Json, pointer: str) -> None:
    if isinstance(tree, str):
        if _SURROGATE.search(tree):
            raise GrammarError("a string holds half of a surrogate pair", place=pointer)
    elif isinstance(tree, dict):
        for key, value in cast("dict[str, Json]", tree).items():
            if _SURROGATE.search(key):
                raise GrammarError("a key holds half of a surrogate pair", place=pointer)
            _check_surrogates(value, child_pointer(pointer, key))
    elif isinstance(tree, list):
        for index, value in enumerate(cast("list[Json]", tree)):
            _check_surrogates(value, child_pointer(pointer, index))


def child_pointer(pointer: str, token: str | int) -> str:
    """`pointer` extended by one reference token."""
    if isinstance(token, int):
        return f"{pointer}/{token}"
    if "~" in token or "/" in token:
        token = token.replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{token}"


def string_text(value: str) -> str:
    """The canonical JSON spelling of a string: escapes only where JSON demands them, the short ones where they exist."""

    if _NEEDS_ESCAPE.search(value) is None:
        return f'"{value}"'

    def escape(match: re.Match[str]) -> str:
        char = match.group()
        return _SHORT_ESCAPES.get(char) or f"\\u{ord(char):04x}"

    return f'"{_NEEDS_ESCAPE.sub(escape, value)}"'


def value_text(value: Json) -> str:
    """The compact canonical text of a value; numbers as they were written."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, Spelled):
        return value.text
    if isinstance(value, dict):
        items = cast("dict[str, Json]", value).items()
        return "{" + ",".join(f"{string_text(key)}:{value_text(item)}" for key, item in items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(value_text(item) for item in cast("list[Json]", value)) + "]"
    return str(value)


_TRUE, _FALSE = ("boolean", True), ("boolean", False)  # in Python, True equals 1


def value_key(value: Json) -> Hashable:
    """A hashable that is equal for equal JSON values: numbers by value, objects whatever their key order."""
    if type(value) is str or value is None:
        return value
    if value is True:
        return _TRUE
    if value is False:
        return _FALSE
    if isinstance(value, dict):
        items = cast("dict[str, Json]", value).items()
        return ("object", frozenset([(key, value_key(item)) for key, item in items]))
    if isinstance(value, list):
        return ("array", tuple([value_key(item) for item in cast("list[Json]", value)]))
    return value  # numbers of all types are equal, and hashed alike, where their values are
