"""What goes to OpenAI-compatible servers and to Anthropic, field by field; what is refused is refused before anything goes."""

from __future__ import annotations

from typing import Any

import pytest
from backend_subjects import anthropic, openai
from fake_anthropic import KEY, NEW, OLD, FakeAnthropic
from fake_model import FakeModel
from fake_openai import FakeOpenAI

from radixlm import (
    Anthropic,
    GrammarError,
    OpenAI,
    ProgramError,
    RadixError,
    SamplingError,
    assistant,
    function,
    gen,
    select,
    system,
    user,
)  # fmt: skip
from radixlm.runtime import messages as m


@function
def chat(s: Any, **options: Any) -> None:
    s += system("Be kind.") + user("Hm?") + assistant(gen("a", **options))


@function
def text(s: Any, **options: Any) -> None:
    s += "Once" + gen("a", **options)


def body_of(program: Any, dialect: str, **options: Any) -> dict[str, Any]:
    fake = FakeOpenAI(dialect)
    with openai(fake) as backend:
        program.run(**options, backend=backend)
    return fake.requests[-1]


def anthropic_body(
    program: Any, model: str = NEW, *, own: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    fake = FakeAnthropic()
    with anthropic(fake, model, **(own or {})) as backend:
        program.run(**options, backend=backend)
    return fake.requests[-1]


def test_openai_chat() -> None:
    assert body_of(chat, "openai", max_tokens=9, stop=["\n"], top_p=0.5) == {
        "model": "fake", "temperature": 0.0, "top_p": 0.5, "stop": ["\n"], "max_completion_tokens": 9,
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hm?"}],
    }  # fmt: skip


def test_vllm_text_with_every_argument_it_knows() -> None:
    body = body_of(
        text, "vllm", max_tokens=9, min_tokens=2, temperature=0.5, top_k=4, top_p=0.9, min_p=0.1, repetition_penalty=1.2, seed=1,
        frequency_penalty=0.1, presence_penalty=0.2, logit_bias={5: -3.0}, stop="x", stop_token_ids=[3], include_stop=True,
        ignore_eos=True, logprobs=2, n=2,
    )  # fmt: skip
    assert body.pop("seed") > 1  # derived from the run's
    assert body == {
        "model": "fake", "prompt": "Once", "max_tokens": 9, "min_tokens": 2, "temperature": 0.5, "top_k": 4, "top_p": 0.9, "min_p": 0.1,
        "repetition_penalty": 1.2, "frequency_penalty": 0.1, "presence_penalty": 0.2, "logit_bias": {"5": -3.0},
        "stop": ["x"], "stop_token_ids": [3], "include_stop_str_in_output": True, "ignore_eos": True, "logprobs": 2, "n": 2,
        "return_tokens_as_token_ids": True,
    }  # fmt: skip


def test_servers_with_defaults_of_their_own_are_told_neutral_ones() -> None:
    assert body_of(text, "llama.cpp") == {
        "model": "fake", "prompt": "Once", "temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "typical_p": 1.0,
        "repeat_penalty": 1.0,
    }  # fmt: skip
    assert body_of(chat, "llama.cpp", repetition_penalty=1.3)["repeat_penalty"] == 1.3
    assert body_of(chat, "sglang")["top_k"] == -1


def test_a_completion_without_max_tokens_is_not_cut_at_the_servers_short_default() -> None:
    assert body_of(text, "vllm")["max_tokens"] == 1024
    assert "max_completion_tokens" not in body_of(chat, "openai")


@pytest.mark.parametrize(
    ("dialect", "option", "value"),
    [
        ("openai", "top_k", 3), ("openai", "min_p", 0.1), ("openai", "typical_p", 0.5), ("openai", "repetition_penalty", 1.1),
        ("openai", "min_tokens", 1), ("openai", "ignore_eos", True), ("openai", "stop_token_ids", (1,)), ("vllm", "typical_p", 0.5),
        ("sglang", "logprobs", 1), ("llama.cpp", "min_tokens", 1), ("vllm", "prompt_logprobs", 0),
    ],
)  # fmt: skip
def test_an_argument_the_server_does_not_know_is_refused_by_name_before_anything_goes(dialect: str, option: str, value: Any) -> None:  # fmt: skip
    fake = FakeOpenAI(dialect)
    with (
        openai(fake) as backend,
        pytest.raises(SamplingError, match=f"does not take {option}") as raised,
    ):
        chat.run(backend=backend, **{option: value})
    assert raised.value.place == option
    assert fake.requests == []


def test_nothing_of_a_refused_constraint_goes() -> None:
    fake = FakeOpenAI("openai")
    with openai(fake) as backend, pytest.raises(GrammarError):
        text.run(backend=backend, regex="a")  # type: ignore[call-arg]
    assert fake.requests == []


@pytest.mark.parametrize(
    ("is_chat", "key"), [(True, "messages"), (False, "prompt"), (None, "prompt")]
)
def test_text_without_roles_goes_where_it_is_told_to(is_chat: bool | None, key: str) -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake, is_chat_model=is_chat) as backend:
        text.run(max_tokens=3, backend=backend)
    assert key in fake.requests[-1]


