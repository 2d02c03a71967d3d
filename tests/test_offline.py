"""The offline API over the real processes and a toy model: prompts of every kind, lists, errors in place, bars, values, interruptions."""

from __future__ import annotations

import asyncio
import io
import json
import threading
import time
from collections.abc import Iterator

import pytest
from process_checks import wait_until
from rich.console import Console
from toy_processes import toy_command

from radixlm import offline
from radixlm.errors import (
    Aborted,
    ConfigError,
    OutputError,
    ProgramError,
    PromptError,
    SamplingError,
    TimedOut,
)
from radixlm.lang.backend import Backend
from radixlm.runtime import messages as m
from radixlm.runtime.completions import Completion
from radixlm.runtime.launch import Runtime
from radixlm.runtime.progress import ItemProgress, TransferProgress


@pytest.fixture(scope="module")
def engine() -> Iterator[offline.Engine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offline, "resolve_model", lambda name, cache_dir: None)
        patch.setattr(offline, "Runtime", lambda config: Runtime(config, toy_command))
        engine = offline.Engine(model="toy-slow", threads=1)
    with engine:
        yield engine


def test_a_prompt_is_a_text_or_token_ids_and_a_list_is_a_list(engine: offline.Engine) -> None:
    by_text = engine.generate("say it", max_tokens=3)
    by_ids = engine.generate(engine.tokenize("say it"), max_tokens=3)
    assert isinstance(by_text, Completion)
    assert by_text.token_ids == by_ids.token_ids
    both = engine.generate(["say it", list(engine.tokenize("say it"))], max_tokens=3)
    assert [result.token_ids for result in both] == [by_text.token_ids] * 2
    assert engine.generate([], max_tokens=3) == []
    assert (by_text.value, by_text.finish_reason) == (by_text.text, "length")
    assert by_text.usage.completion_tokens == 3


@pytest.mark.parametrize(
    ("prompt", "place"),
    [
        ([{"role": "user"}], "prompt[0]"),
        (["x", 5.5], "prompt[1]"),
        ([None], "prompt[0]"),
        ([True], "prompt[0]"),
    ],
)
def test_what_is_no_prompt_is_named(engine: offline.Engine, prompt: list, place: str) -> None:
    with pytest.raises(PromptError) as caught:
        engine.generate(prompt, max_tokens=3)
    assert caught.value.place == place


def test_results_of_a_list_are_in_order_and_errors_are_raised_or_in_place(
    engine: offline.Engine,
) -> None:
    prompts = [f"item {number}" for number in range(12)]
    alone = [engine.generate(prompt, max_tokens=2).text for prompt in prompts]
    assert [result.text for result in engine.generate(prompts, max_tokens=2)] == alone
    prompts[5] = ""
    with pytest.raises(PromptError, match="empty"):
        engine.generate(prompts, max_tokens=2)
    results = engine.generate(prompts, max_tokens=2, return_exceptions=True)
    assert isinstance(results.pop(5), PromptError)
    assert [result.text for result in results] == alone[:5] + alone[6:]


def test_wrong_arguments_are_refused_before_anything_is_sent(engine: offline.Engine) -> None:
    with pytest.raises(SamplingError, match="Did you mean temperature"):
        engine.generate("x", temprature=1.0)  # type: ignore[call-arg]
    with pytest.raises(ProgramError, match="regex and choices"):
        engine.generate("x", regex="a", choices=["b"])
    with pytest.raises(ProgramError, match="not a list of texts"):
        engine.generate("x", choices="abc")
    with pytest.raises(ProgramError, match="JSON"):
        engine.generate("x", json_schema={"enum": {1, 2}})
    with pytest.raises(PromptError, match=r"messages\[0\]"):
        engine.chat([[{"content": "no role"}]])
    with pytest.raises(PromptError, match="one prompt"):
        engine.stream(["a", "b"])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="Did you mean 'threads'"):
        offline.Engine(thread=2)


