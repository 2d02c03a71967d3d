"""The answers of OpenAI-compatible servers, read: choices of chats and completions, whole or as chunks, usage, log-probabilities.

Owns where servers put things, and their small differences. Knows nothing of what is done with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ...errors import OutputError, ServiceError
from .. import messages as m


@dataclass(frozen=True, slots=True)
class ChoicePart:
    """One choice, or what a chunk adds to it."""

    index: int
    text: str
    reason: str | None
    stop: str | int | None
    logprobs: Mapping[str, Any] | None


def read_chunk(answer: Mapping[str, Any], server: str) -> Iterator[ChoicePart]:
    """The choices of an answer or chunk. OutputError if the model refused."""
    choices: Any = answer.get("choices")
    if not isinstance(choices, list):
        raise ServiceError(f"{server} answered without choices: {str(dict(answer))[:200]}")
    for position, choice in enumerate(cast("list[dict[str, Any]]", choices)):
        said: Any = choice.get("message") or choice.get("delta") or {}
        if said.get("refusal"):
            raise OutputError(f"the model refused: {said['refusal']}", place="refusal")
        text: Any = said.get("content") if "text" not in choice else choice["text"]
        reason: Any = choice.get("finish_reason")
        stop: Any = choice.get("stop_reason", choice.get("matched_stop"))
        if "message" in choice and reason is None:
            reason = "stop"
        yield ChoicePart(
            choice.get("index", position),
            _text(text),
            reason,
            stop if isinstance(stop, str | int) else None,
            cast("Mapping[str, Any] | None", choice.get("logprobs")),
        )


def _text(content: Any) -> str:
    """Content as text: a string, null, or a list of parts."""
    if isinstance(content, list):
        parts = cast("list[dict[str, Any]]", content)
        return "".join(str(part.get("text", "")) for part in parts)
    return content or ""


def usage_of(answer: Mapping[str, Any]) -> m.Usage:
    """The counts of an answer; what is not told counts as 0."""
    usage = cast("dict[str, Any]", answer.get("usage") or {})
    prompt = cast("dict[str, Any]", usage.get("prompt_tokens_details") or {})
    completion = cast("dict[str, Any]", usage.get("completion_tokens_details") or {})
    return m.Usage(
        usage.get("prompt_tokens") or 0,
        prompt.get("cached_tokens") or 0,
        usage.get("completion_tokens") or 0,
        completion.get("forced_tokens") or 0,
    )


def tokens_of(logprobs: Mapping[str, Any] | None) -> list[str]:
    """The tokens of a text completion that were told."""
    return list((logprobs or {}).get("tokens") or [])


def logprobs_of(logprobs: Mapping[str, Any] | None, server: str) -> list[m.TokenLogprob]:
    """Log-probabilities of tokens that are told as ids ("token_id:17")."""
    if not logprobs:
        return []
    content: Any = logprobs.get("content")
    if content is not None:
        return [
            m.TokenLogprob(
                _id(entry["token"], server),
                entry["logprob"],
                tuple(
                    (_id(top["token"], server), top["logprob"])
                    for top in entry.get("top_logprobs") or ()
                ),
            )
            for entry in content
        ]
    found: Any = logprobs.get("top_logprobs") or [None] * len(logprobs["tokens"])
    tops = cast("list[dict[str, float] | None]", found)
    return [
        m.TokenLogprob(
            _id(token, server),
            0.0 if value is None else value,
            tuple((_id(name, server), other) for name, other in (top or {}).items()),
        )
        for token, value, top in zip(
            logprobs["tokens"], logprobs["token_logprobs"], tops, strict=True
        )
    ]


def _id(token: str, server: str) -> int:
    head, _, number = token.partition(":")
    if head != "token_id" or not number.isdecimal():
        raise ServiceError(
            f"{server} told the token {token!r}, not its id", hint="Is it up to date?"
        )
    return int(number)