def test_the_dialect_is_known_by_the_list_of_models_and_asked_for_once() -> None:
    fake = FakeOpenAI("sglang")
    with openai(fake) as backend:
        assert backend.facts.context_length == 128_000
        text.run(backend=backend, max_tokens=3)
        assert backend.facts.context_length == 4096


def test_a_server_without_a_list_of_models_is_spoken_to_as_openai() -> None:
    from asgi_thread import asgi_served

    fake = FakeOpenAI("openai")
    app = fake.app
    app.router.routes = [route for route in app.router.routes if "models" not in route.path]  # type: ignore[attr-defined]
    with asgi_served(app) as url, OpenAI("fake", base_url=f"{url}/v1") as backend:
        assert chat.run(backend=backend, max_tokens=3)["a"]
    assert fake.requests[0]["max_completion_tokens"] == 3


def test_a_namespace_keeps_caches_apart_where_the_server_can() -> None:
    assert body_of(text, "vllm", namespace="mine", max_tokens=3)["cache_salt"] == "mine"
    assert "cache_salt" not in body_of(text, "sglang", namespace="mine", max_tokens=3)


def test_an_answer_that_has_begun_is_continued_where_the_server_can() -> None:
    @function
    def begun(s: Any) -> None:
        s += user("Sky?") + assistant("It is" + gen("a", max_tokens=3))

    body = body_of(begun, "vllm")
    assert body["messages"][-1] == {"role": "assistant", "content": "It is"}
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)
    assert body_of(begun, "llama.cpp")["messages"][-1]["role"] == "assistant"


def test_choices_are_scored_by_one_call_where_prompts_are_echoed() -> None:
    @function
    def choose(s: Any) -> None:
        s += "I like " + select("c", ["tea", "teapots", "coffee"])

    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        state = choose.run(backend=backend)
    (body,) = fake.requests
    assert body["prompt"] == ["I like tea", "I like teapots", "I like coffee"]
    assert (body["echo"], body["max_tokens"]) == (True, 0)
    # the fake gives token i of length l the value -(l + i) / 7; the last token of each prompt holds the whole choice
    assert state.get_meta("c").scores == {"tea": -6 / 7, "teapots": -10 / 7, "coffee": -9 / 7}
    assert state["c"] == "tea"


def test_an_empty_choice_is_refused_by_name_where_prompts_are_echoed() -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        backend.send(m.OpenBranch("b"))
        backend.send(m.Append("b", (m.Text("I like "),)))
        answer = backend.score(m.Score("r", "b", ("tea", "")))
        backend.send(m.CloseBranch("b"))
        error = answer.exception(10)
    assert isinstance(error, ProgramError)
    assert "an empty choice" in error.message
    assert error.place == "choices"
    assert not fake.requests


def test_choices_judged_by_themselves_are_refused_by_name_without_scores() -> None:
    @function
    def choose(s: Any) -> None:
        s += user("?") + assistant(
            select("c", ["a", "b"], choices_method="unconditional_likelihood_normalized")
        )

    fake = FakeOpenAI("openai")
    with openai(fake) as backend, pytest.raises(ProgramError) as raised:
        choose.run(backend=backend)
    assert raised.value.place == "choices_method"
    with openai(FakeOpenAI("vllm"), is_chat_model=False) as backend:
        text_choose = function(lambda s: s.__iadd__("x" + select("c", ["a", "b"], choices_method="unconditional_likelihood_normalized")))  # fmt: skip
        assert text_choose.run(backend=backend)["c"] in ("a", "b")


def test_reasoning_models_of_openai_are_not_told_the_default_temperature() -> None:
    from radixlm.runtime.remote.adapters.openai_api import _NO_TEMPERATURE

    assert all(
        _NO_TEMPERATURE.match(name)
        for name in ("o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5.4-nano")
    )
    assert not any(_NO_TEMPERATURE.match(name) for name in ("gpt-4o", "omni", "gpt-3.5-turbo"))


# ---------------------------------------------------------------------------------------------- Anthropic


def test_anthropic_chat() -> None:
    assert anthropic_body(chat, max_tokens=9, stop=["END", "\n"]) == {
        "model": NEW, "max_tokens": 9, "system": "Be kind.", "messages": [{"role": "user", "content": "Hm?"}],
        "stop_sequences": ["END"],
    }  # fmt: skip
    assert anthropic_body(chat, OLD)["temperature"] == 0.0
    assert anthropic_body(chat)["max_tokens"] == 4096
    assert anthropic_body(chat, own={"default_max_tokens": 77})["max_tokens"] == 77


def test_anthropic_schema_is_closed_and_goes_as_output_config() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    body = anthropic_body(
        function(lambda s: s.__iadd__(user("?") + assistant(gen("a", json_schema=schema))))
    )
    assert body["output_config"] == {
        "format": {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}
    }


def test_a_wrapped_answer_has_room_for_the_json_around_it() -> None:
    @function
    def choose(s: Any) -> None:
        s += user("?") + assistant(gen("a", choices=["left", "right"], max_tokens=2))

    assert body_of(choose, "openai")["max_completion_tokens"] == 18
    assert body_of(choose, "vllm")["max_tokens"] == 2
    assert anthropic_body(choose)["max_tokens"] == 18


