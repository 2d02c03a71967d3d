"""`image` and `video`: refused. The names exist so that a program that uses them is told why it cannot run here.

Owns two errors.
"""

from __future__ import annotations

from typing import NoReturn

from ...errors import ProgramError


def image(path: object) -> NoReturn:
    """ProgramError: no model here sees images."""
    raise ProgramError(
        "image() cannot be used: the models that run here read text only",
        place="image",
        hint="Describe the picture in words, or run this program on a server whose model sees images",
    )


def video(path: object, num_frames: int = 0) -> NoReturn:
    """ProgramError: no model here sees videos."""
    raise ProgramError(
        "video() cannot be used: the models that run here read text only",
        place="video",
        hint="Describe the video in words",
    )
