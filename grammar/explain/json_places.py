"""Places in JSON texts, whole or cut anywhere: where a JSON pointer leads, and what stands open at the end.

Owns the one reading of JSON that keeps positions and takes unfinished texts. Knows nothing of schemas or grammars. Pointers begin with
"#", as in the errors of the schema front end; positions are in code points.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..frontends.json_schema.source import child_pointer

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*("?)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(slots=True)
class _Container:
    """An object or array being read."""

    pointer: str
    is_object: bool
    step: str | int | None  # the key or index of the part being read; None: an object between parts
    is_key_next: bool


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """What a text is in the middle of, at its end."""

    pointer: str
    string_so_far: str
    """The string that is being read, from its quote on; empty outside of strings."""
    container: str
    """The pointer of the object or array that stands open."""


def place_of(text: str, pointer: str) -> int | None:
    """Where the part of `text` at `pointer` begins: its key if it has one. None if there is no such part."""
    if pointer in ("", "#"):
        return len(text) - len(text.lstrip())
    reader = _Reader(text)
    return next((at for at, found in reader.parts() if found == pointer), None)


def open_place(text: str) -> OpenPlace:
    """What `text`, the beginning of a JSON text, is in the middle of."""
    reader = _Reader(text)
    for _ in reader.parts():
        pass
    container = reader.stack[-1].pointer if reader.stack else "#"
    pointer = container if reader.is_value_done else reader.pointer()
    return OpenPlace(pointer, reader.string_so_far, container)


def parts_behind(text: str, position: int, container: str) -> list[int]:
    """Where the members or items of the container at that pointer begin that stand at or behind `position`."""
    return [
        at
        for at, pointer in _Reader(text).parts()
        if at >= position and pointer.rpartition("/")[0] == container
    ]


class _Reader:
    def __init__(self, text: str) -> None:
        self.stack: list[_Container] = []
        self.string_so_far = ""
        self.is_value_done = False  # the last token surely ended a value
        self._text = text

    def pointer(self) -> str:
        """Of the part being read."""
        if not self.stack:
            return "#"
        here = self.stack[-1]
        return here.pointer if here.step is None else child_pointer(here.pointer, here.step)

    def parts(self) -> Iterator[tuple[int, str]]:
        """Position and pointer of each member and item."""
        is_item_new = True  # no item has begun since the last bracket or comma
        for match in _TOKEN.finditer(self._text):
            token = match.group()
            is_open = token[0] == '"' and not match[1]
            self.string_so_far = token if is_open else ""
            self.is_value_done = token[0] in '"}]' and not is_open
            here = self.stack[-1] if self.stack else None
            is_key = here is not None and here.is_object and here.is_key_next
            if is_key and token[0] == '"' and not is_open and here is not None:
                here.step, here.is_key_next = _decoded(token[1:-1]), False
                self.is_value_done = False
                yield match.start(), self.pointer()
                continue
            if here is not None and not here.is_object and is_item_new and token not in "],:":
                yield match.start(), self.pointer()
            is_item_new = token in "[{,"
            self._take(token)

    def _take(self, token: str) -> None:
        if token in ("{", "["):
            is_object = token == "{"
            self.stack.append(_Container(self.pointer(), is_object, None if is_object else 0, True))
        elif token in ("}", "]") and self.stack:
            self.stack.pop()
        elif token == "," and self.stack:
            here = self.stack[-1]
            here.step = here.step + 1 if isinstance(here.step, int) else None
            here.is_key_next = True


def _decoded(body: str) -> str:
    def one(match: re.Match[str]) -> str:
        what = match[1]
        return chr(int(what[1:], 16)) if len(what) == 5 else _SHORT.get(what, what)

    return _ESCAPE.sub(one, body)
