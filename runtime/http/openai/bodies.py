"""The request bodies of /v1/chat/completions and /v1/completions, as msgspec structs.

Owns which fields exist and of what JSON type they are: every field of OpenAI's own types, and the extensions other servers taught clients
to send. null means absent everywhere. What a value may be, and which fields are refused, is decided in `sampling`, `constraints` and
`unsupported`. Schemas keep the order of their keys, which is the order of the output.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....grammar.spec import Whitespace


class StreamOptions(msgspec.Struct, frozen=True):
    """Of a stream: is its usage told in one more chunk at the end, and are the lengths of its chunks blurred."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class JsonSchemaFormat(msgspec.Struct, frozen=True):
    """The schema of a response format. `strict` changes nothing: a schema is always enforced exactly.

    `any_order` and `whitespace` are ours, see `grammar.spec.JsonSchema`.
    """

    name: str | None = None
    description: str | None = None
    schema: Any = None
    strict: bool | None = None
    any_order: bool | None = None
    whitespace: Whitespace | None = None


class ResponseFormat(msgspec.Struct, frozen=True):
    """What the whole answer must be: text, any JSON object, JSON of a schema, or a sentence of a grammar."""

    type: str
    json_schema: JsonSchemaFormat | None = None
    grammar: str | None = None


class StructuredOutputs(msgspec.Struct, frozen=True):
    """A constraint in the spelling of vLLM."""

    json: Any = None
    regex: str | None = None
    choice: list[str] | None = None
    json_object: bool | None = None
    grammar: str | None = None
    structural_tag: Any = None


class _Generation(msgspec.Struct, frozen=True, kw_only=True):
    """What both endpoints take."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    user: str | None = None
    # extensions
    top_k: int | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool | None = None
    cache_salt: str | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    regex: str | None = None
    choices: list[str] | None = None
    json_schema: Any = None
    guided_json: Any = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    ebnf: str | None = None
    grammar: str | None = None


class ChatBody(_Generation, frozen=True, kw_only=True):
    """The body of /v1/chat/completions."""

    messages: list[dict[str, Any]] | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    # hints that promise nothing, taken and left alone
    metadata: dict[str, Any] | None = None
    prediction: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    # taken at the value that needs nothing of us, else reported as ignored or refused
    modalities: list[str] | None = None
    reasoning_effort: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    verbosity: str | None = None
    audio: Any = None
    function_call: Any = None
    functions: Any = None
    moderation: Any = None
    web_search_options: Any = None


class CompletionBody(_Generation, frozen=True, kw_only=True):
    """The body of /v1/completions."""

    prompt: str | list[Any] | None = None
    best_of: int | None = None
    echo: bool | None = None
    logprobs: int | None = None
    suffix: str | None = None


GenerationBody = ChatBody | CompletionBody
