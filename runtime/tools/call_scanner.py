"""The body of one call, character by character: which tool, and where its arguments stand.

    {"name": "get_weather", "arguments": {"city":"Paris"}}

Owns a lenient reading of that object: keys in any order, `parameters` for `arguments`, arguments as JSON inside a string, other keys
passed over, brackets missing at the end. Bodies written under a grammar need none of this; models without one do. What the scanner finds
depends on the characters alone, never on how they were cut. Knows nothing of tags or events.
"""

from __future__ import annotations

import json
from typing import Any

_ARGUMENT_KEYS = ("arguments", "parameters")
_WHITESPACE = " \t\r\n"
_OUTSIDE, _KEY, _COLON, _VALUE, _DONE = range(5)


class CallScanner:
    """One body. Feed characters; `name` and `take_arguments()` tell what is known so far."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.in_string = False
        self._is_escaped = False
        self._phase = _OUTSIDE
        self._depth = 0  # of brackets inside the value being read
        self._key = ""
        self._value: list[str] = []  # of the value being read, unless it goes to the arguments
        self._arguments: list[str] = []
        self._has_arguments = False  # a value for them has begun
        self._is_forwarding = False  # the value being read goes to the arguments as it comes

    @property
    def is_done(self) -> bool:
        """The object has ended."""
        return self._phase == _DONE

    def take_arguments(self) -> str:
        """The arguments' text that came since the last call of this."""
        text = "".join(self._arguments)
        self._arguments.clear()
        return text

    def end(self, *, is_cut: bool) -> None:
        """No more characters will come. A call without arguments has empty ones, unless it was cut before they could come."""
        if self._phase == _VALUE and not self.in_string and not (is_cut and self.name is None):
            self._end_value()
        if not self._has_arguments and not is_cut:
            self._arguments.append("{}")

    def feed(self, character: str) -> None:
        """Take one character."""
        if self.in_string:
            self._feed_string(character)
        elif self._phase == _VALUE:
            self._feed_value(character)
        elif self._phase == _OUTSIDE:
            if character == "{":
                self._phase = _KEY
        elif self._phase == _KEY:
            if character == '"':
                self.in_string = True
                self._value = ['"']
            elif character == "}":
                self._phase = _DONE
        elif self._phase == _COLON and character == ":":
            self._phase = _VALUE
            self._value = []
            self._depth = 0

    def _feed_string(self, character: str) -> None:
        self._keep(character)
        if self._is_escaped:
            self._is_escaped = False
        elif character == "\\":
            self._is_escaped = True
        elif character == '"':
            self.in_string = False
            if self._phase == _KEY:
                self._key = str(_decoded("".join(self._value)))
                self._phase = _COLON
            elif self._depth == 0:
                self._end_value()

    def _feed_value(self, character: str) -> None:
        is_first = not self._value and not self._is_forwarding
        if is_first and character in _WHITESPACE:
            return
        if character in ",}" and self._depth == 0:
            self._end_value()
            self._phase = _KEY if character == "," else _DONE
            return
        if is_first and self._key in _ARGUMENT_KEYS and not self._has_arguments:
            self._has_arguments = True
            self._is_forwarding = character in "{["
        self._keep(character)
        if character == '"':
            self.in_string = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
            if self._depth == 0:
                self._end_value()

    def _keep(self, character: str) -> None:
        (self._arguments if self._is_forwarding else self._value).append(character)

    def _end_value(self) -> None:
        """The value is whole; a scalar's end is the character after it, so this may come twice."""
        text = "".join(self._value).strip()
        if self._is_forwarding or not text:
            pass
        elif self._key == "name" and self.name is None:
            name = _decoded(text)
            self.name = name if isinstance(name, str) and name else None
        elif self._key in _ARGUMENT_KEYS:
            self._arguments.append(_as_object_text(text))
        self._is_forwarding = False
        self._value = []
        self._key = ""
        self._phase = _KEY


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _as_object_text(text: str) -> str:
    """Arguments that are no object: null is none, a string may hold the JSON text of an object, anything else stays."""
    value = _decoded(text)
    if value is None:
        return "{}"
    if isinstance(value, str) and isinstance(_decoded(value), dict):
        return value
    return text
