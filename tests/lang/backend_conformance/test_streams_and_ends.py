"""Streams, failures, aborts and time limits on every backend; the fixtures look for what is left open."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from backend_subjects import ON_THE_MODEL, Subject

from radixlm import Aborted, RadixError, TimedOut, assistant, function, gen, user
from radixlm.runtime import messages as m

SLOW_TOKENS = 3900  # so many that a local model is not done before the test is


@function
def free(s: Any, stop: str) -> None:
    s += user("Stream.") + assistant(gen("a", max_tokens=14, stop=stop))
    s += user("More.") + assistant(gen("b", max_tokens=4))


@function
def bound(s: Any) -> None:
    s += user("Stream.") + assistant(gen("a", choices=["sunshine", "thunderstorm"], max_tokens=20))


def test_a_stream_joined_is_the_whole_text(subject: Subject) -> None:
    def work(backend: Any) -> Any:
        whole = free.run("\x00never", backend=backend)["a"]
        stop = whole[len(whole) // 2]
        expected = free.run(stop, backend=backend)
        with free.run(stop, backend=backend, stream=True) as live:
            pieces = list(live.text_iter("a"))
            assert "".join(pieces) == live["a"] == expected["a"]
            assert "".join(live.text_iter("b")) == expected["b"]
            assert live.text() == expected.text()
        return expected["a"], expected["b"]

    subject.check(work)


def test_a_stream_comes_in_pieces(subject: Subject) -> None:
    with subject.running() as backend, free.run("\x00never", backend=backend, stream=True) as live:
        events = [event for event in live.event_iter() if event.name == "a" and event.text]
    # a server joins what piled up before it could be written
    assert len(events) > 1 or subject.name in ("http", "openai over http")


def test_a_constrained_stream_joined_is_the_whole_text(subject: Subject) -> None:
    def work(backend: Any) -> Any:
        expected = bound.run(backend=backend)["a"]
        with bound.run(backend=backend, stream=True) as live:
            assert "".join(live.text_iter("a")) == expected
            assert live["a"] == expected
        return expected

    subject.check(work)


def test_n_streams_joined_are_the_n_texts(subject: Subject) -> None:
    def work(backend: Any) -> Any:
        texts: dict[int, str] = {}

        def grew(delta: m.Delta) -> None:
            texts[delta.index] = texts.get(delta.index, "") + delta.text

        message = _message(backend, "Three.", max_tokens=6, n=3)
        finished = backend.generate(message, grew).result(30)
        outputs = [output.text for output in finished.outputs]
        assert [texts.get(index, "") for index in range(3)] == outputs
        return outputs

    subject.check(work)


def test_a_request_on_a_branch_that_is_not_open_fails(subject: Subject) -> None:
    with subject.running() as backend:
        future = _asked(lambda: backend.generate(m.Generate(backend.new_id("x"), "nobody")))
        assert isinstance(future.exception(30), RadixError)


def test_what_follows_a_failure_on_its_branch_fails_and_other_branches_do_not(
    subject: Subject,
) -> None:
    if subject.name in ("scripted", "replay"):
        pytest.skip("its failures are scripted")
    with subject.running() as backend:
        bad, good = backend.new_id("branch"), backend.new_id("branch")
        for branch in (bad, good):
            backend.send(m.OpenBranch(branch))
            backend.send(m.Append(branch, (m.RoleBegin("user"), m.Text("Hm?"), m.RoleEnd("user"), m.RoleBegin("assistant"))))  # fmt: skip
        forked = backend.new_id("branch")
        refused = m.Generate(
            backend.new_id("x"), bad, sampling=m.SamplingParams(max_tokens=3, prompt_logprobs=200)
        )
        first = _asked(lambda: backend.generate(refused))
        second = _asked(lambda: backend.generate(_on(backend, bad)))
        backend.send(m.Fork(bad, (forked,)))
        third = _asked(lambda: backend.generate(_on(backend, forked)))
        fourth = backend.generate(_on(backend, good))
        assert isinstance(first.exception(30), RadixError)
        assert isinstance(second.exception(30), RadixError)
        assert isinstance(third.exception(30), RadixError)
        assert fourth.result(30).outputs[0].text
        for branch in (bad, good, forked):
            backend.send(m.CloseBranch(branch))


def test_an_abort_ends_a_request_with_aborted(subject: Subject) -> None:
    if subject.name == "replay":
        pytest.skip("what was aborted is not recorded")
    with subject.running() as backend, subject.slow(backend):
        message = _message(backend, "SLOW", max_tokens=SLOW_TOKENS)
        future = backend.generate(message, lambda delta: None)
        backend.send(m.Abort(message.request))
        assert isinstance(future.exception(30), Aborted)
        backend.send(m.Abort(message.request))  # it has ended: no error


def test_a_run_that_takes_too_long_ends_in_time_and_leaves_nothing(subject: Subject) -> None:
    if subject.name == "replay":
        pytest.skip("a replay does not wait")

    @function
    def slow(s: Any) -> None:
        s += user("SLOW") + assistant(gen("a", max_tokens=SLOW_TOKENS))

    limit_s = 0.001 if subject.name in ON_THE_MODEL else 0.05  # the model may have little to say
    with subject.running() as backend, subject.slow(backend), pytest.raises(TimedOut):
        slow.run(backend=backend, timeout_s=limit_s)


def test_a_cancelled_future_ends_its_request(subject: Subject) -> None:
    if subject.name in ("replay", "recording", "scripted", "in-process"):
        pytest.skip("its futures are not cancelled")
    with subject.running() as backend:
        future = backend.generate(_message(backend, "SLOW", max_tokens=SLOW_TOKENS))
        assert future.cancel()
        assert (
            backend.generate(_message(backend, "Quick.", max_tokens=3)).result(30).outputs[0].text
        )


def _message(backend: Any, text: str, **sampling: Any) -> m.Generate:
    segments = (m.RoleBegin("user"), m.Text(text), m.RoleEnd("user"), m.RoleBegin("assistant"))
    return m.Generate(
        backend.new_id("x"), None, segments, m.SamplingParams(**sampling), stream=True
    )


def _on(backend: Any, branch: str) -> m.Generate:
    return m.Generate(backend.new_id("x"), branch, sampling=m.SamplingParams(max_tokens=3))


def _asked(ask: Any) -> Future[Any]:
    """What a request gives; one that is refused at once counts as one that failed."""
    try:
        return ask()
    except RadixError as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed
