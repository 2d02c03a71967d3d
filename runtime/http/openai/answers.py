"""The answers of the two endpoints as msgspec structs: whole, and as chunks of a stream.

Owns their exact shape, as OpenAI's own types read it: what is always there (usage with its details, `refusal`, `logprobs` of a whole
answer), and what a chunk leaves out rather than say null. `radixlm` holds what is ours: the seed, ignored fields, replaced characters.
Knows nothing of requests or tokens.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

import msgspec

from ... import messages as m


@dataclass(frozen=True, slots=True)
class Head:
    """What all events of one answer share."""

    id: str
    created: int  # seconds since 1970
    model: str

    @staticmethod
    def new(prefix: str, model: str) -> Head:
        """A fresh one: `chatcmpl-...` or `cmpl-...`."""
        return Head(f"{prefix}-{secrets.token_hex(12)}", int(time.time()), model)


@dataclass(frozen=True, slots=True)
class Notes:
    """What a caller is told of how its request was taken."""

    ignored_fields: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


NO_NOTES = Notes()


class PromptTokensDetails(msgspec.Struct, frozen=True):
    """Of the prompt's tokens: how many came from the prefix cache."""

    cached_tokens: int


class CompletionTokensDetails(msgspec.Struct, frozen=True):
    """Of the generated tokens: how many the grammar forced."""

    forced_tokens: int
    reasoning_tokens: int = 0


class UsageAnswer(msgspec.Struct, frozen=True):
    """Token counts of one HTTP request, all its prompts and choices together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails

    @staticmethod
    def of(*usages: m.Usage) -> UsageAnswer:
        """The sum of `usages`."""
        num_prompt = sum(usage.prompt_tokens for usage in usages)
        num_completion = sum(usage.completion_tokens for usage in usages)
        return UsageAnswer(
            num_prompt,
            num_completion,
            num_prompt + num_completion,
            PromptTokensDetails(sum(usage.cached_tokens for usage in usages)),
            CompletionTokensDetails(sum(usage.forced_tokens for usage in usages)),
        )


class Extras(msgspec.Struct, frozen=True, omit_defaults=True):
    """What this server tells beside OpenAI's fields."""

    seed: int | None = None  # repeats this answer
    ignored_fields: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()  # characters of the prompt that no token spells
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of(notes: Notes, *finished: m.Finished) -> Extras | msgspec.UnsetType:
        """The extras of an answer made of `finished`, if there are any; a seed only where there is one."""
        seed = finished[0].seed if len(finished) == 1 else None
        replaced = dict.fromkeys(text for one in finished for text in one.replaced)
        extras = Extras(seed, notes.ignored_fields, tuple(replaced), notes.warnings)
        return msgspec.UNSET if extras == Extras() else extras


# ---------------------------------------------------------------------------------------------- log-probabilities


class TopLogprob(msgspec.Struct, frozen=True):
    """One alternative at a place."""

    token: str
    logprob: float
    bytes: list[int]


class ContentLogprob(msgspec.Struct, frozen=True):
    """One token of a chat's content."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class ChatLogprobs(msgspec.Struct, frozen=True):
    """Of a chat choice, or of one chunk of it."""

    content: list[ContentLogprob]
    refusal: None = None


class LegacyLogprobs(msgspec.Struct, frozen=True):
    """Of a text completion: parallel lists, one entry per token."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


# ---------------------------------------------------------------------------------------------- chat


class CalledFunction(msgspec.Struct, frozen=True):
    """Name and arguments (JSON text) of a call."""

    name: str
    arguments: str


class CalledCustom(msgspec.Struct, frozen=True):
    """Name and input (plain text) of a call of a custom tool."""

    name: str
    input: str


class ToolCallAnswer(msgspec.Struct, frozen=True):
    """One call of a tool: of a function, or of a custom tool."""

    id: str
    function: CalledFunction | msgspec.UnsetType = msgspec.UNSET
    type: str = "function"
    custom: CalledCustom | msgspec.UnsetType = msgspec.UNSET


