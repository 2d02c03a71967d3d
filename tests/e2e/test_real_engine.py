"""The whole system on the real model, through all processes: answers, values, history, bad requests, deaths. Every wait is bounded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import pytest
from process_checks import descendants, has_mapped, is_running, wait_until
from pydantic import BaseModel, Field

import radixlm
from radixlm.errors import (
    EngineDied,
    GrammarError,
    OutputError,
    ProgramError,
    PromptError,
    SamplingError,
    TimedOut,
)
from radixlm.runtime.native_runner import can_serve

pytestmark = [
    pytest.mark.model,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("smollm2_files"),
]

PROMPT = "The capital of France is"
WAIT_S = 120.0


class City(BaseModel):
    name: str = Field(max_length=12)
    is_capital: bool


@pytest.fixture(scope="module")
def engine(smollm2_files: object) -> Iterator[radixlm.Engine]:
    with radixlm.Engine(model="smollm2-135m", threads=1, kv_bytes=256 << 20) as engine:
        yield engine


def compile_worker(engine: radixlm.Engine) -> int:
    """Its pid; it starts a moment after the engine is ready."""
    gateway = engine.pids()["gateway"]
    wait_until(lambda: bool(descendants(gateway)), 10.0, "the compile worker")
    (worker,) = descendants(gateway)
    return worker


def wait_idle(engine: radixlm.Engine) -> dict[str, float]:
    """The counters once nothing runs."""
    wait_until(
        lambda: engine.stats()["running"] == 0 == engine.stats()["gateway_requests"],
        WAIT_S,
        "an idle engine",
    )
    return engine.stats()


def test_a_prompt_is_continued_and_hits_the_cache_the_second_time(engine: radixlm.Engine) -> None:
    first = engine.generate(PROMPT, max_tokens=4)
    assert first.text.startswith(" Paris")
    assert first.finish_reason == "length"
    assert len(first.token_ids) == first.usage.completion_tokens == 4
    again = engine.generate(PROMPT, max_tokens=4)
    assert again.token_ids == first.token_ids
    assert again.usage.cached_tokens == again.usage.prompt_tokens - 1
    assert engine.tokenize(PROMPT) == engine.tokenize(PROMPT)
    by_ids = engine.generate(list(engine.tokenize(PROMPT)), max_tokens=4)
    assert by_ids.token_ids == first.token_ids


def test_a_list_comes_back_in_order_and_one_error_is_raised_after_all_ran_or_returned_in_place(
    engine: radixlm.Engine,
) -> None:
    prompts = ["One, two,", PROMPT, "x" * 400_000]
    with pytest.raises(PromptError):
        engine.generate(prompts, max_tokens=2)
    results = engine.generate(prompts, max_tokens=2, return_exceptions=True)
    assert isinstance(results[2], PromptError)
    assert results[1].text.startswith(" Paris")
    assert engine.generate([], max_tokens=2) == []


def test_a_history_sent_back_as_text_hits_to_the_token(engine: radixlm.Engine) -> None:
    first = engine.generate("Once upon a time", max_tokens=6, temperature=1.5, seed=11)
    num_known = first.usage.prompt_tokens + first.usage.completion_tokens
    later = engine.generate("Once upon a time" + first.text + " And then", max_tokens=2)
    assert later.usage.cached_tokens >= num_known - 1


def test_a_chat_history_hits_to_the_token(engine: radixlm.Engine) -> None:
    history = [{"role": "user", "content": "Say hello."}]
    first = engine.chat(history, max_tokens=6, temperature=1.5, seed=3)
    history += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "Again."}]
    later = engine.chat(history, max_tokens=2)
    assert later.usage.cached_tokens >= first.usage.prompt_tokens + len(first.token_ids) - 1


def test_special_token_text_in_a_message_stays_text(engine: radixlm.Engine) -> None:
    plain = engine.chat([{"role": "user", "content": "<|im_end|>"}], max_tokens=1)
    special_ids = {engine.facts.eos_token_ids[0]}
    assert plain.usage.prompt_tokens > 8
    assert not special_ids & set(engine.tokenize("<|im_end|>"))


def test_values_are_parsed_and_typed(engine: radixlm.Engine) -> None:
    city = engine.chat([{"role": "user", "content": "Name a city."}], schema=City, max_tokens=40)
    assert isinstance(city.value, City)
    assert city.usage.forced_tokens > 0
    assert isinstance(
        engine.generate(
            "n: ", json_schema={"type": "integer", "minimum": 1, "maximum": 9}, max_tokens=4
        ).value,
        int,
    )
    assert engine.generate("Is water wet?", choices=[" yes", " no"]).value in (" yes", " no")
    assert re.fullmatch(r"\d{2}:\d{2}", engine.generate("It is ", regex=r"\d{2}:\d{2}").value)
    cut = engine.generate("x", regex="a{50}", max_tokens=2)
    assert cut.finish_reason == "length"
    with pytest.raises(OutputError, match="cut"):
        _ = cut.value


def test_a_stream_gives_the_text_in_pieces_and_can_be_left(engine: radixlm.Engine) -> None:
    with engine.stream(PROMPT, max_tokens=5) as stream:
        pieces = list(stream)
    assert "".join(pieces) == stream.result(1).text
    assert len(pieces) > 1
    with engine.stream(PROMPT, max_tokens=2000, ignore_eos=True) as stream:
        next(stream)
    wait_idle(engine)


def test_n_samples_share_the_prompt_and_repeat_with_the_seed(engine: radixlm.Engine) -> None:
    first = engine.generate("Once", n=3, temperature=1.0, seed=7, max_tokens=4)
    again = engine.generate("Once", n=3, temperature=1.0, seed=7, max_tokens=4)
    texts = [sample.text for sample in first.outputs]
    assert texts == [sample.text for sample in again.outputs]
    assert len(set(texts)) > 1
    assert first.seed == 7


def test_wrong_requests_are_answered_and_the_engine_goes_on(engine: radixlm.Engine) -> None:
    with pytest.raises(GrammarError, match="foo") as schema_error:
        engine.generate("x", json_schema={"type": "object", "properties": {"a": {"type": "foo"}}})
    assert "/properties/a" in schema_error.value.place
    with pytest.raises(GrammarError):
        engine.generate("x", regex="(")
    with pytest.raises(GrammarError):
        engine.generate("x", json_schema="not json")
    with pytest.raises(SamplingError, match="top_p"):
        engine.generate("x", top_p=3.0)
    with pytest.raises(SamplingError, match="temperature"):
        engine.generate("x", temprature=1.0)  # type: ignore[call-arg]
    with pytest.raises(ProgramError, match="one constraint"):
        engine.generate("x", regex="a", choices=["b"])
    with pytest.raises(PromptError, match="empty"):
        engine.generate("")
    assert engine.generate(PROMPT, max_tokens=1).text == " Paris"


def test_a_prompt_of_thirty_thousand_tokens_gets_its_answer(engine: radixlm.Engine) -> None:
    with pytest.raises(PromptError, match=r"more than \d+ tokens.*8192"):
        engine.generate("word " * 30_000, max_tokens=3)
    with pytest.raises(PromptError, match="characters"):
        engine.generate("word " * 2_000_000, max_tokens=3)
    assert engine.generate(PROMPT, max_tokens=1).text == " Paris"


def test_a_call_whose_time_is_over_frees_what_it_started(engine: radixlm.Engine) -> None:
    with pytest.raises(TimedOut):
        engine.generate([PROMPT, "Once"], max_tokens=4000, ignore_eos=True, timeout_s=1.0)
    assert wait_idle(engine)["locked_pages"] == 0


def test_pages_return_to_the_tree_and_a_flush_empties_it(engine: radixlm.Engine) -> None:
    counters = wait_idle(engine)
    assert counters["free_pages"] + counters["evictable_pages"] == counters["pages"]
    engine.flush()
    assert engine.stats()["free_pages"] == counters["pages"]


def test_no_process_loads_torch_where_the_native_kernels_serve(engine: radixlm.Engine) -> None:
    pids = engine.pids()
    worker = compile_worker(engine)
    assert has_mapped(pids["engine"], "torch") != can_serve("float32", "auto")
    assert not has_mapped(pids["gateway"], "torch")
    assert not has_mapped(worker, "torch")
    assert not has_mapped(os.getpid(), "libtorch") or "torch" in sys.modules


def test_a_killed_engine_in_mid_stream_is_an_error_and_the_next_request_works(
    engine: radixlm.Engine,
) -> None:
    stream = engine.stream("Once upon a time", max_tokens=2000, ignore_eos=True)
    next(stream)
    os.kill(engine.pids()["engine"], signal.SIGKILL)
    with pytest.raises(EngineDied, match="ended while the request was pending"):
        for _ in stream:
            pass
    assert engine.generate(PROMPT, max_tokens=1).text == " Paris"
    assert engine.facts.engine_epoch >= 1


SCRIPT = """
    import sys, radixlm
    engine = radixlm.Engine(threads=1, kv_bytes=64 << 20)
    stream = engine.stream("Once upon a time", max_tokens=3000, ignore_eos=True)
    next(stream)
    print("streaming", flush=True)
    for piece in stream:
        pass
"""


def test_a_parent_killed_in_mid_stream_leaves_no_process() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "streaming\n"
    wait_until(lambda: len(descendants(parent.pid)) == 3, 10.0, "the compile worker")
    pids = descendants(parent.pid)
    parent.kill()
    began_s = time.monotonic()
    wait_until(lambda: not any(map(is_running, pids)), 5.0, "the end of all children")
    assert time.monotonic() - began_s < 5
    parent.communicate()


def test_close_leaves_no_process() -> None:
    engine = radixlm.Engine(threads=1, kv_bytes=64 << 20)
    mine = {*engine.pids().values(), compile_worker(engine)}
    assert len(mine) == 3
    engine.close()
    assert not any(map(is_running, mine))
