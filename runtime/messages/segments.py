"""The parts a prompt is made of: text, ids, role borders, whole conversations.

Owns the segment types. Knows nothing of templates or tokens: the gateway renders them.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Plain text; special-token spellings inside it are ordinary characters."""

    text: str


class Ids(msgspec.Struct, frozen=True, tag="ids"):
    """Token ids, taken as they are."""

    token_ids: tuple[int, ...]


class RoleBegin(msgspec.Struct, frozen=True, tag="role_begin"):
    """Start of a chat message of `role`; the model's template says how it is written."""

    role: str


class RoleEnd(msgspec.Struct, frozen=True, tag="role_end"):
    """End of the chat message begun last."""

    role: str


class Chat(msgspec.Struct, frozen=True, tag="chat"):
    """A whole conversation for the model's chat template. Each message is {"role", "content", ...}."""

    messages: tuple[dict[str, Any], ...]
    tools: tuple[dict[str, Any], ...] = ()
    add_generation_prompt: bool = True


Segment = Text | Ids | RoleBegin | RoleEnd | Chat
