"""Our own server from another machine: the same results, the same errors as a local client, token for token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from asgi_thread import asgi_served
from backend_subjects import endpoint
from fake_openai import FakeOpenAI
from http_server import served
from toy_processes import toy_command

import radixlm
from radixlm import (
    ConfigError,
    GrammarError,
    PromptError,
    RadixError,
    RuntimeEndpoint,
    SamplingError,
    ServiceError,
    assistant,
    function,
    gen,
    select,
    user,
)  # fmt: skip
from radixlm.grammar.spec import AfterReasoning, JsonSchema, Regex
from radixlm.runtime import messages as m
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.launch import Runtime
from radixlm.runtime.local import LocalBackend


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    runtime = Runtime(EngineConfig.create(model="toy", threads=1), toy_command)
    yield runtime
    runtime.close()


@function
def program(s: Any) -> None:
    s += user("héllo 日") + assistant(
        "Well: " + gen("a", max_tokens=8, stop=["q", "x"]) + " and ban"
    )
    children = s.fork(3)
    children += lambda i: (
        gen("b", max_tokens=5, temperature=0.9, n=2) + f" {i}" + gen("c", regex="[a-c]{1,5}")
    )
    children.join()
    s += "ana: " + select("d", ["ban", "banana", "an"])
    s += gen(
        "e",
        max_tokens=6,
        logprobs=2,
        prompt_logprobs=1,
        include_stop=True,
        stop="o",
        logit_bias={50: 2.0},
    )


def test_a_program_gives_there_what_it_gives_here_token_for_token(runtime: Runtime) -> None:
    local = LocalBackend(runtime.client)
    here = program.run(backend=local, seed=5)
    with endpoint(runtime) as backend:
        there = program.run(backend=backend, seed=5)
        assert backend.facts == local.facts
    assert dict(there) == dict(here)
    assert there.text() == here.text()
    for name in ("a", "d", "e"):
        mine, theirs = here.get_meta(name), there.get_meta(name)
        for part in (
            "token_ids",
            "logprobs",
            "prompt_logprobs",
            "matched_stop",
            "seed",
            "scores",
            "finish_reason",
            "outputs",
        ):
            assert getattr(theirs, part) == getattr(mine, part), (name, part)
        assert theirs.usage.prompt_tokens == mine.usage.prompt_tokens


@pytest.mark.parametrize("at", [0, 1, 3, 5])
def test_a_branch_goes_on_after_a_stop_string_with_the_same_ids(runtime: Runtime, at: int) -> None:
    @function
    def stopped(s: Any, stop: str) -> None:
        s += "ban" + gen("a", max_tokens=10, stop=stop) + gen("b", max_tokens=8, logprobs=0)

    local = LocalBackend(runtime.client)
    whole = stopped.run("\x00", backend=local)["a"]
    here = stopped.run(whole[at : at + 2], backend=local)
    with endpoint(runtime) as backend:
        there = stopped.run(whole[at : at + 2], backend=backend)
    assert here.get_meta("a").matched_stop == whole[at : at + 2]
    assert there.text() == here.text()
    assert there.get_meta("b").logprobs == here.get_meta("b").logprobs


def test_forks_share_what_was_computed_there(runtime: Runtime) -> None:
    @function
    def forked(s: Any) -> None:
        s += "a long beginning that is computed once " * 8
        children = s.fork(4)
        children += lambda i: f"{i}" + gen("x", max_tokens=2)
        children.join()

    with endpoint(runtime) as backend:
        usage = forked.run(backend=backend, namespace="apart").usage()
    # three of four found it, which the cache holds in whole pages and to the token
    assert usage.cached_tokens > 0.7 * usage.prompt_tokens


@pytest.mark.parametrize(
    "options",
    [
        {"regex": "(a"},
        {"json_schema": '{"type": "object", "properties": {"x": {"type": "no"}}}'},
        {"prompt_logprobs": 3, "max_tokens": 100_000_000, "stop_token_ids": [10**6]},
        {"logit_bias": {10**9: 1.0}},
    ],
)
def test_an_error_is_the_local_one_with_its_place_and_hint(
    runtime: Runtime, options: dict[str, Any]
) -> None:
    @function
    def asked(s: Any) -> None:
        s += "x" + gen("a", **options)

    def error_of(backend: Any) -> RadixError:
        with pytest.raises(RadixError) as raised:
            asked.run(backend=backend)
        return raised.value

    here = error_of(LocalBackend(runtime.client))
    with endpoint(runtime) as backend:
        for there in (error_of(backend), error_of(backend)):
            assert type(there) is type(here)
            assert (there.message, there.place, there.hint) == (here.message, here.place, here.hint)


def test_an_error_with_other_characters_crosses(runtime: Runtime) -> None:
    with endpoint(runtime) as backend:
        message = m.Generate(
            backend.new_id("x"), None, (m.Text("x"),), constraint=Regex("(日\U0001f600")
        )
        error = backend.generate(message).exception(30)
    assert isinstance(error, GrammarError)


def test_a_failing_stream_tells_its_error_and_text(runtime: Runtime) -> None:
    with endpoint(runtime) as backend:
        bad = m.Generate(
            backend.new_id("x"), None, (m.Text("x"),), constraint=Regex("(a"), stream=True
        )
        assert isinstance(backend.generate(bad, lambda delta: None).exception(30), GrammarError)
        unspelled = m.Generate(
            backend.new_id("x"), None, (m.Text("\x07"),), stream=True, strict_text=True
        )
        assert isinstance(
            backend.generate(unspelled, lambda delta: None).exception(30), PromptError
        )


def test_constraints_of_ours_go_as_they_are(runtime: Runtime) -> None:
    spec = AfterReasoning(JsonSchema('{"enum": ["a", "b"]}'), end="y", begin="")
    with endpoint(runtime) as backend:
        sampling = m.SamplingParams(max_tokens=60)
        message = m.Generate(backend.new_id("x"), None, (m.Text("x"),), sampling, spec)
        output = backend.generate(message).result(30).outputs[0]
    local = LocalBackend(runtime.client)
    same = m.Generate(local.new_id("x"), None, (m.Text("x"),), sampling, spec)
    assert local.generate(same).result(30).outputs[0].text == output.text


def test_a_key_is_asked_for_and_taken(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RADIXLM_API_KEY", raising=False)
    with served(runtime, api_key="right-key-of-16-characters") as server:
        for wrong in (None, "wrong"):
            with pytest.raises(ConfigError) as raised:
                RuntimeEndpoint(server.url, wrong)
            assert raised.value.place == "api_key"
        with RuntimeEndpoint(server.url + "/v1", "right-key-of-16-characters") as backend:
            assert backend.facts.model == "toy"


def test_nobody_or_another_server_is_told_at_once() -> None:
    with pytest.raises(ServiceError, match="cannot be reached"):
        RuntimeEndpoint("http://127.0.0.1:9", max_retries=0)
    with (
        asgi_served(FakeOpenAI("vllm").app) as url,
        pytest.raises(ConfigError, match="not radixlm's") as raised,
    ):
        RuntimeEndpoint(url)
    assert raised.value.place == "base_url"


def test_unknown_arguments_are_refused_by_the_endpoint_by_name(runtime: Runtime) -> None:
    import httpx2

    with served(runtime) as server, httpx2.Client(base_url=server.url) as client:
        body: dict[str, Any] = {
            "segments": [{"type": "text", "text": "x"}],
            "sampling": {"temprature": 1},
        }
        answer = client.post("/radixlm/generate", json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "temprature")
        body["sampling"] = {"max_tokens": "three"}
        assert client.post("/radixlm/generate", json=body).status_code == 400
        assert (
            client.post("/radixlm/score", json={"segments": []}).json()["error"]["param"]
            == "choices"
        )
        assert client.get("/radixlm/model").json()["context_length"] == 4096


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_real_model_gives_there_what_it_gives_here(engine: radixlm.Engine) -> None:
    @function
    def real(s: Any) -> None:
        s += user("Name a fruit and a colour.") + assistant(
            "A fruit: " + gen("fruit", max_tokens=6, stop=["\n", "."])
        )
        children = s.fork(2)
        children += lambda i: (
            user(f"Say it in {i + 3} words.") + assistant(gen("say", max_tokens=8))
        )
        children.join()
        s += user("Is it red?") + assistant(select("red", ["yes", "no", "maybe"]))
        s += user("As JSON") + assistant(gen("j", json_schema={"type": "object", "properties": {"f": {"type": "string", "maxLength": 8}}, "required": ["f"], "additionalProperties": False}))  # fmt: skip

    here = real.run(backend=engine)
    with endpoint(engine._runtime) as backend:
        there = real.run(backend=backend)
        with real.run(backend=backend, stream=True) as live:
            assert "".join(live.text_iter("j")) == here["j"]
    assert dict(there) == dict(here)
    assert there.get_meta("fruit").token_ids == here.get_meta("fruit").token_ids
    assert there.usage().cached_tokens > 0


def test_sampling_errors_are_those_of_the_arguments(runtime: Runtime) -> None:
    with endpoint(runtime) as backend:
        message = m.Generate(
            backend.new_id("x"), None, (m.Text("x"),), m.SamplingParams(temperature=-1.0)
        )
        error = backend.generate(message).exception(30)
    assert isinstance(error, SamplingError)
    assert error.place == "temperature"
