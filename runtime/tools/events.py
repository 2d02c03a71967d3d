"""What an output with tool calls is made of, as it streams, and the whole of it.

Owns the event types and `collect`. An output is a row of events: text, or the beginning of a call followed by pieces of its arguments
(always of the call begun last). Pieces joined are the whole, however the output was cut on its way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Text for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBegin:
    """A call begins: number `index` (from 0) of the output, of the tool `name`."""

    index: int
    id: str
    name: str
    is_custom: bool = False  # then its arguments are the input of a custom tool, no JSON


@dataclass(frozen=True, slots=True)
class CallArguments:
    """More of the arguments' JSON text, or of the custom tool's input, of the call `index`."""

    index: int
    text: str
    is_custom: bool = False


ToolEvent = TextPiece | CallBegin | CallArguments


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A whole call; `arguments` is JSON text as the model wrote it (the beginning of one where the output was cut)."""

    id: str
    name: str
    arguments: str
    is_custom: bool = False  # then `arguments` is its input


def collect(events: Iterable[ToolEvent]) -> tuple[str | None, list[ToolCall]]:
    """(content, calls) of all events of an output. Content is None where there are calls and no text."""
    texts: list[str] = []
    begins: list[CallBegin] = []
    arguments: dict[int, list[str]] = {}
    for event in events:
        match event:
            case TextPiece(text):
                texts.append(text)
            case CallBegin(index):
                begins.append(event)
                arguments[index] = []
            case CallArguments(index, text):
                arguments[index].append(text)
    calls = [
        ToolCall(begin.id, begin.name, "".join(arguments[begin.index]), begin.is_custom)
        for begin in begins
    ]
    return "".join(texts) or (None if calls else ""), calls
