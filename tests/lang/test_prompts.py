"""What is one prompt, what is several, and what is none: refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

from radixlm.errors import PromptError
from radixlm.lang.prompts import chat_segments, prompt_segments, single_segment
from radixlm.runtime.messages import Chat, Ids, Text

ASKED = {"role": "user", "content": "hi"}


def test_a_text_or_token_ids_are_one_prompt_and_a_list_of_them_several() -> None:
    assert prompt_segments("hi") == ([Text("hi")], False)
    assert prompt_segments([1, 2]) == ([Ids((1, 2))], False)
    assert prompt_segments(["hi", (1, 2)]) == ([Text("hi"), Ids((1, 2))], True)
    assert prompt_segments([]) == ([], True)


def test_messages_are_one_conversation_and_a_list_of_lists_several() -> None:
    assert chat_segments([ASKED]) == ([Chat((ASKED,))], False)
    assert chat_segments([[ASKED], [ASKED, ASKED]])[1]
    assert isinstance(single_segment([ASKED]), Chat)


@pytest.mark.parametrize(
    ("prompt", "place"),
    [(5, "prompt"), (None, "prompt"), (b"abc", "prompt"), ({"a": 1}, "prompt"),
     ([None], "prompt[0]"), (["a", b"b"], "prompt[1]"), ([True], "prompt[0]"), ("\ud800", "prompt")],
)  # fmt: skip
def test_what_is_no_prompt_is_refused_with_its_place(prompt: Any, place: str) -> None:
    with pytest.raises(PromptError) as caught:
        prompt_segments(prompt)
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("messages", "place"),
    [(5, "messages"), (None, "messages"), ("hi", "messages"), (ASKED, "messages"), (["hi"], "messages[0]"),
     ([[ASKED], 5], "messages[1]"), ([ASKED, {"content": "hi"}], "messages[1]")],
)  # fmt: skip
def test_what_is_no_conversation_is_refused_with_its_place(messages: Any, place: str) -> None:
    with pytest.raises(PromptError) as caught:
        chat_segments(messages)
    assert caught.value.place == place
