"""`image`: refused clearly. Programs written for runtimes with vision models name it.

Owns the refusal. No model that runs here, and no remote backend, reads images.
"""

from __future__ import annotations

from typing import NoReturn

from ...errors import ProgramError


def image(expr: object) -> NoReturn:
    """Always raises ProgramError: programs here are text, images are not read."""
    raise ProgramError(
        f"image({expr!r:.60}) cannot be part of a prompt: images are not read here",
        place="image",
        hint="Put what it shows into words",
    )
