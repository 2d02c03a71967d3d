"""Output text into text and tool calls, while it streams.

Owns the tags and the white space around them. The text inside a call is `call_scanner`'s. A parser sees one output from its beginning;
its events depend on the text alone, never on how it was cut.

- A beginning that may become `<tool_call>` is held back until it is one or is not.
- White space before, between and behind calls is not text; of the text before a call one line break at its end is not either
  (`hermes.py` and the templates of Hermes models put it back, so a history renders as it was generated).
- A call begins (`CallBegin`) as soon as its name is known. `</tool_call>` ends it, but not inside a string of its arguments.
- What stands between the tags and names no tool is text, tags included: nothing a model wrote is lost.
- A custom tool's input is the text below the line with its name, up to `</tool_call>` and the line break before it.
- An output that was cut inside a call leaves that call with the beginning of its arguments; no bracket is invented.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from .call_scanner import CallScanner
from .events import CallArguments, CallBegin, TextPiece, ToolEvent
from .tags import CALL_BEGIN, CALL_END


def new_call_id() -> str:
    """A fresh id for one call."""
    return f"call_{secrets.token_hex(12)}"


class ToolTextParser:
    """The parser of one output. With is_active=False everything is text. `custom_names`: the tools whose calls hold plain text."""

    def __init__(
        self,
        *,
        is_active: bool = True,
        new_id: Callable[[], str] = new_call_id,
        custom_names: frozenset[str] = frozenset(),
    ) -> None:
        self.num_calls = 0
        self._custom_names = custom_names
        self._is_input = False  # of a custom tool
        self._has_input_begun = False
        self._is_active = is_active
        self._new_id = new_id
        self._pending: str = ""  # not yet decided: a beginning of a tag
        self._blank: str = ""  # white space not yet decided to be text
        self._is_at_edge = (
            True  # nothing but white space since the output, or the last call, began or ended
        )
        self._scanner: CallScanner | None = None
        self._raw: list[str] = []  # of the call, until its name is known
        self._has_begun = False
        self._events: list[ToolEvent] = []

    def push(self, text: str) -> list[ToolEvent]:
        """Take more of the output; what is now known."""
        if not self._is_active:
            return [TextPiece(text)] if text else []
        self._pending += text
        while self._pending:
            before = (len(self._pending), self._scanner)
            if self._is_input:
                self._read_input()
            elif self._scanner is None:
                self._read_text()
            else:
                self._read_call(self._scanner)
            if (len(self._pending), self._scanner) == before:
                break  # the rest is decided by what comes
        return self._taken()

    def finish(self, is_cut: bool = False) -> list[ToolEvent]:
        """The output has ended; is_cut: by the token limit or an abort, not by the model."""
        rest, self._pending = self._pending, ""
        if self._is_input:
            self._end_input("" if is_cut and rest.startswith(f"\n{CALL_END[:2]}") else rest)
        elif self._scanner is not None:
            self._raw.append(rest)
            self._end_call(self._scanner, is_cut=is_cut)
        else:
            self._add_text(rest)
        if not (self._is_at_edge and self.num_calls):
            self._emit(self._blank)
        self._blank = ""
        return self._taken()

    def _taken(self) -> list[ToolEvent]:
        if self._scanner is not None and self._has_begun:
            self._emit_arguments(self._scanner)
        events, self._events = self._events, []
        return events

    # ------------------------------------------------------------------------------------------ text

    def _read_text(self) -> None:
        at = self._pending.find(CALL_BEGIN)
        if at < 0:
            kept = _num_held(self._pending, CALL_BEGIN)
            self._add_text(self._pending[: len(self._pending) - kept])
            self._pending = self._pending[len(self._pending) - kept :]
            return
        self._add_text(self._pending[:at])
        self._pending = self._pending[at + len(CALL_BEGIN) :]
        self._scanner = CallScanner()
        self._raw = [CALL_BEGIN]
        self._has_begun = False

    def _add_text(self, text: str) -> None:
        if not text:
            return
        text = self._blank + text
        if self._is_at_edge and not text.strip():
            self._blank = text
            return
        self._is_at_edge = False
        self._blank = "\n" if text.endswith("\n") else ""
        self._emit(text.removesuffix(self._blank))

    def _emit(self, text: str) -> None:
        if text:
            self._events.append(TextPiece(text))

    # ------------------------------------------------------------------------------------------ calls

    def _read_call(self, scanner: CallScanner) -> None:
        text, self._pending = self._pending, ""
        for at, character in enumerate(text):
            if character == "<" and not scanner.in_string:
                rest = text[at : at + len(CALL_END)]
                if rest == CALL_END:
                    self._raw.append(CALL_END)
                    self._pending = text[at + len(CALL_END) :]
                    self._end_call(scanner, is_cut=False)
                    return
                if rest.startswith(CALL_BEGIN):  # the model forgot to end this one
                    self._pending = text[at:]
                    self._end_call(scanner, is_cut=False)
                    return
                if CALL_END.startswith(rest) or CALL_BEGIN.startswith(rest):
                    self._pending = text[at:]
                    return
            if not self._has_begun:
                self._raw.append(character)
            scanner.feed(character)
            if scanner.name is not None and not self._has_begun:
                self._begin_call(scanner.name)
            if scanner.is_done and scanner.name in self._custom_names:
                self._pending = text[at + 1 :]
                self._scanner, self._is_input, self._has_input_begun = None, True, False
                return

    def _read_input(self) -> None:
        if not self._has_input_begun:
            self._has_input_begun = True
            self._pending = self._pending.removeprefix("\n")
        at = self._pending.find(CALL_END)
        if at >= 0:
            text, self._pending = self._pending[:at], self._pending[at + len(CALL_END) :]
            self._end_input(text.removesuffix("\n"))
            return
        kept = max(_num_held(self._pending, end) for end in (CALL_END, f"\n{CALL_END}"))
        self._emit_input(self._pending[: len(self._pending) - kept])
        self._pending = self._pending[len(self._pending) - kept :]

    def _end_input(self, text: str) -> None:
        self._emit_input(text)
        self._is_input = False
        self._is_at_edge = True

    def _emit_input(self, text: str) -> None:
        if text:
            self._events.append(CallArguments(self.num_calls - 1, text, is_custom=True))

    def _begin_call(self, name: str) -> None:
        self._blank = ""
        self._has_begun = True
        self._raw = []
        is_custom = name in self._custom_names
        self._events.append(CallBegin(self.num_calls, self._new_id(), name, is_custom))
        self.num_calls += 1

    def _emit_arguments(self, scanner: CallScanner) -> None:
        text = scanner.take_arguments()
        if text:
            self._events.append(CallArguments(self.num_calls - 1, text))

    def _end_call(self, scanner: CallScanner, *, is_cut: bool) -> None:
        scanner.end(is_cut=is_cut)
        if scanner.name is not None and not self._has_begun:
            self._begin_call(scanner.name)
        self._scanner = None
        if self._has_begun:
            self._emit_arguments(scanner)
            self._is_at_edge = True
        else:
            self._add_text("".join(self._raw))


def _num_held(text: str, tag: str) -> int:
    """Characters at the end of `text` that may be the beginning of `tag`."""
    return next(
        (size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])),
        0,
    )
