"""A chat's messages as clients send them, made ready for the gateway: deprecated spellings renewed, what has no effect left out.

Owns that small translation; roles, content parts and tool calls are checked where the template is rendered. Clients send back what they
were given (`refusal: null`, `audio: null`, `annotations: []`), so nulls are dropped and a refusal counts as text.
"""

from __future__ import annotations

from typing import Any, cast

from ....errors import PromptError


def conversation(messages: list[dict[str, Any]] | None) -> tuple[dict[str, Any], ...]:
    """The messages for `Chat`. Raises PromptError when there are none, or one refers to what was never kept."""
    if not messages:
        raise PromptError("messages is empty: a chat needs at least one message", place="messages")
    return tuple(_message(message, f"messages[{i}]", i) for i, message in enumerate(messages))


def _message(message: dict[str, Any], place: str, number: int) -> dict[str, Any]:
    if message.get("audio") is not None:
        raise PromptError("no audio is kept here", place=f"{place}.audio")
    kept = {key: value for key, value in message.items() if value is not None}
    if message.get("role") == "function":
        kept["role"] = "tool"
    call = kept.pop("function_call", None)
    if call is not None and "tool_calls" not in kept:
        kept["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": call}]
    refusal = kept.pop("refusal", None)
    if isinstance(refusal, str) and "content" not in kept:
        kept["content"] = refusal
    if isinstance(kept.get("content"), list):
        kept["content"] = [_part(part) for part in cast("list[Any]", kept["content"])]
    return kept


def _part(part: object) -> object:
    if not isinstance(part, dict):
        return part
    fields = cast("dict[str, Any]", part)
    return {"type": "text", "text": fields["refusal"]} if _is_refusal(fields) else fields


def _is_refusal(fields: dict[str, Any]) -> bool:
    return fields.get("type") == "refusal" and "refusal" in fields
