"""How a watched program ends: errors raise where the reader looks, and nothing stays open when nobody watches any more."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from lagging_backend import lagging
from live_programs import pick

from radixlm import (
    Aborted,
    EngineDied,
    ProgramError,
    ScriptedBackend,
    State,
    TimedOut,
    function,
    gen,
)
from radixlm.lang.live_state import LiveState
from radixlm.lang.testing import Answer
from radixlm.runtime.messages import Abort


def test_d007_an_exception_of_the_body_raises_in_the_iterator() -> None:
    boom = KeyError("boom")

    @function
    def early(s: State) -> None:
        s += gen("a")
        raise boom

    @function
    def late(s: State) -> None:
        s += gen("a")
        _ = s["a"]
        raise boom

    for program in (early, late):
        for name in ("a", "never", None):
            with lagging({"a": "x y"}, by_word=True) as backend:
                s = program.run(stream=True, backend=backend)
                with pytest.raises(KeyError) as caught:
                    list(s.text_iter(name))
                assert caught.value is boom
                assert s.error() is boom
                assert not backend.open_branches


@pytest.mark.parametrize("failure", [EngineDied("it ended"), ProgramError("no")])
def test_d007_a_backend_that_fails_in_the_middle_raises_after_the_text_it_gave(
    failure: Exception,
) -> None:
    @function
    def f(s: State) -> None:
        s += "Go: " + gen("a") + "," + gen("b") + "," + gen("c")

    script = {"a": "fine", "b": Answer("half of", failure=failure), "c": "never"}
    for name, expected in (("b", "half of"), ("c", ""), (None, "Go: fine,half of")):
        with lagging(script, by_word=True) as backend:
            s = f.run(stream=True, backend=backend)
            got: list[str] = []
            with pytest.raises(type(failure)) as caught:  # noqa: PT012
                for text in s.text_iter(name):
                    got.append(text)  # noqa: PERF402  kept when the error comes
            assert "".join(got) == expected
            assert any(__file__ in note for note in caught.value.__notes__)
            s.close()
            assert not backend.open_branches


def test_an_error_that_no_iterator_met_raises_when_the_block_is_left() -> None:
    @function
    def f(s: State) -> None:
        s += gen("a") + gen("b")

    with (
        lagging({"a": "x", "b": EngineDied("it ended")}) as backend,
        pytest.raises(EngineDied),
        f.run(stream=True, backend=backend) as s,
    ):
        for _ in s.event_iter():
            pass


def test_a_failure_that_the_reader_handled_is_not_raised_again() -> None:
    @function
    def f(s: State) -> None:
        s += gen("a")
        _ = s["a"]

    backend = ScriptedBackend({"a": EngineDied("it ended")})
    with f.run(stream=True, backend=backend) as s, pytest.raises(EngineDied):
        list(s.text_iter("a"))


def test_wrong_arguments_raise_at_the_call() -> None:
    with pytest.raises(ProgramError, match="stile"):
        pick.run(stream=True, backend=ScriptedBackend(), stile=1)


def test_a_timeout_raises_in_the_iterator_and_frees_everything() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()
    s = pick.run(stream=True, backend=backend, timeout_s=0.05)
    with pytest.raises(TimedOut, match="'type'"):
        list(s.text_iter("value"))
    assert not backend.open_branches
    assert sum(isinstance(m, Abort) for m in backend.sent) == 1


# ---------------------------------------------------------------------------------------------- the end


def test_leaving_the_block_aborts_what_is_open() -> None:
    ended: list[str] = []

    @function
    def f(s: State) -> None:
        try:
            s += gen("a") + gen("b")
            _ = s["b"]
        finally:
            ended.append("the body's own cleaning up")

    backend = ScriptedBackend({"a": "x y z", "b": "w"})
    backend.pause()
    with f.run(stream=True, backend=backend) as s:
        backend.trickle()
        assert next(s.text_iter("a")) == "x"
    assert not backend.open_branches
    assert sum(isinstance(m, Abort) for m in backend.sent) == 2
    assert ended
    assert isinstance(s.error(), Aborted)
    with pytest.raises(Aborted, match="left before its end"):
        list(s.text_iter("b"))
    backend.resume()


def test_a_live_run_that_is_dropped_is_aborted() -> None:
    backend = ScriptedBackend(default="x")
    backend.pause()
    pick.run(stream=True, backend=backend)
    gc.collect()
    assert not backend.open_branches
    assert backend.num_waiting == 0


def test_a_body_that_refuses_to_end_is_ended() -> None:
    @function
    def stubborn(s: State) -> None:
        s += gen("a")
        try:
            _ = s["a"]
        except BaseException:  # noqa: BLE001  what a user might write
            _ = s["a"]
        s += gen("b")
        _ = s["b"]

    backend = ScriptedBackend(default="x")
    backend.pause()
    with stubborn.run(stream=True, backend=backend):
        pass
    assert not backend.open_branches


def test_a_live_state_is_for_reading() -> None:
    s: Any = pick.run(stream=True, backend=ScriptedBackend({"type": "apple", "value": "x"}))
    assert isinstance(s, LiveState)
    with pytest.raises(TypeError):
        s += "more"
    assert s.messages() == [
        {"role": "user", "content": "Pick: "},
        {"role": "assistant", "content": "apple"},
    ]


def test_it_goes_on_in_its_own_thread_only_and_says_so() -> None:
    errors: list[BaseException] = []
    backend = ScriptedBackend({"type": "apple", "value": "x"})
    backend.pause()
    s = pick.run(stream=True, backend=backend)
    backend.resume()

    def read() -> None:
        try:
            list(s.text_iter("value"))
        except ProgramError as error:
            errors.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert "text_async_iter" in str(errors[0])
    assert list(s.text_iter("value")) == ["x"]


def test_no_thread_is_made_and_bodies_of_a_batch_may_stream() -> None:
    before = threading.active_count()

    @function
    def outer(s: State) -> str:
        with pick.run(stream=True, backend=backend) as inner:
            text = "".join(inner.text_iter("value"))
        assert threading.active_count() == before + 1, "the backend's own"
        return text

    with lagging({"type": "apple", "value": "a b c"}, by_word=True) as backend:
        states = outer.run_batch([{}] * 5, backend=backend)
        assert not backend.open_branches
    assert [st.ret_value for st in states] == ["a b c"] * 5