def test_values_have_the_type_that_was_asked_for(engine: offline.Engine) -> None:
    assert engine.generate("pick", choices=["abc", "xyz"]).value in {"abc", "xyz"}
    assert engine.generate("x", regex="[ab]{3}").value.strip("ab") == ""
    assert set(engine.generate("x", schema={"enum": [{"a": 1}]}).value) == {"a"}
    assert engine.generate("x", json_schema=json.dumps({"const": [1, 2]})).value == [1, 2]
    cut = engine.generate("x", regex="[ab]{30}", max_tokens=2)
    assert cut.finish_reason == "length"
    with pytest.raises(OutputError, match="cut"):
        _ = cut.value


def test_chat_takes_one_conversation_or_a_list_of_them(engine: offline.Engine) -> None:
    hello = [{"role": "user", "content": "hi"}]
    one = engine.chat(hello, max_tokens=3)
    assert [result.text for result in engine.chat([hello, hello], max_tokens=3)] == [one.text] * 2
    assert engine.stream(hello, max_tokens=3).result(60).text == one.text


def test_a_history_sent_back_hits_to_the_token(engine: offline.Engine) -> None:
    first = engine.generate("tell the ban", max_tokens=20, temperature=1.0, seed=4)
    later = engine.generate("tell the ban" + first.text + " and on", max_tokens=2)
    assert later.usage.cached_tokens >= first.usage.prompt_tokens + len(first.token_ids) - 1


def test_n_samples_stand_in_outputs(engine: offline.Engine) -> None:
    result = engine.generate("go", n=3, temperature=1.0, seed=5, max_tokens=6, logprobs=1)
    assert len(result.outputs) == 3
    assert result.outputs[0].text == result.text
    assert result.seed == 5
    assert result.logprobs is not None
    assert len(result.logprobs) == 6
    assert "finish_reason" in repr(result)


def test_time_that_is_over_and_an_abort_end_what_runs(engine: offline.Engine) -> None:
    with pytest.raises(TimedOut, match=r"within 0\.3 s"):
        engine.generate(["a", "b"], max_tokens=3000, timeout_s=0.3)
    errors: list[BaseException] = []

    def long() -> None:
        try:
            engine.generate("long", max_tokens=3000)
        except Aborted as error:
            errors.append(error)

    thread = threading.Thread(target=long)
    thread.start()
    wait_until(lambda: engine.stats()["running"] == 1, what="the running request")
    engine.abort()
    thread.join(30)
    assert len(errors) == 1
    wait_until(lambda: engine.stats()["running"] == 0, what="an idle engine")
    engine.flush()
    assert engine.stats()["text_memory_entries"] == 0


def test_a_stream_can_be_left_and_its_request_ends(engine: offline.Engine) -> None:
    with engine.stream("go", max_tokens=3000) as stream:
        next(stream)
    assert all(isinstance(piece, str) for piece in stream)  # what had come; then it ends
    wait_until(lambda: engine.stats()["running"] == 0, what="an idle engine")


def test_the_engine_is_a_backend_of_the_language(engine: offline.Engine) -> None:
    backend = engine.backend
    assert isinstance(backend, Backend)
    assert backend.facts.vocab_size == engine.facts.vocab_size
    assert backend.new_id("x") != backend.new_id("x")
    backend.send(m.OpenBranch("b"))
    backend.send(m.Append("b", (m.Text("one "),)))
    scored = backend.score(m.Score("s", "b", (" YES", " NO"))).result(60)
    assert len(scored.logprobs) == 2
    assert all(value <= 0 for row in scored.logprobs for value in row)
    assert (
        backend.generate(m.Generate("g", "b", sampling=m.SamplingParams(max_tokens=2)))
        .result(60)
        .outputs
    )


def test_bars_show_counts_rates_and_bytes() -> None:
    text = io.StringIO()
    with ItemProgress(2, Console(file=text, force_terminal=True, width=120)) as bar:
        bar.advance(10, 5, 20)
        time.sleep(0.15)
        bar.advance(10, 5, 20)
    assert "2/2" in text.getvalue()
    assert "50 % of prompts cached" in text.getvalue()
    with TransferProgress(Console(file=text, force_terminal=True, width=120)) as transfer:
        transfer.report("download", 10, 0)
        transfer.report("download", 1000, 1000)
    assert "download" in text.getvalue()


