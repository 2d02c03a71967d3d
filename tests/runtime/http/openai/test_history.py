"""Messages as clients send them back."""

from __future__ import annotations

import pytest

from radixlm.errors import PromptError
from radixlm.runtime.http.openai.history import conversation

USER = {"role": "user", "content": "Hi"}


def test_an_answer_sent_back_as_it_was_given_loses_its_nulls() -> None:
    answer = {"role": "assistant", "content": "Yo", "refusal": None, "audio": None, "tool_calls": None,
              "function_call": None}  # fmt: skip
    assert conversation([USER, answer]) == (USER, {"role": "assistant", "content": "Yo"})


def test_deprecated_function_calls_become_tool_calls() -> None:
    call = {"name": "f", "arguments": "{}"}
    messages = conversation(
        [
            USER,
            {"role": "assistant", "content": None, "function_call": call},
            {"role": "function", "name": "f", "content": "3"},
        ]
    )
    assert messages[1] == {
        "role": "assistant",
        "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
    }
    assert messages[2] == {"role": "tool", "name": "f", "content": "3"}


def test_a_refusal_counts_as_text() -> None:
    parts = [{"type": "refusal", "refusal": "No."}, {"type": "text", "text": "!"}]
    (first, second) = conversation(
        [{"role": "assistant", "content": parts}, {"role": "assistant", "refusal": "No."}]
    )
    assert first["content"] == [{"type": "text", "text": "No."}, {"type": "text", "text": "!"}]
    assert second == {"role": "assistant", "content": "No."}


@pytest.mark.parametrize("messages", [None, []])
def test_a_chat_without_messages_is_refused(messages: list[dict[str, object]] | None) -> None:
    with pytest.raises(PromptError) as caught:
        conversation(messages)
    assert caught.value.place == "messages"


def test_audio_of_an_earlier_answer_is_refused_with_its_place() -> None:
    with pytest.raises(PromptError) as caught:
        conversation([USER, {"role": "assistant", "audio": {"id": "x"}}])
    assert caught.value.place == "messages[1].audio"
