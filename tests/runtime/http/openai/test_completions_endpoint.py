"""/v1/completions as the real `openai` package and plain HTTP see it, over scripted outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from scripted_client import Script, ScriptedClient
from stream_reading import events_of

from radixlm.errors import EngineDied, PromptError, SamplingError
from radixlm.runtime import messages as m

PATH = "/v1/completions"
Post = Callable[..., httpx2.Response]


def test_a_whole_answer_reads_as_openais_own(
    client: ScriptedClient, with_openai: Callable[..., Any]
) -> None:
    async def use(api: AsyncOpenAI) -> None:
        answer = await api.completions.create(model="m", prompt="Say")
        assert answer.object == "text_completion"
        (choice,) = answer.choices
        assert (choice.text, choice.finish_reason, choice.logprobs) == ("Hello", "stop", None)
        assert answer.usage is not None
        assert answer.usage.prompt_tokens_details is not None
        assert answer.usage.prompt_tokens_details.cached_tokens == 2

    with_openai(use)
    (asked,) = client.asked
    assert asked.segments == (m.Text("Say"),)
    assert (asked.sampling.max_tokens, asked.sampling.temperature) == (16, 1.0)


@pytest.mark.parametrize(
    ("prompt", "segments"),
    [
        ("ab", [m.Text("ab")]),
        (["ab", "c"], [m.Text("ab"), m.Text("c")]),
        ([1, 2], [m.Ids((1, 2))]),
        ([[1, 2], [3]], [m.Ids((1, 2)), m.Ids((3,))]),
        (["ab", [3]], [m.Text("ab"), m.Ids((3,))]),
    ],
)
def test_a_prompt_is_text_ids_or_a_list_of_them(
    client: ScriptedClient, post: Post, prompt: Any, segments: list[m.Segment]
) -> None:
    answer = post(PATH, prompt=prompt, n=2)
    assert [choice["index"] for choice in answer.json()["choices"]] == [*range(2 * len(segments))]
    assert [asked.segments[0] for asked in client.asked] == segments
    assert all(asked.sampling.n == 2 for asked in client.asked)


def test_choices_of_several_prompts_are_told_apart_by_their_index_in_a_stream(
    client: ScriptedClient, post: Post
) -> None:
    def answer(asked: m.Generate) -> Script:
        (segment,) = asked.segments
        assert isinstance(segment, m.Text)
        return Script(segment.text * 4)

    client.answer = answer
    options = {"include_usage": True}
    *chunks, usage, done = events_of(
        post(PATH, prompt=["a", "b"], n=2, stream=True, stream_options=options).text
    )
    assert done == "[DONE]"
    texts = dict.fromkeys(range(4), "")
    ends: list[int] = []
    for chunk in chunks:
        (choice,) = chunk["choices"]
        texts[choice["index"]] += choice["text"]
        if choice["finish_reason"] is not None:
            ends.append(choice["index"])
    assert texts == {0: "aaaa", 1: "aaaa", 2: "bbbb", 3: "bbbb"}
    assert sorted(ends) == [0, 1, 2, 3]
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens"] == 2


def test_logprobs_stand_in_the_legacy_shape_whole_and_streamed_alike(
    client: ScriptedClient, post: Post
) -> None:
    client.answer = lambda _: Script("aé.")
    whole = post(PATH, logprobs=1).json()["choices"][0]["logprobs"]
    assert whole["tokens"] == ["a", "bytes:\\xc3", "bytes:\\xa9", "."]
    assert whole["token_logprobs"] == [-0.5] * 4
    assert whole["text_offset"] == [0, 1, 1, 2]
    assert whole["top_logprobs"][0] == {"a": -0.5}
    joined: dict[str, list[Any]] = {name: [] for name in whole}
    for chunk in events_of(post(PATH, logprobs=1, stream=True).text)[:-1]:
        for name, values in (chunk["choices"][0]["logprobs"] or {}).items():
            joined[name] += values
    assert joined == whole


def test_echo_puts_the_prompt_before_the_text_in_both_modes(
    client: ScriptedClient, post: Post
) -> None:
    assert post(PATH, prompt="é: ", echo=True).json()["choices"][0]["text"] == "é: Hello"
    assert post(PATH, prompt=[65, 66], echo=True).json()["choices"][0]["text"] == "ABHello"
    chunks = events_of(post(PATH, prompt="é: ", echo=True, stream=True).text)[:-1]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "é: Hello"


def test_echo_with_logprobs_scores_the_prompt_too(client: ScriptedClient, post: Post) -> None:
    client.answer = lambda _: Script("", reason="length")
    answer = post(PATH, prompt="ab", echo=True, logprobs=0, max_tokens=0).json()
    logprobs = answer["choices"][0]["logprobs"]
    assert answer["choices"][0]["text"] == "ab"
    assert logprobs["tokens"] == ["a", "b"]
    assert logprobs["token_logprobs"] == [None, -0.5]
    assert logprobs["top_logprobs"] is None
    (asked,) = client.asked
    assert asked.segments == (m.Ids((97, 98)),)  # the ids that are told are the ids that are run
    assert asked.sampling.prompt_logprobs == 0


def test_the_best_of_several_is_the_likeliest_per_token(client: ScriptedClient, post: Post) -> None:
    outputs = iter(["bad", "good", "worse"])
    means = {"bad": -2.0, "good": -0.1, "worse": -3.0}
    client.answer = lambda _: Script(next(outputs))
    client.logprob_of = lambda text: means[text]
    answer = post(PATH, best_of=3).json()
    assert [choice["text"] for choice in answer["choices"]] == ["good"]
    assert answer["choices"][0]["logprobs"] is None
    assert answer["choices"][0]["index"] == 0
    assert answer["usage"]["completion_tokens"] == 15  # of all three


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, "a"]}, "prompt[1]"),
        ({"prompt": ["a", {}]}, "prompt[1]"),
        ({"prompt": ["a", [1.5]]}, "prompt[1][0]"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 1, "n": 2}, "best_of"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"best_of": 2000}, "best_of"),
        ({"echo": True, "logprobs": 1, "stream": True}, "echo"),
        ({"logprobs": -1}, "logprobs"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"prompt": ["a"] * 1000, "n": 1000}, "n"),
        ({"prompt": ["a"] * 1000, "best_of": 1000}, "best_of"),
        ({"prompt": ["a"] * 1025}, "prompt"),
        ({"guided_grammar": "x", "regex": "a"}, "guided_grammar"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field(
    client: ScriptedClient, post: Post, fields: dict[str, Any], param: str
) -> None:
    answer = post(PATH, **fields)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param
    assert client.asked == []


def test_if_one_prompt_fails_the_others_are_ended_and_the_error_is_the_answer(
    client: ScriptedClient, post: Post
) -> None:
    def answer(asked: m.Generate) -> Script:
        if asked.segments == (m.Text("bad"),):
            return Script(error=EngineDied("it died"))
        return Script(never_ends=True)

    client.answer = answer
    refused = post(PATH, prompt=["good", "bad"])
    assert refused.status_code == 503
    assert client.cancelled == [client.asked[0].request]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("prompt", "param"), [("bad", "prompt"), (["bad"], "prompt"), (["good", "bad"], "prompt[1]")]
)
def test_the_prompt_that_is_refused_is_named(
    client: ScriptedClient, post: Post, prompt: Any, param: str, stream: bool
) -> None:
    def answer(asked: m.Generate) -> Script:
        if asked.segments == (m.Text("bad"),):
            return Script(error=PromptError("it is empty"))
        return Script(never_ends=True, text="")

    client.answer = answer
    refused = post(PATH, prompt=prompt, stream=stream)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == param


def test_an_argument_that_the_engine_refuses_is_named_as_the_body_names_it(
    client: ScriptedClient, post: Post
) -> None:
    client.answer = lambda _: Script(error=SamplingError("n=3 is too many", place="n"))
    refused = post(PATH, best_of=3)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "best_of"
