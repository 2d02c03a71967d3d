"""Errors as HTTP answers in OpenAI's shape: {"error": {"message", "type", "param", "code"}}. Owns which error gets which status.

    user's mistakes 400 - no such model 404 - key 401 - too large 413 - queue full 429 - engine gone, draining 503 - no answer in time 504
    anything that is not an error of `errors.py` is a defect: 500, logged, and nothing of it shown

OpenAI's and Anthropic's clients try again at 408, 409, 429 and 5xx, never at other 4xx. `param` is the place the error names: a field of
the body with its path, and inside a schema the JSON pointer behind the field. Knows nothing of requests or routes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import (
    Aborted,
    ContextOverflow,
    EngineDied,
    GrammarError,
    Overloaded,
    PromptError,
    RadixError,
    SamplingError,
    ServiceError,
    TimedOut,
    UserError,
)
from .json_answer import JsonAnswer, encode_json

log = logging.getLogger(__name__)

RETRY_AFTER_S = 1
_MAX_CHARACTERS = 2000  # of a message: it may quote what the client sent, which has megabytes
_MAX_PARAM_CHARACTERS = 200


class HttpRefusal(UserError):
    """A request that is refused before anything runs, with the status to answer. `place` becomes `param`."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        place: str = "",
        hint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, place=place, hint=hint)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


class BodyError(HttpRefusal):
    """A body that is no JSON, or a field of it that has a wrong type or value: 400, `place` is the field's path."""


class ClientGone(Exception):
    """The peer closed its connection before it was answered. Nobody reads an answer any more."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What to answer: a status, the body's `error` object, and headers."""

    status: int
    message: str
    type: str
    param: str | None = None
    code: str | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def body(self) -> dict[str, object]:
        """The JSON body."""
        error = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        return {"error": error}


# the first class that fits counts: (class, status, type, code)
_TABLE: tuple[tuple[type[BaseException], int, str, str | None], ...] = (
    (ContextOverflow, 400, "invalid_request_error", "context_length_exceeded"),
    (GrammarError, 400, "invalid_request_error", "unsupported_schema"),
    (SamplingError, 400, "invalid_request_error", "invalid_value"),
    (PromptError, 400, "invalid_request_error", "invalid_prompt"),
    (UserError, 400, "invalid_request_error", None),
    (Overloaded, 429, "rate_limit_error", "overloaded"),
    (TimedOut, 504, "server_error", "timeout"),
    (EngineDied, 503, "server_error", "engine_died"),
    (Aborted, 503, "server_error", "aborted"),
    (ServiceError, 503, "server_error", "unavailable"),
)
_TYPE_OF_STATUS = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
_DEFECT = Refusal(
    500, "the server met an internal error; its log says more", "server_error", code="internal"
)


def refusal_of(error: BaseException) -> Refusal:
    """The answer to `error`. A defect is logged with its trace."""
    if isinstance(error, HttpRefusal):
        kind = _TYPE_OF_STATUS.get(error.status, "invalid_request_error")
        kind = "server_error" if error.status >= 500 else kind
        return Refusal(
            error.status, text_of(error), kind, _param_of(error), error.code, dict(error.headers)
        )
    if isinstance(error, RadixError):
        for kind, status, type_name, code in _TABLE:
            if isinstance(error, kind):
                headers = {"retry-after": str(RETRY_AFTER_S)} if status in (429, 503) else {}
                return Refusal(status, text_of(error), type_name, _param_of(error), code, headers)
    log.error("a request met a defect", exc_info=error)
    return _DEFECT


def text_of(error: RadixError) -> str:
    """Message, place and hint: many programs show their users nothing but this text."""
    text = _shortened(error.message, _MAX_CHARACTERS)
    place = _param_of(error)
    if place is not None and place not in text:
        text = f"{text} (at {place})"
    return f"{text}. {_shortened(error.hint, _MAX_CHARACTERS)}" if error.hint else text


def _param_of(error: RadixError) -> str | None:
    return _shortened(error.place, _MAX_PARAM_CHARACTERS) or None


def _shortened(text: str, num_characters: int) -> str:
    return text if len(text) <= num_characters else f"{text[:num_characters]}..."


def refuse(error: BaseException) -> JsonAnswer:
    """The whole answer to `error`."""
    refusal = refusal_of(error)
    return JsonAnswer(refusal.body, status_code=refusal.status, headers=refusal.headers)


def error_json(error: BaseException) -> bytes:
    """The body alone, for a stream that has begun."""
    return encode_json(refusal_of(error).body)


def unknown_model(asked: str, served: str) -> HttpRefusal:
    """404: the model is not the one served."""
    return HttpRefusal(
        f"the model {asked!r} does not exist here",
        status=404,
        code="model_not_found",
        place="model",
        hint=f"This server serves {served!r}",
    )
