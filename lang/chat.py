"""The message list behind roles.

Owns the marks that roles leave among a branch's pieces, the rule that roles do not nest, and the reading of the marks as messages.
Must not know how a model writes its messages: templates are the gateway's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class RoleMark:
    """The beginning or the end of a chat message in a branch's pieces."""

    role: str
    begins: bool


def check_begin(role: str, open_role: str | None) -> None:
    """ProgramError if a message is open already, or the role has no name."""
    if not role:
        raise ProgramError("a role needs a name", place="role")
    if open_role is not None:
        raise ProgramError(f"{role!r} begins inside the open role {open_role!r}", place="role")


def check_end(role: str, open_role: str | None) -> None:
    """ProgramError unless `role` is the open one."""
    if open_role is None:
        raise ProgramError(f"{role!r} ends, but no role is open", place="role")
    if role != open_role:
        raise ProgramError(f"{role!r} ends while {open_role!r} is open", place="role")


def to_messages(pieces: Iterable[str | RoleMark]) -> list[dict[str, str]]:
    """The chat messages in `pieces`, each {"role", "content"}; an open one counts, text outside all roles does not."""
    messages: list[dict[str, str]] = []
    is_open = False
    for piece in pieces:
        if isinstance(piece, RoleMark):
            is_open = piece.begins
            if piece.begins:
                messages.append({"role": piece.role, "content": ""})
        elif is_open:
            messages[-1]["content"] += piece
    return messages
