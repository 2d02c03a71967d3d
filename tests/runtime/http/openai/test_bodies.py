"""Every field that OpenAI's own types know is either honoured or refused by name, and none slips by as unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from openai.types import completion_create_params
from openai.types.chat import completion_create_params as chat_params

from radixlm.runtime.http.openai.bodies import ChatBody, CompletionBody

Post = Callable[..., httpx2.Response]

CHAT_FIELDS = set(chat_params.CompletionCreateParamsStreaming.__annotations__) | set(
    chat_params.CompletionCreateParamsNonStreaming.__annotations__
)
TEXT_FIELDS = set(completion_create_params.CompletionCreateParamsStreaming.__annotations__) | set(
    completion_create_params.CompletionCreateParamsNonStreaming.__annotations__
)

TOOL: Any = {"type": "function", "function": {"name": "f"}}
# field -> a value as a caller sends it, and what becomes of it
CHAT: dict[str, tuple[Any, str]] = {
    "audio": ({"format": "wav", "voice": "alloy"}, "refused"),
    "frequency_penalty": (0.5, "honoured"),
    "function_call": ({"name": "f"}, "refused"),
    "functions": ([{"name": "f"}], "refused"),
    "logit_bias": ({"5": -100}, "honoured"),
    "logprobs": (True, "honoured"),
    "max_completion_tokens": (5, "honoured"),
    "max_tokens": (5, "honoured"),
    "messages": ([{"role": "user", "content": "Hi"}], "honoured"),
    "metadata": ({"a": "b"}, "no promise"),
    "modalities": (["text"], "honoured"),
    "model": ("m", "honoured"),
    "moderation": ({"model": "x"}, "refused"),
    "n": (2, "honoured"),
    "parallel_tool_calls": (False, "honoured"),
    "prediction": ({"type": "content", "content": "abc"}, "no promise"),
    "presence_penalty": (0.5, "honoured"),
    "prompt_cache_key": ("k", "no promise"),
    "prompt_cache_options": ({"mode": "implicit"}, "no promise"),
    "prompt_cache_retention": ("24h", "no promise"),
    "reasoning_effort": ("high", "reported"),
    "response_format": ({"type": "json_object"}, "honoured"),
    "safety_identifier": ("u", "no promise"),
    "seed": (-3, "honoured"),
    "service_tier": ("flex", "reported"),
    "stop": (["a", "b"], "honoured"),
    "store": (True, "refused"),
    "stream": (True, "honoured"),
    "stream_options": ({"include_usage": True, "include_obfuscation": False}, "honoured"),
    "temperature": (0, "honoured"),
    "tool_choice": ("auto", "honoured"),
    "tools": ([TOOL], "honoured"),
    "top_logprobs": (5, "honoured"),
    "top_p": (0, "honoured"),
    "user": ("u", "no promise"),
    "verbosity": ("low", "reported"),
    "web_search_options": ({}, "refused"),
}
TEXT: dict[str, tuple[Any, str]] = {
    "best_of": (2, "honoured"),
    "echo": (True, "honoured"),
    "frequency_penalty": (0.5, "honoured"),
    "logit_bias": ({"5": -100}, "honoured"),
    "logprobs": (5, "honoured"),
    "max_tokens": (5, "honoured"),
    "model": ("m", "honoured"),
    "n": (2, "honoured"),
    "presence_penalty": (0.5, "honoured"),
    "prompt": ("Hi", "honoured"),
    "seed": (1, "honoured"),
    "stop": ("a", "honoured"),
    "stream": (True, "honoured"),
    "stream_options": ({"include_usage": True}, "honoured"),
    "suffix": ("x", "refused"),
    "temperature": (0.0, "honoured"),
    "top_p": (0.5, "honoured"),
    "user": ("u", "no promise"),
}


def test_the_tables_below_name_every_field_of_openais_types() -> None:
    assert set(CHAT) == CHAT_FIELDS <= set(ChatBody.__struct_fields__)
    assert set(TEXT) == TEXT_FIELDS <= set(CompletionBody.__struct_fields__)


@pytest.mark.parametrize("field", sorted(CHAT))
def test_a_chat_field_is_honoured_refused_or_reported(field: str, post: Post) -> None:
    value, expected = CHAT[field]
    with_it = {"logprobs": True} if field == "top_logprobs" else {}
    check(post(**{**with_it, field: value}), field, expected)


@pytest.mark.parametrize("field", sorted(TEXT))
def test_a_text_field_is_honoured_refused_or_reported(field: str, post: Post) -> None:
    value, expected = TEXT[field]
    check(post("/v1/completions", **{field: value}), field, expected)


def check(answer: httpx2.Response, field: str, expected: str) -> None:
    if expected == "refused":
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == field
        return
    assert answer.status_code == 200, answer.text
    ignored = answer.headers.get("x-radixlm-ignored-fields", "")
    assert ignored == (field if expected == "reported" else "")
