"""Chat messages made ready for a template: checked, flattened to plain values, special-token spellings hidden.

Owns what a message may look like (roles, content as text, null or text parts, tool calls) and the sentinels that keep a user's text from
becoming special tokens. Knows nothing of templates or tokens beyond a pattern of spellings. Templates of small models concatenate
`message["content"]` as a string, so content always is one.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from ..errors import PromptError

ROLES = ("system", "developer", "user", "assistant", "tool", "function", "ipython")
MAX_NESTING = 32
_OPENING = re.compile(r"~(\d{1,9})#")  # of any sentinel that could be chosen


class Shield:
    """Exchanges special-token spellings in values for sentinels that occur nowhere in them, and back."""

    def __init__(self, special: re.Pattern[str] | None, values: Any) -> None:
        """`special` matches every special token's spelling (None: the model has none); `values` is all that will be hidden."""
        self._special = special
        self._spellings: list[str] = []
        texts = list(_texts(values))
        if special is None or not any(special.search(text) for text in texts):
            self._special = None
            return
        # in one pass: a text full of openings must not cost a search for each of them
        taken = {int(found) for text in texts for found in _OPENING.findall(text)}
        number = next(number for number in itertools.count() if number not in taken)
        self._opening = f"~{number}#"
        self._sentinel = re.compile(re.escape(self._opening) + r"(\d+)~")

    def hide(self, value: Any) -> Any:
        """`value` with every spelling in its strings exchanged."""
        if self._special is None:
            return value
        if isinstance(value, str):
            return self._special.sub(self._sentinel_of, value)
        if isinstance(value, list):
            return [self.hide(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {
                self.hide(key): self.hide(item)
                for key, item in cast("dict[str, Any]", value).items()
            }
        return value

    def restore(self, text: str) -> str:
        """A rendered text with every sentinel changed back."""
        if self._special is None:
            return text
        return self._sentinel.sub(lambda found: self._spellings[int(found[1])], text)

    def _sentinel_of(self, found: re.Match[str]) -> str:
        if found.group() not in self._spellings:
            self._spellings.append(found.group())
        return f"{self._opening}{self._spellings.index(found.group())}~"


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield key
            yield from _texts(item)


def flatten_message(message: Any, place: str, *, parse_arguments: bool = True) -> dict[str, Any]:
    """A message as templates expect it: role and content are strings, tool arguments are objects (if parse_arguments)."""
    if not isinstance(message, Mapping):
        raise PromptError(f"a message is an object, not {type(message).__name__}", place=place)
    plain = plain_value(cast("Mapping[Any, Any]", message), place)
    role = plain.get("role")
    if role not in ROLES:
        raise PromptError(
            f"the role {role!r} is unknown",
            place=f"{place}.role",
            hint=f"Roles: {', '.join(ROLES)}",
        )
    plain["content"] = _content(plain.get("content"), f"{place}.content")
    calls = plain.get("tool_calls")
    if calls is None:
        plain.pop("tool_calls", None)
    elif isinstance(calls, list) and parse_arguments:
        plain["tool_calls"] = [_with_parsed_arguments(call) for call in cast("list[Any]", calls)]
    return plain


def _content(content: Any, place: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise PromptError(
            f"content is text or a list of parts, not {type(content).__name__}", place=place
        )
    texts: list[str] = []
    for index, part in enumerate(cast("list[Any]", content)):
        text: Any = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else part
        if not isinstance(text, str):
            raise PromptError("only text parts are understood", place=f"{place}[{index}]")
        texts.append(text)
    return "".join(texts)


def _with_parsed_arguments(call: Any) -> Any:
    """Clients send a call's arguments as JSON text; templates print them as an object."""
    if not isinstance(call, dict):
        return call
    fields = cast("dict[str, Any]", call)
    function = fields.get("function")
    if isinstance(function, dict):
        return fields | {"function": _with_parsed_arguments(cast("Any", function))}
    arguments = fields.get("arguments")
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except (ValueError, RecursionError):
            return fields
        if isinstance(parsed, dict):
            return fields | {"arguments": cast("Any", parsed)}
    return fields


def plain_value(value: Any, place: str, depth: int = 0) -> Any:
    """A copy of JSON-like `value`: what reaches a template has no methods of ours."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if depth >= MAX_NESTING:
        raise PromptError(f"nested deeper than {MAX_NESTING} levels", place=place)
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {
            str(key): plain_value(item, f"{place}.{key}", depth + 1)
            for key, item in members.items()
        }
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        return [
            plain_value(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(items)
        ]
    if isinstance(value, str):
        return str(value)
    raise PromptError(f"a {type(value).__name__} is not JSON", place=place)
