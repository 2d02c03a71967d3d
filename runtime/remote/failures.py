"""What a server's refusal means: its status and body as an error of `errors.py`, whether to try again, and when.

    400 422 the request (context, constraint, sampling argument, else UserError) - 401 403 the key: ConfigError - 404 no such model or
    path: ConfigError - 413 PromptError - 408 504 TimedOut - 429 Overloaded - 409 and 5xx ServiceError

Tried again: 408, 409, 429 and 5xx, as the official clients do, never other 4xx. The delay is the server's (`retry-after-ms`,
`retry-after` in seconds or as a date), else it doubles from half a second with a random part; `x-should-retry` decides where it is given.
Owns that table. Knows no request.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, cast

import msgspec

from ...errors import (
    ConfigError,
    ContextOverflow,
    GrammarError,
    Overloaded,
    PromptError,
    RadixError,
    SamplingError,
    ServiceError,
    TimedOut,
    UserError,
)
from ..messages import WireError

ERROR_HEADER = "x-radixlm-error"
MAX_DELAY_S = 60.0
_FIRST_DELAY_S = 0.5
_LAST_OWN_DELAY_S = 8.0
_MAX_CHARACTERS = 2000  # of a server's message
_RETRIED = frozenset({408, 409, 429})
_CONSTRAINTS = (
    "response_format", "json_schema", "structured_outputs", "guided_", "regex", "grammar", "ebnf", "output_config",
)  # fmt: skip
_SAMPLING = frozenset(
    {
        "temperature", "top_p", "top_k", "min_p", "n", "seed", "stop", "stop_sequences", "max_tokens", "max_completion_tokens",
        "logprobs", "top_logprobs", "logit_bias", "frequency_penalty", "presence_penalty",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error, and whether the same request may be sent again."""

    error: RadixError
    is_retryable: bool


def refusal_of(server: str, status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
    """What an answer that is no success means."""
    told = _told(body)
    should = headers.get("x-should-retry")
    is_retryable = status in _RETRIED or status >= 500
    if should in ("true", "false"):
        is_retryable = should == "true"
    own = _own_error(headers)
    if own is not None:
        return Refusal(own, is_retryable and own.retryable)
    return Refusal(_error(server, status, told), is_retryable)


def error_in_stream(server: str, error: Any) -> RadixError:
    """The error object of an event that breaks off a stream."""
    told = _told(json.dumps({"error": error}).encode())
    status = told.status or {"overloaded_error": 529, "rate_limit_error": 429}.get(told.kind, 500)
    if told.kind == "invalid_request_error":
        status = 400
    return _error(server, status, told)


def delay_s(attempt: int, headers: Mapping[str, str]) -> float:
    """How long to wait before attempt number `attempt` (1 is the first repetition)."""
    asked = _asked_delay_s(headers)
    if asked is not None:
        return min(max(asked, 0.0), MAX_DELAY_S)
    backoff = min(_FIRST_DELAY_S * 2 ** (attempt - 1), _LAST_OWN_DELAY_S)
    return backoff * random.uniform(0.75, 1.0)


def _asked_delay_s(headers: Mapping[str, str]) -> float | None:
    milliseconds, seconds = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return float(milliseconds) / 1000
        if seconds is not None:
            return float(seconds)
    except ValueError:
        pass
    if seconds is None:
        return None
    try:
        return parsedate_to_datetime(seconds).timestamp() - time.time()
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Told:
    message: str
    kind: str = ""
    param: str = ""
    code: str = ""
    status: int = 0


def _told(body: bytes) -> _Told:
    """The message in a body of any of the shapes servers use."""
    plain = body.decode("utf-8", errors="replace").strip()[:_MAX_CHARACTERS]
    try:
        data: Any = json.loads(body)
    except ValueError:
        return _Told(plain)
    if not isinstance(data, dict):
        return _Told(plain)
    outer = cast("dict[str, Any]", data)
    inner: Any = outer.get("error", outer)
    if isinstance(inner, str):
        return _Told(inner[:_MAX_CHARACTERS])
    if not isinstance(inner, dict):
        return _Told(plain)
    error = cast("dict[str, Any]", inner)
    message = error.get("message", error.get("detail", plain))
    text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    code = error.get("code")
    return _Told(
        text[:_MAX_CHARACTERS],
        str(error.get("type") or ""),
        str(error.get("param") or ""),
        str(code or ""),
        code if isinstance(code, int) else 0,
    )


def _own_error(headers: Mapping[str, str]) -> RadixError | None:
    """The exact error, which our own server tells in a header."""
    given = headers.get(ERROR_HEADER)
    if given is None:
        return None
    try:
        return msgspec.json.decode(given, type=WireError).to_exception()
    except msgspec.MsgspecError:
        return None


def _error(server: str, status: int, told: _Told) -> RadixError:
    message = f"{server} says ({status}): {told.message or 'nothing'}"
    if status in (400, 422):
        return _mistake(told)(message, place=told.param)
    if status in (401, 403):
        return ConfigError(message, place="api_key")
    if status == 404:
        is_path = "no POST" in told.message or not told.message
        hint = "Is it the server's address up to /v1?" if is_path else ""
        place = told.param or ("base_url" if is_path else "model")
        return ConfigError(message, place=place, hint=hint)
    if status == 413:
        return PromptError(message, place=told.param)
    if status in (408, 504):
        return TimedOut(message)
    if status in (429, 529):
        return Overloaded(message)
    return ServiceError(message) if status >= 500 or status == 409 else UserError(message)


def _mistake(told: _Told) -> type[RadixError]:
    text = told.message.lower()
    if (
        told.code == "context_length_exceeded"
        or "context length" in text
        or "prompt is too long" in text
    ):
        return ContextOverflow
    if told.code == "unsupported_schema" or told.param.startswith(_CONSTRAINTS):
        return GrammarError
    if told.param in _SAMPLING:
        return SamplingError
    return UserError
