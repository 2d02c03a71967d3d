"""What callers pass as a prompt - a text, token ids, messages, or lists of these - as segments of the wire.

Owns the rule of what is one prompt and what is a list of prompts, and the errors that name the item that is none. Must not know
templates, tokens or requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ..errors import PromptError
from .plain_text import check_text

if TYPE_CHECKING:
    from ..runtime.messages import Chat, Ids, Segment, Text

Prompt: TypeAlias = str | Sequence[int]
"""A text, or token ids taken as they are."""
Message: TypeAlias = Mapping[str, Any]
"""{"role": "system" | "user" | "assistant", "content": text}."""


def prompt_segments(prompt: Prompt | Sequence[Prompt]) -> tuple[list[Segment], bool]:
    """A segment for each prompt, and whether a list of prompts was given. PromptError names the item that is none."""
    if isinstance(prompt, str):
        return [_text(prompt, "prompt")], False
    if not _is_list(prompt):
        raise PromptError(
            f"the prompt is {prompt!r:.80}",
            place="prompt",
            hint="A prompt is a text or a list of token ids; several stand in a list",
        )
    items = list(prompt)
    if items and all(_is_token_id(item) for item in items):
        return [_ids(cast("Sequence[int]", items))], False
    segments: list[Segment] = []
    for number, item in enumerate(items):
        place = f"prompt[{number}]"
        if isinstance(item, str):
            segments.append(_text(item, place))
        elif _is_list(item) and all(map(_is_token_id, cast("Sequence[int]", item))):
            segments.append(_ids(cast("Sequence[int]", item)))
        else:
            raise PromptError(
                f"prompt {number} is {item!r:.80}",
                place=place,
                hint="A prompt is a text or a list of token ids",
            )
    return segments, True


def chat_segments(
    messages: Sequence[Message] | Sequence[Sequence[Message]],
) -> tuple[list[Segment], bool]:
    """A segment for each conversation, and whether a list of conversations was given."""
    if not _is_list(messages):
        raise PromptError(
            f"the conversation is {messages!r:.80}",
            place="messages",
            hint='A conversation is a list of messages, each {"role": ..., "content": ...}',
        )
    is_list = not messages or not isinstance(messages[0], Mapping)
    conversations = cast("Sequence[Sequence[Message]]", messages if is_list else [messages])
    for number, conversation in enumerate(conversations):
        if not _is_list(conversation):
            raise PromptError(
                f"conversation {number} is {conversation!r:.80}",
                place=f"messages[{number}]",
                hint="A conversation is a list of messages",
            )
    return [_conversation(conversation) for conversation in conversations], is_list


def single_segment(prompt: Prompt | Sequence[Message]) -> Segment:
    """The segment of one text, one list of token ids or one conversation; PromptError for a list of prompts."""
    if not isinstance(prompt, str) and prompt and isinstance(prompt[0], Mapping):
        segments, is_list = chat_segments(cast("Sequence[Message]", prompt))
    else:
        segments, is_list = prompt_segments(cast("Prompt", prompt))
    if is_list:
        raise PromptError("a stream takes one prompt, not a list", place="prompt")
    return segments[0]


def _text(text: str, place: str) -> Text:
    from ..runtime.messages import Text

    check_text(text, place)
    return Text(text)


def _ids(items: Sequence[int]) -> Ids:
    from ..runtime.messages import Ids

    return Ids(tuple(int(item) for item in items))


def _is_list(value: object) -> bool:
    """A list, tuple or array. Texts and bytes are sequences too, but never meant as one here."""
    is_text = isinstance(value, str | bytes | bytearray | Mapping)
    return not is_text and hasattr(value, "__getitem__") and hasattr(value, "__len__")


def _is_token_id(item: object) -> bool:
    return hasattr(item, "__index__") and not isinstance(item, bool)


def _conversation(conversation: Sequence[Message]) -> Chat:
    from ..runtime.messages import Chat

    for number, message in enumerate(conversation):
        if not isinstance(message, Mapping) or "role" not in message:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise PromptError(
                f"message {number} is {message!r}",
                place=f"messages[{number}]",
                hint='A message is {"role": ..., "content": ...}',
            )
        for key, value in message.items():
            if isinstance(value, str):
                check_text(value, f"messages[{number}].{key}")
    return Chat(tuple(dict(message) for message in conversation))
