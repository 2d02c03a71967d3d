"""Where in the user's program something was asked for. Imports nothing heavy: it is loaded with the primitives.

Owns the walk up the call stack. Must not know nodes, branches or messages.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

_LANG_FOLDER = f"{Path(__file__).parent}{os.sep}"


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's program."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}()"


def user_place() -> Place:
    """The line of the nearest caller outside this folder."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  the documented way to a caller's line
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LANG_FOLDER):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
