"""Whether a text is an output of a constraint, and if not, where it leaves the language and what was expected there.

Owns the verdict: the place (line and column in code points, and for JSON the pointer of the value), what stands there, what could, and the
shortest way on. No model is needed: the text is read byte by byte. Knows nothing of printing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ..expr import Limits
from ..matcher import Matcher
from ..spec import JsonSchema, Spec
from .byte_reading import byte_matcher, is_output, read
from .expected import expected_next, shown
from .json_misses import differences, lacking_freedoms, note_on
from .json_places import OpenPlace, open_place

_MAX_COMPLETION_BYTES = 1 << 12
_MAX_STRING = 30
_WORD = re.compile(r'[\w.-]{1,30}|"[^"\n]{0,30}"?')
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')

Outcome = Literal["accepted", "incomplete", "refused"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a text."""

    outcome: Outcome
    """incomplete: right so far, but it ends too early."""
    position: int
    """Code points that are right; the whole text if it is accepted or incomplete."""
    line: int
    column: int
    """Where that is, both from 1, columns in code points."""
    line_text: str
    found: str
    """What stands there, in words."""
    expected: tuple[str, ...]
    """What could stand there, in words."""
    completion: str | None
    """A shortest way on from there to an output; None if the text is accepted."""
    pointer: str
    """The value of the JSON text that is being written there; empty for other constraints."""
    differs_in: tuple[str, ...]
    """How an accepted JSON text differs from compact text in declared order; in what a refused one would need more freedom."""
    note: str


def check_text(spec: Spec, text: str, limits: Limits | None = None) -> Verdict:
    """Read `text` under `spec`. A line break at its end (of JSON: any white space) that is no part of an output is left out.

    Raises GrammarError when the constraint itself is refused.
    """
    matcher = byte_matcher(spec, limits)
    text = _without_last_break(matcher, text, is_json=isinstance(spec, JsonSchema))
    position = read(matcher, text)
    outcome: Outcome = "refused" if position < len(text) else "incomplete"
    if outcome == "incomplete" and matcher.is_accepting:
        outcome = "accepted"
    is_done = outcome == "accepted"
    place: OpenPlace | None = None
    differs_in: tuple[str, ...] = ()
    completion = note = ""
    if not is_done:
        completion = matcher.shortest_completion(_MAX_COMPLETION_BYTES).decode("utf-8", "replace")
    if isinstance(spec, JsonSchema):
        place = open_place(text[:position])
        if outcome == "accepted":
            differs_in = differences(spec, text, limits)
        elif outcome == "refused":
            differs_in = lacking_freedoms(spec, text, limits)
            note = "" if differs_in else note_on(spec, text, position, place, completion, limits)
    line_start = text.rfind("\n", 0, position) + 1
    return Verdict(
        outcome=outcome,
        position=position,
        line=text.count("\n", 0, position) + 1,
        column=position - line_start + 1,
        line_text=text[line_start:].partition("\n")[0].removesuffix("\r"),
        found=_found(text, position, place),
        expected=() if is_done else _expected(matcher, place),
        completion=None if is_done else completion,
        pointer="" if is_done or place is None else place.pointer,
        differs_in=differs_in,
        note=note,
    )


def _without_last_break(matcher: Matcher, text: str, *, is_json: bool) -> str:
    """`text`, less what editors and shells add at its end, if that is no part of an output."""
    less = text.rstrip(" \t\r\n") if is_json else text.removesuffix("\n").removesuffix("\r")
    return text if less == text or is_output(matcher.fork(), text) else less


def _expected(matcher: Matcher, place: OpenPlace | None) -> tuple[str, ...]:
    if place is None:
        return expected_next(matcher)
    return expected_next(matcher, is_json=True, string_so_far=_short(place.string_so_far))


def _found(text: str, position: int, place: OpenPlace | None) -> str:
    """The word at `position`; of a JSON string, all of it."""
    if position == len(text):
        return "the end of the text"
    if place is not None and _short(place.string_so_far):
        start = position - len(place.string_so_far)
        whole = _STRING.match(text, start)
        return shown(whole[0] if whole is not None else text[start : position + _MAX_STRING])
    word = _WORD.match(text, position)
    return shown(text[position] if word is None else word[0])


def _short(string_so_far: str) -> str:
    """The beginning of a string, if it is short enough to be shown."""
    return string_so_far if len(string_so_far) <= _MAX_STRING else ""
