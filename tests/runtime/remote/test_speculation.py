"""Several results from one call: the same results, fewer calls, and only where nothing depends on it."""

from __future__ import annotations

from typing import Any

import pytest
from backend_subjects import anthropic, openai
from fake_anthropic import FakeAnthropic
from fake_model import FakeModel, tokens_of
from fake_openai import FakeOpenAI
from hypothesis import given
from hypothesis import strategies as st

from radixlm import ProgramError, ScriptedBackend, assistant, function, gen, user
from radixlm.runtime import messages as m
from radixlm.runtime.remote.speculation import Ahead, Written, cut, is_eligible

BOOK = "About Ada.\nName: Ada Lovelace\nBorn: 1815\nDied: 1852\nJob: mathematician\n"


def life(num_tokens: int | None, **options: Any) -> Any:
    @function(num_api_spec_tokens=num_tokens)
    def program(s: Any, second: str = "Born") -> None:
        s += "About Ada.\nName:" + gen("name", stop="\n", **options)
        s += f"\n{second}:" + gen("born", stop="\n", max_tokens=5, **options)
        s += "\nDied:" + gen("died", stop="\n", **options) + "."

    return program


def run(
    dialect: str, num_tokens: int | None, second: str = "Born", **options: Any
) -> tuple[Any, int]:
    fake = FakeOpenAI(dialect, FakeModel(BOOK))
    with openai(fake) as backend:
        state = life(num_tokens, **options).run(second, backend=backend)
    return state, len(fake.requests)


@pytest.mark.parametrize("dialect", ["vllm", "sglang", "llama.cpp", "openai"])
def test_one_call_serves_all_gens_where_the_text_agrees(dialect: str) -> None:
    plain, num_plain = run(dialect, None)
    ahead, num_ahead = run(dialect, 40)
    assert ahead.text() == plain.text()
    assert dict(ahead) == dict(plain) == {"name": " Ada Lovelace", "born": " 1815", "died": " 1852"}
    # two tell their tokens, so that max_tokens can be kept without a call
    assert (num_plain, num_ahead) == (3, 1 if dialect in ("vllm", "sglang") else 3)


def test_the_usage_counts_each_call_once() -> None:
    ahead, _ = run("vllm", 40)
    assert ahead.get_meta("name").usage.completion_tokens > 0
    assert ahead.get_meta("born").usage == m.Usage()


def test_text_that_differs_is_asked_for_again() -> None:
    plain, _ = run("vllm", None, "Birth")
    ahead, num_ahead = run("vllm", 40, "Birth")
    assert ahead.text() == plain.text()
    assert num_ahead == 3


def test_sampling_with_a_seed_does_not_write_ahead() -> None:
    _, num_calls = run("vllm", 40, temperature=1.0, seed=4)
    assert num_calls == 3


@pytest.mark.parametrize(("temperature", "is_shared"), [(0.0, True), (0.8, False)])
def test_forks_share_what_was_written_ahead_only_if_it_was_not_sampled(
    temperature: float, is_shared: bool
) -> None:
    message = m.Generate("x", "b", (), m.SamplingParams(temperature=temperature, stop=("\n",)))
    ahead = Ahead(40)
    ahead.keep(message, Written("one\ntwo\n"))
    ahead.append((m.Text("\n"),))
    found = ahead.copy().take(message)
    assert (found is not None) is is_shared
    own = ahead.take(message)
    assert own is not None
    assert own.text == "two"


def test_a_stream_of_what_was_written_ahead_is_the_text() -> None:
    fake = FakeOpenAI("vllm", FakeModel(BOOK))
    with openai(fake) as backend, life(40).run(backend=backend, stream=True) as live:
        assert "".join(live.text_iter("died")) == " 1852"
        assert live.text().endswith("1852.")
    assert len(fake.requests) == 1


