"""HTTP to one server: what is repeated and when, what never is, broken streams, keys that no error shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgi_thread import asgi_served
from backend_subjects import openai
from fake_openai import FakeOpenAI
from starlette.responses import JSONResponse, PlainTextResponse, Response

from radixlm import (
    Aborted,
    Anthropic,
    ConfigError,
    ContextOverflow,
    GrammarError,
    OpenAI,
    OutputError,
    Overloaded,
    RadixError,
    RuntimeEndpoint,
    SamplingError,
    ServiceError,
    TimedOut,
    UserError,
    assistant,
    function,
    gen,
    user,
)  # fmt: skip
from radixlm.runtime import messages as m
from radixlm.runtime.remote import failures
from radixlm.runtime.remote.connection import Event, Limits, events_of
from radixlm.runtime.remote.failures import MAX_DELAY_S, delay_s, refusal_of


@function
def ask(s: Any, question: str = "Hm?") -> None:
    s += user(question) + assistant(gen("a", max_tokens=4))


def refused(
    status: int, *, message: str = "no", headers: dict[str, str] | None = None, **more: Any
) -> Response:
    error = {"message": message, "type": "x", "param": None, "code": None, **more}
    return JSONResponse(
        {"error": error}, status_code=status, headers={"retry-after-ms": "1", **(headers or {})}
    )


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_passing_failure_is_repeated_until_it_succeeds(status: int) -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        fake.failures += [refused(status), refused(status)]
        assert ask.run(backend=backend)["a"]
    assert len(fake.requests) == 3


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, UserError),
        (401, ConfigError),
        (403, ConfigError),
        (404, ConfigError),
        (413, UserError),
        (422, UserError),
    ],
)
def test_a_mistake_is_never_repeated(status: int, kind: type[RadixError]) -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        fake.failures.append(refused(status, message="the server's own words"))
        with pytest.raises(
            kind,
            match=f"({status}): the server's own words".replace("(", r"\(").replace(")", r"\)"),
        ):
            ask.run(backend=backend)
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind"), [(429, Overloaded), (503, ServiceError), (504, TimedOut)]
)
def test_repetitions_are_bounded_and_then_the_error_is_told(
    status: int, kind: type[RadixError]
) -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake, max_retries=1) as backend:
        fake.failures += [refused(status)] * 5
        with pytest.raises(kind):
            ask.run(backend=backend)
    assert len(fake.requests) == 2


def test_the_server_may_say_whether_to_repeat() -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        fake.failures.append(refused(503, headers={"x-should-retry": "false"}))
        with pytest.raises(ServiceError):
            ask.run(backend=backend)
    assert len(fake.requests) == 1


def test_a_stream_is_repeated_before_it_has_begun_and_not_after() -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        fake.failures.append(refused(503))
        with ask.run(backend=backend, stream=True) as live:
            assert "".join(live.text_iter("a")) == live["a"]
        assert len(fake.requests) == 2
        fake.failures.append("half of")
        with (
            pytest.raises(ServiceError, match="broke off") as raised,
            ask.run(backend=backend, stream=True) as live,
        ):
            list(live.text_iter("a"))
        assert raised.value.partial == "half of"  # type: ignore[attr-defined]
    assert len(fake.requests) == 3


def test_an_error_inside_a_stream_ends_it_with_the_servers_words() -> None:
    fake = FakeOpenAI("vllm")
    body = 'data: {"choices":[{"index":0,"delta":{"content":"so"}}]}\n\ndata: {"error":{"message":"out of memory"}}\n\n'
    with openai(fake) as backend:
        fake.failures.append(Response(body, media_type="text/event-stream"))
        with (
            pytest.raises(ServiceError, match="out of memory"),
            ask.run(backend=backend, stream=True) as live,
        ):
            list(live.text_iter("a"))


@pytest.mark.parametrize("body", ["", "<html>busy</html>", "[1]", "{}"])
def test_an_answer_in_another_form_is_a_service_error(body: str) -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        fake.failures.append(PlainTextResponse(body))
        with pytest.raises(ServiceError, match=r"vLLM|the server"):
            ask.run(backend=backend)


def test_a_redirect_is_not_followed_with_the_key() -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        fake.failures.append(Response(status_code=307, headers={"location": "http://127.0.0.1:9/"}))
        with pytest.raises(UserError, match="307"):
            ask.run(backend=backend)


def test_nobody_there_is_told_with_the_address() -> None:
    where = r"cannot be reached at http://127\.0\.0\.1:9/v1"
    with (
        OpenAI("fake", base_url="http://127.0.0.1:9/v1", max_retries=0) as backend,
        pytest.raises(ServiceError, match=where),
    ):
        ask.run(backend=backend)


def test_a_server_that_does_not_answer_in_time_is_timed_out_and_left() -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake, timeout_s=0.2) as backend:
        with pytest.raises(TimedOut, match=r"no answer within 0.2 s"):
            ask.run("SLOW", backend=backend)
        assert ask.run(backend=backend)["a"]
        _until(lambda: fake.num_left == 1)


def test_an_abort_closes_the_connection_so_that_the_server_can_stop() -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        segments = (
            m.RoleBegin("user"),
            m.Text("SLOW"),
            m.RoleEnd("user"),
            m.RoleBegin("assistant"),
        )
        message = m.Generate(backend.new_id("x"), None, segments, stream=True)
        grown: list[str] = []
        future = backend.generate(message, lambda delta: grown.append(delta.text))
        _until(lambda: bool(grown))
        backend.send(m.Abort(message.request))
        assert isinstance(future.exception(30), Aborted)
        _until(lambda: fake.num_left == 1)


def test_closing_ends_what_runs_and_nothing_can_be_asked_any_more() -> None:
    fake = FakeOpenAI("vllm")
    with asgi_served(fake.app) as url:
        backend = OpenAI("fake", base_url=f"{url}/v1")
        segments = (
            m.RoleBegin("user"),
            m.Text("SLOW"),
            m.RoleEnd("user"),
            m.RoleBegin("assistant"),
        )
        futures = [
            backend.generate(m.Generate(backend.new_id("x"), None, segments)) for _ in range(3)
        ]
        backend.close()
        backend.close()
        assert all(isinstance(future.exception(30), Aborted) for future in futures)
        with pytest.raises(ServiceError, match="closed"):
            ask.run(backend=backend)


def test_no_more_requests_run_at_once_than_allowed() -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake, max_concurrency=2) as backend:
        states = ask.run_batch(
            [{"question": f"{i}?"} for i in range(10)], backend=backend, progress_bar=False
        )
        assert all(state["a"] for state in states)
    assert fake.max_active == 2


def test_a_key_is_sent_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    fake = FakeOpenAI("vllm")
    with caplog.at_level(0), openai(fake, api_key="sk-very-secret") as backend:
        fake.failures.append(refused(401, message="wrong key"))
        with pytest.raises(ConfigError) as raised:
            ask.run(backend=backend)
        ask.run(backend=backend)
    assert fake.headers[-1]["authorization"] == "Bearer sk-very-secret"
    assert raised.value.place == "api_key"
    shown = [
        str(raised.value),
        repr(raised.value),
        repr(backend),
        caplog.text,
        *raised.value.__notes__,
    ]
    assert not any("secret" in text for text in shown)


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"x-api-key": "SECRET-123\n"}},
        {"headers": {"x-api-key": "SECRETключ"}},
        {"headers": {"SECRET key": "x"}},
        {"headers": {"x-api-key": 5}},
        {"base_url": "http://user:SECRET@127.0.0.1:1/v1"},
        {"base_url": "user:SECRET@127.0.0.1:1/v1"},
        {"base_url": "http://user:SEC/RET@127.0.0.1:1/v1"},
        {"base_url": "http://"},
        {"base_url": "ftp://127.0.0.1"},
    ],
)
def test_what_http_cannot_carry_is_refused_at_once_and_not_shown(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        OpenAI("m", **{"base_url": "http://127.0.0.1:1/v1", **options})
    assert raised.value.place == next(iter(options))
    assert "SEC" not in f"{raised.value} {raised.value!r} {raised.value.hint}"


@pytest.mark.parametrize("wrong", ["/nope.pem", "/", __file__, 5, None])
def test_certificates_that_cannot_be_read_are_a_config_error_at_once(wrong: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        OpenAI("m", base_url="https://127.0.0.1:1/v1", verify=wrong)
    assert raised.value.place == "verify"


@pytest.mark.parametrize("wrong", [None, 5, b"http://127.0.0.1:1"])
def test_an_address_that_is_no_text_is_a_config_error_at_once(wrong: Any) -> None:
    makers: tuple[Callable[[], Any], ...] = (
        lambda: OpenAI("m", base_url=wrong),
        lambda: Anthropic("m", base_url=wrong, api_key="k"),
        lambda: RuntimeEndpoint(wrong),
    )
    for make in makers:
        with pytest.raises(ConfigError) as raised:
            make()
        assert raised.value.place == "base_url"


# ---------------------------------------------------------------------------------------------- the table


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "m", "code": "context_length_exceeded"}, ContextOverflow),
        ({"message": "This model's maximum context length is 10 tokens"}, ContextOverflow),
        ({"message": "prompt is too long: 3 tokens"}, ContextOverflow),
        ({"message": "m", "param": "response_format.json_schema"}, GrammarError),
        ({"message": "m", "code": "unsupported_schema"}, GrammarError),
        ({"message": "m", "param": "temperature"}, SamplingError),
        ({"message": "m", "param": "messages"}, UserError),
    ],
)
def test_a_400_is_the_error_that_its_code_or_field_says(
    error: dict[str, Any], kind: type[RadixError]
) -> None:
    body = JSONResponse({"error": error}).body
    refusal = refusal_of("it", 400, {}, bytes(body))
    assert type(refusal.error) is kind
    assert refusal.error.place == error.get("param", "")
    assert not refusal.is_retryable


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"a"}}', "a"),
        (b'{"type":"error","error":{"type":"x","message":"b"}}', "b"),
        (b'{"object":"error","message":"c"}', "c"),
        (b'{"detail":[{"loc":["body"],"msg":"d"}]}', "d"),
        (b'{"error":"e"}', "e"),
        (b"plain \xff text", "plain"),
        (b"[]", "[]"),
        (b"", "nothing"),
    ],
)
def test_the_servers_words_are_found_in_any_shape(body: bytes, message: str) -> None:
    assert message in refusal_of("it", 500, {}, body).error.message


def test_delays_are_the_servers_or_grow_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert delay_s(1, {"retry-after-ms": "250"}) == 0.25
    assert delay_s(1, {"retry-after": "3"}) == 3.0
    assert delay_s(1, {"retry-after": "86400"}) == MAX_DELAY_S
    monkeypatch.setattr(failures.time, "time", lambda: 784111777.0)
    assert delay_s(1, {"retry-after": "Sun, 06 Nov 1994 08:49:42 GMT"}) == 5.0
    assert delay_s(1, {"retry-after": "Sun, 06 Nov 1994 08:49:00 GMT"}) == 0.0
    own = [delay_s(attempt, {}) for attempt in range(1, 9)]
    assert 0.3 < own[0] <= 0.5
    assert 0.3 < delay_s(1, {"retry-after": "soon"}) <= 0.5
    assert max(own) <= 8.0
    assert own[3] > own[1]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_read_however_the_bytes_are_cut(size: int) -> None:
    text = ': hello\n\ndata: {"a": "x\u2028y é"}\r\n\r\nevent: two\ndata: 1\ndata: 2\n\nid: 3\n\ndata:[DONE]\n\n'
    data = text.encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    async def collect() -> list[Event]:
        return [event async for event in events_of(pieces())]

    assert asyncio.run(collect()) == [
        Event("", '{"a": "x\u2028y é"}'),
        Event("two", "1\n2"),
        Event("", "[DONE]"),
    ]


@pytest.mark.parametrize(
    "wrong", [{"timeout_s": 0}, {"max_retries": -1}, {"max_concurrency": 0}, {"timeout_s": "1"}]
)
def test_an_impossible_limit_names_itself(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        Limits(**wrong).check()
    assert raised.value.place == next(iter(wrong))


def test_a_refusal_by_the_model_is_an_output_error() -> None:
    fake = FakeOpenAI("vllm")
    with openai(fake) as backend:
        choice = {
            "index": 0,
            "message": {"content": None, "refusal": "I will not"},
            "finish_reason": "stop",
        }
        fake.failures.append(JSONResponse({"choices": [choice]}))
        with pytest.raises(OutputError, match="I will not"):
            ask.run(backend=backend)
        choice = {"index": 0, "message": {"content": "so f"}, "finish_reason": "content_filter"}
        fake.failures.append(JSONResponse({"choices": [choice]}))
        with pytest.raises(OutputError, match="content_filter"):
            ask.run(backend=backend)


def _until(condition: Any) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come to pass")
