"""From the fields of a body to SamplingParams, with OpenAI's defaults: over HTTP the temperature is 1.0 unless said.

Owns the translation, field by field. The ranges are `SamplingParams.check`'s. Knows nothing of prompts, tools or sockets.
"""

from __future__ import annotations

from typing import Any

from ....errors import SamplingError
from ... import messages as m
from .bodies import ChatBody, CompletionBody, GenerationBody
from .places import in_terms_of_body

DEFAULT_TEMPERATURE = 1.0
DEFAULT_COMPLETION_TOKENS = 16  # of /v1/completions; a chat may fill the context
_SEED_BITS = 2**63 - 1
_SMALLEST_TOP_P = 1e-9


def chat_sampling(body: ChatBody) -> m.SamplingParams:
    """The sampling of a chat request. Raises SamplingError whose place is the field's name in the body."""
    if body.top_logprobs is not None and not body.logprobs:
        raise SamplingError("top_logprobs needs logprobs: true", place="top_logprobs")
    max_tokens = body.max_completion_tokens
    if max_tokens is None:
        max_tokens = body.max_tokens
    return _checked(
        body,
        max_tokens=max_tokens,
        n=_or(body.n, 1),
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
    )


def completion_sampling(body: CompletionBody) -> m.SamplingParams:
    """The sampling of a text completion; `n` is `best_of` where that is larger. Raises SamplingError as `chat_sampling`."""
    num_wanted = _or(body.n, 1)
    num_drawn = _or(body.best_of, num_wanted)
    if num_drawn < num_wanted:
        raise SamplingError(f"best_of={num_drawn} is less than n={num_wanted}", place="best_of")
    if num_drawn > num_wanted and body.stream:
        raise SamplingError("the best of several cannot be streamed", place="best_of")
    logprobs = body.logprobs
    if num_drawn > num_wanted and logprobs is None:
        logprobs = 0  # to choose by
    return _checked(
        body,
        max_tokens=_or(body.max_tokens, DEFAULT_COMPLETION_TOKENS),
        n=num_drawn,
        logprobs=logprobs,
        prompt_logprobs=body.logprobs if body.echo else None,
    )


def _checked(body: GenerationBody, **own: Any) -> m.SamplingParams:
    params = m.SamplingParams(
        **own,
        min_tokens=_or(body.min_tokens, 0),
        temperature=_or(body.temperature, DEFAULT_TEMPERATURE),
        top_k=0 if body.top_k == -1 else _or(body.top_k, 0),  # -1: off, as others spell it
        top_p=_SMALLEST_TOP_P if body.top_p == 0 else _or(body.top_p, 1.0),
        min_p=_or(body.min_p, 0.0),
        typical_p=_or(body.typical_p, 1.0),
        repetition_penalty=_or(body.repetition_penalty, 1.0),
        frequency_penalty=_or(body.frequency_penalty, 0.0),
        presence_penalty=_or(body.presence_penalty, 0.0),
        logit_bias=_logit_bias(body.logit_bias),
        stop=_stops(body.stop),
        stop_token_ids=tuple(body.stop_token_ids or ()),
        include_stop=bool(body.include_stop_str_in_output),
        ignore_eos=bool(body.ignore_eos),
        seed=None if body.seed is None else body.seed & _SEED_BITS,  # OpenAI's may be negative
    )
    try:
        params.check()
    except SamplingError as error:
        raise in_terms_of_body(error, body) from None
    return params


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    if stop is None:
        return ()
    return (stop,) if isinstance(stop, str) else tuple(stop)


def _logit_bias(bias: dict[str, float] | None) -> dict[int, float]:
    result: dict[int, float] = {}
    for key, value in (bias or {}).items():
        try:
            result[int(key)] = value
        except ValueError:
            raise SamplingError(
                f"logit_bias names {key!r}, which is not a token id", place="logit_bias"
            ) from None
    return result