class ChatMessage(msgspec.Struct, frozen=True):
    """The assistant's message. `tool_calls` is absent when nothing is called."""

    content: str | None
    tool_calls: list[ToolCallAnswer] | msgspec.UnsetType = msgspec.UNSET
    role: str = "assistant"
    refusal: None = None


class ChatChoice(msgspec.Struct, frozen=True):
    """One of the n answers."""

    index: int
    message: ChatMessage
    finish_reason: str
    logprobs: ChatLogprobs | None = None
    stop_reason: str | int | msgspec.UnsetType = msgspec.UNSET  # the stop string or token id


class ChatAnswer(msgspec.Struct, frozen=True):
    """A whole answer to /v1/chat/completions."""

    id: str
    created: int
    model: str
    choices: list[ChatChoice]
    usage: UsageAnswer
    radixlm: Extras | msgspec.UnsetType = msgspec.UNSET
    object: str = "chat.completion"


class FunctionDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The name, once; then pieces of the arguments."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    arguments: str | msgspec.UnsetType = msgspec.UNSET


class CustomDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The name of a custom tool, once; then pieces of its input."""

    name: str | msgspec.UnsetType = msgspec.UNSET
    input: str | msgspec.UnsetType = msgspec.UNSET


class ToolCallDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first of a call has id, type and name; the others only index and arguments."""

    index: int
    id: str | msgspec.UnsetType = msgspec.UNSET
    type: str | msgspec.UnsetType = msgspec.UNSET
    function: FunctionDelta | msgspec.UnsetType = msgspec.UNSET
    custom: CustomDelta | msgspec.UnsetType = msgspec.UNSET


class ChatDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a chunk adds to the message."""

    role: str | msgspec.UnsetType = msgspec.UNSET
    content: str | msgspec.UnsetType = msgspec.UNSET
    tool_calls: list[ToolCallDelta] | msgspec.UnsetType = msgspec.UNSET


class ChatChunkChoice(msgspec.Struct, frozen=True):
    """The part of a chunk that belongs to one choice; only its last says why it ended."""

    index: int
    delta: ChatDelta
    finish_reason: str | None = None
    logprobs: ChatLogprobs | msgspec.UnsetType = msgspec.UNSET
    stop_reason: str | int | msgspec.UnsetType = msgspec.UNSET


class ChatChunk(msgspec.Struct, frozen=True):
    """One event of a chat stream."""

    id: str
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: UsageAnswer | msgspec.UnsetType = msgspec.UNSET
    radixlm: Extras | msgspec.UnsetType = msgspec.UNSET
    obfuscation: str | msgspec.UnsetType = msgspec.UNSET
    object: str = "chat.completion.chunk"


# ---------------------------------------------------------------------------------------------- text completions


class TextChoice(msgspec.Struct, frozen=True):
    """One completion, or what a chunk adds to it (then `finish_reason` is null until its last)."""

    index: int
    text: str
    finish_reason: str | None = None
    logprobs: LegacyLogprobs | None = None
    stop_reason: str | int | msgspec.UnsetType = msgspec.UNSET


class TextAnswer(msgspec.Struct, frozen=True):
    """A whole answer to /v1/completions, and each event of its stream."""

    id: str
    created: int
    model: str
    choices: list[TextChoice]
    usage: UsageAnswer | msgspec.UnsetType = msgspec.UNSET
    radixlm: Extras | msgspec.UnsetType = msgspec.UNSET
    obfuscation: str | msgspec.UnsetType = msgspec.UNSET
    object: str = "text_completion"


def stop_reason_of(output: m.Output) -> str | int | msgspec.UnsetType:
    """The stop string or token id that ended an output, as the answers name it."""
    return msgspec.UNSET if output.matched_stop is None else output.matched_stop