def test_forks_take_what_was_written_ahead_with_them() -> None:
    @function(num_api_spec_tokens=40)
    def program(s: Any) -> None:
        s += "About Ada.\nName:" + gen("name", stop="\n")
        children = s.fork(2)
        children += lambda i: ("\nBorn:" if i == 0 else "\nDied:") + gen("x", stop="\n")
        children.join()

    fake = FakeOpenAI("vllm", FakeModel(BOOK))
    with openai(fake) as backend:
        assert program.run(backend=backend)["x"][0] == " 1815"
    assert len(fake.requests) == 2  # the second child says something else


def test_an_assistants_message_is_written_ahead() -> None:
    @function(num_api_spec_tokens=40)
    def program(s: Any) -> None:
        s += user("Who?") + assistant(gen("a", stop="\n") + "\nBorn:" + gen("b", stop="\n"))

    book = "assistant: Ada\nBorn: 1815\nDied: 1852\n"
    with openai(FakeOpenAI("openai", FakeModel(book))) as backend:
        assert dict(program.run(backend=backend)) == {"a": "Ada", "b": " 1815"}
    with anthropic(FakeAnthropic(FakeModel(book))) as backend:
        assert dict(program.run(backend=backend)) == {"a": "Ada", "b": " 1815"}


def test_a_local_backend_does_not_mind_and_a_wrong_number_is_refused() -> None:
    backend = ScriptedBackend({"name": "a", "born": "b", "died": "c"})
    assert life(20).run(backend=backend)["born"] == "b"
    with pytest.raises(ProgramError, match="num_api_spec_tokens=0 is not a number of tokens"):
        life(0).run(backend=backend)


def test_what_depends_on_the_number_of_calls_is_not_eligible() -> None:
    def message(**sampling: Any) -> m.Generate:
        return m.Generate("x", "b", sampling=m.SamplingParams(**sampling))

    assert is_eligible(message(stop=("a",), max_tokens=3))
    assert is_eligible(message(temperature=1.0))
    for sampling in (
        {"temperature": 1.0, "seed": 1}, {"n": 2}, {"logprobs": 0}, {"min_tokens": 1}, {"stop_token_ids": (4,)}, {"ignore_eos": True},
    ):  # fmt: skip
        assert not is_eligible(message(**sampling)), sampling


def test_other_arguments_do_not_share_a_call() -> None:
    ahead = Ahead(10)
    first = m.Generate("x", "b", sampling=m.SamplingParams(stop=("\n",)))
    assert ahead.keep(first, Written("one\ntwo\nthree")) is not None
    ahead.append((m.Text("\n"),))
    hot = m.Generate("y", "b", sampling=m.SamplingParams(stop=("\n",), temperature=0.5))
    assert ahead.take(hot) is None


def test_a_role_border_ends_what_was_written() -> None:
    ahead = Ahead(10)
    first = m.Generate("x", "b", sampling=m.SamplingParams(stop=("\n",)))
    ahead.keep(first, Written("one\ntwo\n"))
    ahead.append((m.RoleEnd("assistant"),))
    assert ahead.take(first) is None


@given(st.text("ab \n", max_size=30), st.integers(0, 12), st.sampled_from([(), ("\n",), ("b ", "a")]), st.booleans())  # fmt: skip
def test_a_cut_is_what_a_model_that_stops_there_had_written(text: str, limit: int, stops: tuple[str, ...], is_ended: bool) -> None:  # fmt: skip
    """Held against a plain walk over the tokens, as an engine does it."""
    tokens = tuple(tokens_of(text))
    sampling = m.SamplingParams(max_tokens=limit, stop=stops)
    found = cut(Written(text, tokens, is_ended), sampling)
    so_far = ""
    expected: tuple[str, str] | None = None
    for number, token in enumerate((*tokens, None)):
        at = [so_far.find(stop) for stop in stops if stop in so_far]
        if at:
            expected = (so_far[: min(at)], "stop")
            break
        if token is None:
            # an engine that has room for no more says length, at the end or not
            expected = (
                (so_far, "stop") if is_ended else ((so_far, "length") if number >= limit else None)
            )
            break
        if number == limit:
            expected = (so_far, "length")
            break
        so_far += token
    told = None if found is None else (found.text, found.finish_reason)
    assert told == expected
