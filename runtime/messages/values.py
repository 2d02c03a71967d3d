"""Values that several messages share: errors as data, sampling arguments, hints, usage, log-probabilities.

Owns their meaning and range checks. Knows nothing of who sends them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ...errors import RadixError, SamplingError, by_name


class WireError(msgspec.Struct, frozen=True):
    """An error as data: `name` is a class of `errors.py`."""

    name: str
    message: str
    place: str = ""
    hint: str = ""

    @staticmethod
    def of(error: RadixError) -> WireError:
        """The wire form of `error`."""
        return WireError(type(error).__name__, error.message, error.place, error.hint)

    def to_exception(self) -> RadixError:
        """The exception to raise at the receiving side."""
        return by_name(self.name)(self.message, place=self.place, hint=self.hint)


MAX_STOPS = 64
MAX_STOP_CHARACTERS = 16384
MAX_STOP_TOKEN_IDS = 1024


class SamplingParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """How tokens are chosen. `check()` names the first value out of range."""

    max_tokens: int | None = None  # None: to the end of the context
    min_tokens: int = 0  # EOS and stop token ids are masked before
    n: int = 1  # samples over one shared prompt
    temperature: float = 0.0  # 0: greedy
    top_k: int = 0  # 0: off
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0  # over prompt and output tokens
    frequency_penalty: float = 0.0  # over output tokens
    presence_penalty: float = 0.0  # over output tokens
    logit_bias: dict[int, float] = msgspec.field(default_factory=dict[int, float])
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop: bool = False  # keep the stop string in the text
    ignore_eos: bool = False
    seed: int | None = None  # None: the engine draws one; the result says which
    logprobs: int | None = None  # of output tokens: k >= 0 top alternatives beside the chosen one
    prompt_logprobs: int | None = None  # the same for prompt tokens
    prompt_logprobs_start: int = (
        0  # first prompt position whose logprob is asked; earlier ones may come from the cache
    )
    jump_forward: bool = True  # append forced bytes without sampling

    def check(self) -> None:
        """Raise SamplingError naming the first argument that is out of range (NaN included)."""
        for name, low, high in _RANGES:
            value = getattr(self, name)
            kind = int if isinstance(low, int) else (int, float)
            if value is None and name in _OPTIONAL:
                continue
            if not isinstance(value, kind) or isinstance(value, bool):
                wanted = "an integer" if kind is int else "a number"
                raise SamplingError(f"{name}={value!r} is not {wanted}", place=name)
            if not (low <= value <= high):
                raise SamplingError(f"{name}={value!r} is not within {low} .. {high}", place=name)
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise SamplingError(
                f"min_tokens={self.min_tokens} exceeds max_tokens={self.max_tokens}",
                place="min_tokens",
            )
        stop: Any = self.stop  # as callers really pass it
        if isinstance(stop, str) or not all(isinstance(text, str) for text in stop):
            raise SamplingError(f"stop={self.stop!r} is not a tuple of strings", place="stop")
        if not all(self.stop):
            raise SamplingError("a stop string is empty", place="stop")
        if len(self.stop) > MAX_STOPS or sum(map(len, self.stop)) > MAX_STOP_CHARACTERS:
            raise SamplingError(
                f"{len(self.stop)} stop strings of {sum(map(len, self.stop))} characters; at most {MAX_STOPS} of"
                f" {MAX_STOP_CHARACTERS} together are taken, since each is looked for at every token",
                place="stop",
            )
        if len(self.stop_token_ids) > MAX_STOP_TOKEN_IDS:
            raise SamplingError(
                f"{len(self.stop_token_ids)} stop token ids, at most {MAX_STOP_TOKEN_IDS} are taken",
                place="stop_token_ids",
            )
        for token_id, bias in self.logit_bias.items():
            if token_id < 0 or not (-1000.0 <= bias <= 1000.0):
                raise SamplingError(
                    f"logit_bias[{token_id}]={bias!r} is not within -1000 .. 1000",
                    place="logit_bias",
                )


_RANGES: tuple[tuple[str, float, float], ...] = (
    ("max_tokens", 0, 2**31 - 1),
    ("min_tokens", 0, 2**31 - 1),
    ("n", 1, 1024),
    ("temperature", 0.0, 100.0),
    ("top_k", 0, 2**31 - 1),
    ("top_p", 1e-9, 1.0),
    ("min_p", 0.0, 1.0),
    ("typical_p", 1e-9, 1.0),
    ("repetition_penalty", 1e-3, 100.0),
    ("frequency_penalty", -100.0, 100.0),
    ("presence_penalty", -100.0, 100.0),
    ("seed", 0, 2**63 - 1),
    ("logprobs", 0, 100),
    ("prompt_logprobs", 0, 100),
    ("prompt_logprobs_start", 0, 2**31 - 1),
)


_OPTIONAL = frozenset({"max_tokens", "seed", "logprobs", "prompt_logprobs"})


class Hints(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the program knows of the future; never changes a result."""

    num_forks: int = (
        0  # branches that will continue from here: its pages are evicted last, until they came
    )
    last_use: bool = False  # nothing will continue from here: the output's pages are evicted first
    priority: int = 0  # larger runs earlier among equals


class Usage(msgspec.Struct, frozen=True):
    """Token counts of one request. Forced tokens are part of completion_tokens."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    forced_tokens: int = 0

    @property
    def steps(self) -> int:
        """Steps of the model that wrote a token: one for each token that was not forced."""
        return self.completion_tokens - self.forced_tokens


def sum_usage(usages: Iterable[Usage]) -> Usage:
    """Counts added up."""
    prompt = cached = completion = forced = 0
    for usage in usages:
        prompt += usage.prompt_tokens
        cached += usage.cached_tokens
        completion += usage.completion_tokens
        forced += usage.forced_tokens
    return Usage(prompt, cached, completion, forced)


class TokenLogprob(msgspec.Struct, frozen=True):
    """The model's own log-probability (before mask, penalties, temperature) of one token, with the best alternatives."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()  # (token_id, logprob), best first
