"""The content of a branch as a remote server is told it: one text, or a list of chat messages.

Owns the pieces a branch is made of on this side, and their reading as text and as a conversation. Knows no server: which of the two
a server takes is the adapter's choice.

As a conversation, what stands in roles are its messages. Text outside all roles is a message of the user, and what was generated outside
all roles is one of the assistant: a model that only speaks in turns then answers the text instead of continuing it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ...errors import ProgramError
from .. import messages as m


@dataclass(frozen=True, slots=True)
class Said:
    """An output that the branch goes on with: its text, and the segments by which our own server knows it (else its text)."""

    text: str
    segments: tuple[m.Segment, ...]


Piece = m.Text | m.Ids | m.RoleBegin | m.RoleEnd | m.Chat | Said


@dataclass(slots=True)
class Conversation:
    """Closed messages, and the beginning of the assistant's message that is open now."""

    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    prefix: str = ""


def segments_of(pieces: Iterable[Piece]) -> tuple[m.Segment, ...]:
    """The pieces as our own server takes them; neighbouring texts joined."""
    joined: list[m.Segment] = []
    for piece in pieces:
        for segment in piece.segments if isinstance(piece, Said) else (piece,):
            last = joined[-1] if joined else None
            if isinstance(segment, m.Text) and isinstance(last, m.Text):
                joined[-1] = m.Text(last.text + segment.text)
            else:
                joined.append(segment)
    return tuple(joined)


def has_roles(pieces: Iterable[Piece]) -> bool:
    """Does any chat message stand among the pieces?"""
    return any(isinstance(piece, m.RoleBegin | m.Chat) for piece in pieces)


def plain_text(pieces: Iterable[Piece], server: str) -> str:
    """The pieces as one text. ProgramError for what is none."""
    parts: list[str] = []
    for piece in pieces:
        if isinstance(piece, m.Text | Said):
            parts.append(piece.text)
        elif isinstance(piece, m.Ids):
            raise _no_ids(server)
        else:
            raise ProgramError(
                f"{server} continues plain text here and knows no chat roles",
                place="role",
                hint="Use a chat model, or write the roles as text",
            )
    return "".join(parts)


def conversation(pieces: Sequence[Piece], server: str) -> Conversation:
    """The pieces as chat messages. ProgramError for raw ids, and for a result that is not the assistant's."""
    talk = Conversation()
    open_role: str | None = None
    is_loose = False  # the last message is text outside all roles, which goes on
    for piece in pieces:
        if isinstance(piece, m.RoleBegin):
            open_role, is_loose = piece.role, False
            talk.messages.append({"role": piece.role, "content": ""})
        elif isinstance(piece, m.RoleEnd):
            open_role = None
        elif isinstance(piece, m.Chat):
            talk.messages += piece.messages
            is_loose = False
        elif isinstance(piece, m.Ids):
            raise _no_ids(server)
        elif open_role is not None:
            talk.messages[-1]["content"] += piece.text
        else:
            is_loose = _add_loose(talk.messages, piece, is_loose)
    if open_role is not None:
        if open_role != "assistant":
            raise ProgramError(
                f"a result stands in the role {open_role!r}; {server} only generates the assistant's messages",
                place="role",
                hint="Put gen and select into assistant(...)",
            )
        talk.prefix = cast("str", talk.messages.pop()["content"])
    return talk


def _add_loose(messages: list[dict[str, Any]], piece: m.Text | Said, is_loose: bool) -> bool:
    """Text outside all roles; is the last message now one that such text goes on with?"""
    role = "assistant" if isinstance(piece, Said) else "user"
    if not piece.text.strip():
        if is_loose and messages[-1]["role"] == role:
            messages[-1]["content"] += piece.text
        return is_loose
    if is_loose and messages[-1]["role"] == role:
        messages[-1]["content"] += piece.text
    else:
        messages.append({"role": role, "content": piece.text})
    return True


def _no_ids(server: str) -> ProgramError:
    return ProgramError(f"{server} takes no token ids, only text", place="token_ids")
