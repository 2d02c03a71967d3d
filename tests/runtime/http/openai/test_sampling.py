"""Body to SamplingParams, field by field."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from radixlm.runtime import messages as m
from radixlm.runtime.http.openai.bodies import ChatBody, CompletionBody
from radixlm.runtime.http.openai.sampling import (
    chat_sampling,
    completion_sampling,
)

DEFAULTS = m.SamplingParams(temperature=1.0)


def chat(**fields: Any) -> m.SamplingParams:
    return chat_sampling(msgspec.convert(fields, ChatBody))


def text(**fields: Any) -> m.SamplingParams:
    return completion_sampling(msgspec.convert(fields, CompletionBody))


def test_an_empty_body_has_openais_defaults() -> None:
    assert chat() == DEFAULTS
    assert text() == msgspec.structs.replace(DEFAULTS, max_tokens=16)


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"max_tokens": 3}, "max_tokens", 3),
        ({"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens", 4),
        ({"n": 3}, "n", 3),
        ({"temperature": 0}, "temperature", 0.0),
        ({"top_p": 0.5}, "top_p", 0.5),
        ({"top_p": 0}, "top_p", 1e-9),
        ({"top_k": 5}, "top_k", 5),
        ({"top_k": -1}, "top_k", 0),
        ({"min_p": 0.1}, "min_p", 0.1),
        ({"typical_p": 0.9}, "typical_p", 0.9),
        ({"repetition_penalty": 1.1}, "repetition_penalty", 1.1),
        ({"frequency_penalty": -1}, "frequency_penalty", -1.0),
        ({"presence_penalty": 2}, "presence_penalty", 2.0),
        ({"logit_bias": {"5": -100}}, "logit_bias", {5: -100.0}),
        ({"stop": "x"}, "stop", ("x",)),
        ({"stop": ["x", "y"]}, "stop", ("x", "y")),
        ({"stop": []}, "stop", ()),
        ({"stop_token_ids": [2]}, "stop_token_ids", (2,)),
        ({"include_stop_str_in_output": True}, "include_stop", True),
        ({"ignore_eos": True}, "ignore_eos", True),
        ({"min_tokens": 2}, "min_tokens", 2),
        ({"seed": 5}, "seed", 5),
        ({"seed": -1}, "seed", 2**63 - 1),
        ({"logprobs": True}, "logprobs", 0),
        ({"logprobs": True, "top_logprobs": 4}, "logprobs", 4),
        ({"logprobs": False}, "logprobs", None),
    ],
)
def test_each_field_of_a_chat_arrives(fields: dict[str, Any], name: str, value: Any) -> None:
    params = chat(**fields)
    assert getattr(params, name) == value
    same = msgspec.structs.replace(params, **{name: getattr(DEFAULTS, name)})
    assert same == DEFAULTS  # and nothing else changes


def test_the_best_of_several_needs_their_log_probabilities() -> None:
    assert text(best_of=4, n=2).n == 4
    assert text(best_of=4, n=2).logprobs == 0
    assert text(best_of=2, n=2).logprobs is None


def test_echo_with_logprobs_asks_for_the_prompts() -> None:
    assert text(echo=True, logprobs=2).prompt_logprobs == 2
    assert text(echo=True).prompt_logprobs is None
    assert text(logprobs=2).prompt_logprobs is None