@pytest.mark.parametrize(
    ("options", "error", "place"),
    [
        ({"prompt": ["x", "a\ud800"]}, PromptError, "prompt[1]"),
        ({"prompt": "\ud800"}, PromptError, "prompt"),
        ({"prompt": "x", "choices": ["a", "\ud800"]}, PromptError, "choices[1]"),
        ({"prompt": "x", "choices": ["a", 1]}, ProgramError, "choices[1]"),
        ({"prompt": "x", "regex": 7}, ProgramError, "regex"),
    ],
)
def test_texts_that_are_none_are_named(
    engine: offline.Engine, options: dict, error: type[Exception], place: str
) -> None:
    with pytest.raises(error) as caught:
        engine.generate(**options)
    assert caught.value.place == place  # type: ignore[attr-defined]
    with pytest.raises(PromptError, match="character 0"):
        engine.chat([{"role": "user", "content": "\ud800"}])


# ------------------------------------------------------------------------------------------ asyncio


def test_awaited_answers_are_those_of_the_plain_calls(engine: offline.Engine) -> None:
    hello = [{"role": "user", "content": "hi"}]

    async def ask() -> tuple[Completion, list[Completion], Completion]:
        one, many, chat = await asyncio.gather(
            engine.agenerate("say it", max_tokens=3),
            engine.agenerate(["say it", "say that"], max_tokens=3),
            engine.achat(hello, max_tokens=3),
        )
        return one, many, chat

    one, many, chat = asyncio.run(ask())
    assert one.text == many[0].text == engine.generate("say it", max_tokens=3).text
    assert len(many) == 2
    assert chat.text == engine.chat(hello, max_tokens=3).text


def test_awaited_errors_are_raised_or_in_place(engine: offline.Engine) -> None:
    with pytest.raises(PromptError, match="empty"):
        asyncio.run(engine.agenerate(["a", ""], max_tokens=2))
    prompts = ["a", ""]
    results = asyncio.run(engine.agenerate(prompts, max_tokens=2, return_exceptions=True))
    assert [type(result) for result in results] == [Completion, PromptError]


def test_time_that_is_over_and_a_cancelled_task_abort_what_runs(engine: offline.Engine) -> None:
    async def leave_early() -> None:
        with pytest.raises(TimedOut, match=r"within 0\.3 s"):
            await engine.agenerate(["a", "b"], max_tokens=3000, timeout_s=0.3)
        task = asyncio.create_task(engine.agenerate("long", max_tokens=3000))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave_early())
    wait_until(lambda: engine.stats()["running"] == 0, what="an idle engine")


def test_an_awaited_stream_gives_the_whole_text_and_can_be_left(engine: offline.Engine) -> None:
    async def read() -> str:
        stream = engine.astream("go on", max_tokens=12)
        pieces = [piece async for piece in stream]
        assert [piece async for piece in stream] == []  # over is over
        assert "".join(pieces) == (await stream.result()).text
        async with engine.astream("go on", max_tokens=3000) as left:
            return await anext(left)

    assert asyncio.run(read())
    wait_until(lambda: engine.stats()["running"] == 0, what="an idle engine")


def test_an_awaited_stream_raises_what_ended_it(engine: offline.Engine) -> None:
    async def read() -> None:
        async for _ in engine.astream("", max_tokens=2):
            pass

    with pytest.raises(PromptError, match="empty"):
        asyncio.run(read())


@pytest.mark.parametrize(
    ("name", "near"), [("schem", "schema"), ("max_token", "max_tokens"), ("namespac", "namespace"), ("timeout", "timeout_s")]
)  # fmt: skip
def test_a_misspelt_option_is_refused_with_the_nearest_one(
    engine: offline.Engine, name: str, near: str
) -> None:
    with pytest.raises(SamplingError, match=f"Did you mean {near}"):
        engine.generate("x", **{name: 1})  # type: ignore[arg-type]
    with pytest.raises(SamplingError, match="The options are"):
        engine.stream("x", qqq=1)  # type: ignore[call-arg]