def test_anthropic_text_outside_roles_is_the_users() -> None:
    assert anthropic_body(text)["messages"] == [{"role": "user", "content": "Once"}]


def test_anthropic_white_space_before_the_answer_goes_on_is_not_told_and_not_repeated() -> None:
    @function
    def begun(s: Any) -> None:
        s += user("Sky?") + assistant("It is " + gen("a", max_tokens=3))

    fake = FakeAnthropic(FakeModel("assistant: It is blue today"))
    with anthropic(fake, OLD) as backend:
        state = begun.run(backend=backend)
        with begun.run(backend=backend, stream=True) as live:
            assert "".join(live.text_iter("a")) == state["a"] == "blue today"
    assert fake.requests[-1]["messages"][-1]["content"] == "It is"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("seed", 1),
        ("frequency_penalty", 0.5),
        ("min_p", 0.1),
        ("logprobs", 1),
        ("logit_bias", {1: 2.0}),
        ("min_tokens", 2),
    ],
)
def test_anthropic_refuses_by_name_what_the_api_does_not_know(option: str, value: Any) -> None:
    fake = FakeAnthropic()
    with anthropic(fake) as backend, pytest.raises(SamplingError) as raised:
        chat.run(backend=backend, **{option: value})
    assert raised.value.place == option
    assert fake.requests == []


def test_anthropic_refuses_to_write_no_token_at_all() -> None:
    fake = FakeAnthropic()
    with anthropic(fake) as backend, pytest.raises(SamplingError) as raised:
        chat.run(max_tokens=0, backend=backend)
    assert raised.value.place == "max_tokens"
    assert not fake.requests


def test_anthropic_system_messages_stand_at_the_beginning() -> None:
    @function
    def late(s: Any) -> None:
        s += user("A") + assistant("B") + system("C") + user("D") + assistant(gen("x"))

    fake = FakeAnthropic()
    with anthropic(fake) as backend, pytest.raises(ProgramError, match="at the beginning only"):
        late.run(backend=backend)
    assert fake.requests == []


def test_anthropic_prompts_that_forks_share_are_marked_on_request() -> None:
    @function
    def forked(s: Any) -> None:
        s += user("A") + assistant(gen("x"))
        children = s.fork(2)
        children += user("B") + assistant(gen("y"))
        children.join()

    assert anthropic_body(forked, own={"caches_prompts": True})["cache_control"] == {
        "type": "ephemeral"
    }
    assert "cache_control" not in anthropic_body(forked)


def test_anthropic_counts_cached_tokens_as_part_of_the_prompt() -> None:
    with anthropic(FakeAnthropic()) as backend:
        usage = chat.run(backend=backend).usage()
        assert usage.cached_tokens == 3
        assert usage.prompt_tokens > 5
        with chat.run(backend=backend, stream=True) as live:
            live.finish()
            assert live.usage() == usage


def test_anthropic_error_in_a_stream_is_told() -> None:
    from starlette.responses import Response

    fake = FakeAnthropic()
    body = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    with anthropic(fake) as backend:
        fake.failures.append(Response(body, media_type="text/event-stream"))
        with (
            pytest.raises(RadixError, match="Overloaded"),
            chat.run(backend=backend, stream=True) as live,
        ):
            live.finish()


def test_keys_come_from_the_environment_and_are_missed_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for make, variable in (
        (lambda: OpenAI("gpt-4o"), "OPENAI_API_KEY"),
        (lambda: Anthropic(NEW), "ANTHROPIC_API_KEY"),
    ):
        with pytest.raises(RadixError, match=variable) as raised:
            make()
        assert raised.value.place == "api_key"
        monkeypatch.setenv(variable, "sk-x\n")
        make().close()
    for wrong in ("", "sk-\u2026", "a\nb", 7):
        with pytest.raises(RadixError) as raised:
            OpenAI("m", api_key=wrong)  # type: ignore[arg-type]
        assert repr(wrong) not in str(raised.value)
    assert KEY


@pytest.mark.parametrize(
    "wrong", [{"base_url": "localhost:80"}, {"dialect": "vlm"}, {"model": ""}, {"timeout_s": -1.0}]
)
def test_a_wrong_argument_is_a_config_error_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(RadixError) as raised:
        OpenAI(**{"model": "m", "base_url": "http://127.0.0.1:9/v1", **wrong})
    assert raised.value.place == next(iter(wrong))


def test_hints_and_forced_tokens_change_nothing_there() -> None:
    with openai(FakeOpenAI("vllm")) as backend:
        branch = backend.new_id("b")
        backend.send(m.OpenBranch(branch))
        backend.send(m.Append(branch, (m.Text("Once"),)))
        hinted = m.Generate(backend.new_id("x"), branch, sampling=m.SamplingParams(max_tokens=3, jump_forward=False), hints=m.Hints(2))  # fmt: skip
        assert backend.generate(hinted).result(30).outputs[0].text
        backend.send(m.CloseBranch(branch))
