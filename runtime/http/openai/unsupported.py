"""Fields that OpenAI's types know and this server cannot honour: refused by name, or taken because they promise nothing.

    refused            what the answer would silently lack: audio, web search, moderation, storing, function_call, suffix
    taken, reported    a wish the model cannot be told: verbosity, reasoning_effort, a service tier
    taken              hints and labels without a promise: user, metadata, prompt_cache_key, prediction

Owns that list. Knows nothing of what the honoured fields mean.
"""

from __future__ import annotations

from ....errors import PromptError
from .bodies import ChatBody, CompletionBody, GenerationBody

_NO_TAGS = "Use tools, response_format or grammar"


def refuse_unsupported(body: GenerationBody) -> None:
    """Raise PromptError, its place the field's name, for a field that asks for what is not there."""
    for name, reason, hint in _refusals(body):
        raise PromptError(reason, place=name, hint=hint)


def ineffective_fields(body: GenerationBody) -> tuple[str, ...]:
    """Names of the fields given that have no effect here and that a caller should hear of."""
    if isinstance(body, CompletionBody):
        return ()
    given = (
        ("reasoning_effort", body.reasoning_effort not in (None, "none")),
        ("service_tier", body.service_tier not in (None, "auto", "default")),
        ("verbosity", body.verbosity is not None),
    )
    return tuple(name for name, is_given in given if is_given)


def _refusals(body: GenerationBody) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    outputs = body.structured_outputs
    if outputs is not None and outputs.structural_tag is not None:
        found.append(
            ("structured_outputs.structural_tag", "structural_tag is not supported", _NO_TAGS)
        )
    if isinstance(body, CompletionBody):
        if body.suffix:
            found.append(("suffix", "text cannot be inserted before a suffix", ""))
        return found
    return found + _chat_refusals(body)


def _chat_refusals(body: ChatBody) -> list[tuple[str, str, str]]:
    tools = "Use tools and tool_choice"
    cases = (
        ("audio", body.audio is not None, "no audio is generated", ""),
        (
            "modalities",
            any(kind != "text" for kind in body.modalities or ()),
            f"modalities {body.modalities!r}: only text is generated",
            "",
        ),
        ("functions", bool(body.functions), "functions was replaced by tools", tools),
        (
            "function_call",
            body.function_call not in (None, "auto", "none"),
            "function_call was replaced by tool_choice",
            tools,
        ),
        ("moderation", body.moderation is not None, "no moderation is done here", ""),
        ("store", body.store is True, "answers are not stored here", "Leave store out"),
        (
            "web_search_options",
            body.web_search_options is not None,
            "there is no web search here",
            "",
        ),
    )
    return [(name, reason, hint) for name, is_given, reason, hint in cases if is_given]
