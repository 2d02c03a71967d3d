"""What a program sends: as few messages as possible, in an order that any backend can carry out."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lagging_backend import lagging
from manual_backend import ManualBackend

from radixlm import (
    Aborted,
    EngineDied,
    Overloaded,
    ProgramError,
    PromptError,
    ScriptedBackend,
    ServiceError,
    State,
    assistant,
    function,
    gen,
    select,
    user,
)
from radixlm.runtime.messages import (
    Append,
    CloseBranch,
    Fork,
    Generate,
    Ids,
    OpenBranch,
    RoleBegin,
    RoleEnd,
    Score,
    Text,
)


def test_constants_gather_into_one_append_before_each_gen() -> None:
    @function
    def f(s: State) -> None:
        s += "a"
        s += "b"
        s += user("c") + assistant("d" + gen("x"))
        s += "never sent"

    backend = ScriptedBackend(default="x")
    f.run(backend=backend)
    kinds = [type(message) for message in backend.sent]
    assert kinds == [OpenBranch, Append, Generate, CloseBranch]
    assert backend.sent[1].segments == (
        Text("a"),
        Text("b"),
        RoleBegin("user"),
        Text("c"),
        RoleEnd("user"),
        RoleBegin("assistant"),
        Text("d"),
    )


def test_a_program_of_text_alone_sends_nothing() -> None:
    @function
    def f(s: State) -> None:
        s += "a" + user("b")

    backend = ScriptedBackend()
    assert f.run(backend=backend).text() == "ab"
    assert backend.sent == []


def test_a_choice_is_appended_as_constant_text_with_what_follows() -> None:
    @function
    def f(s: State) -> None:
        s += "pick " + select("a", ["x", "y"]) + " then" + gen("b")

    backend = ScriptedBackend({"a": "y"}, default="z")
    f.run(backend=backend)
    kinds = [type(message) for message in backend.sent]
    assert kinds == [OpenBranch, Append, Score, Append, Generate, CloseBranch]
    assert backend.sent[3].segments == (Text("y"), Text(" then"))
    assert backend.requests[1].prompt == "pick y then"


def test_unconditional_scores_are_asked_beside_on_no_branch() -> None:
    @function
    def f(s: State) -> None:
        s += "pick " + select("a", ["x", "y"], choices_method="unconditional_likelihood_normalized")

    backend = ScriptedBackend({"a": {"x": -2.0, "y": -0.5}})
    state = f.run(backend=backend)
    scores = [message for message in backend.sent if isinstance(message, Score)]
    assert [message.branch for message in scores] == ["branch#1", None]
    assert state.get_meta("a").scores == pytest.approx({"x": -1.0, "y": 0.5})


def test_a_program_that_begins_with_a_gen_starts_from_one_end_of_text_token() -> None:
    @function
    def f(s: State) -> None:
        early = s.copy()
        s += gen("x") + gen("y")
        late = s.copy()
        early += gen("x")
        late += gen("y")

    backend = ScriptedBackend(default="z")
    f.run(backend=backend)
    appends = [message for message in backend.sent if isinstance(message, Append)]
    assert [(message.branch, message.segments) for message in appends] == [
        ("branch#1", (Ids((0,)),)),
        ("branch#2", (Ids((0,)),)),
    ]


def test_namespace_and_strict_text_travel_with_the_branch() -> None:
    @function
    def f(s: State) -> None:
        s += "a" + gen("x")

    backend = ScriptedBackend(default="x")
    f.run(backend=backend, namespace="tenant", strict_text=True)
    assert backend.sent[0] == OpenBranch("branch#1", "tenant", True)


def test_work_behind_a_select_is_sent_when_its_answer_comes_and_keeps_its_order() -> None:
    @function
    def f(s: State) -> None:
        for i in range(300):  # deep enough to overflow a stack that recursed
            s += f" {i}" + select("a", ["x", "y"])
        children = s.fork(2)
        children += gen("b")
        children.join()

    backend = ScriptedBackend({"a": "x"}, default="z")
    with lagging({"a": "x"}, default="z") as slow:
        text = f.run(backend=slow).text()
    assert text == f.run(backend=backend).text() == "".join(f" {i}x" for i in range(300))
    assert [r.prompt for r in slow.requests] == [r.prompt for r in backend.requests]


def test_a_backend_that_refuses_messages_fails_the_gen_that_needed_them() -> None:
    class Gone(ScriptedBackend):
        def send(self, message: Any) -> None:
            raise EngineDied("the engine is gone")

    @function
    def f(s: State) -> None:
        s += "a"
        fs = s.fork(2)
        fs += gen("x")
        fs.join()

    with pytest.raises(EngineDied, match="gone") as caught:
        f.run(backend=Gone())
    assert any("running 'x'" in note for note in caught.value.__notes__)


def test_a_cancelled_future_reads_as_aborted() -> None:
    class Cancelling(ScriptedBackend):
        def generate(self, message: Any, on_delta: Any = None) -> Any:
            future = super().generate(message)
            future.cancel()
            return future

    @function
    def f(s: State) -> None:
        s += gen("x")

    backend = Cancelling(default="x")
    backend.pause()
    with pytest.raises(Aborted, match="cancelled"):
        f.run(backend=backend)


def test_an_answer_without_outputs_is_an_error_not_a_hang() -> None:
    class Empty(ScriptedBackend):
        def _finished(self, *args: Any) -> Any:
            reply = super()._finished(*args)
            return type(reply)(reply.request, (), reply.usage)

    @function
    def f(s: State) -> None:
        s += gen("x")

    with pytest.raises(IndexError):
        f.run(backend=Empty(default="x"), timeout_s=5)


# A random program: text, gens, selects, forks and reads, on any of the branches that exist.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["text", "gen", "select", "fork", "read", "copy", "join"]),
        st.integers(0, 9),
    ),
    max_size=25,
)


def play(steps: list[tuple[str, int]], s: State) -> list[str]:
    states, groups = [s], []
    for kind, pick in steps:
        state = states[pick % len(states)]
        if kind == "text":
            state += f" t{pick}"
        elif kind == "gen":
            state += gen(f"g{pick}", max_tokens=pick + 1)
        elif kind == "select":
            state += select(f"c{pick}", ["x", "y", "z"])
        elif kind == "fork" and len(states) < 12:
            groups.append(state.fork(1 + pick % 3))
            states.extend(groups[-1])
        elif kind == "copy":
            states.append(state.copy())
        elif kind == "join" and groups:
            group = groups.pop(pick % len(groups))
            group.join("concat" if pick % 2 else "gather")
            states = [x for x in states if x not in list(group)]
        elif kind == "read" and state.keys():
            _ = state[state.keys()[-1]]
    return [x.text() for x in states]


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_answers_that_lag_change_nothing(steps: list[tuple[str, int]]) -> None:
    program = function(lambda s: play(steps, s))  # type: ignore[reportUnknownLambdaType]
    script: dict[str, Any] = {
        "by_prompt": {
            ".*": lambda request: (
                request.choices[len(request.prompt) % 3] if request.choices else "w"
            )
        },
        "default": "w",
    }
    at_once = ScriptedBackend(**script)
    expected = program.run(backend=at_once).ret_value
    with lagging(**script, delay_s=0.0002) as late:
        assert program.run(backend=late).ret_value == expected
        assert not late.open_branches
    assert not at_once.open_branches
    assert sorted(r.prompt for r in late.requests) == sorted(r.prompt for r in at_once.requests)
    assert_orderly(late.sent)


def assert_orderly(sent: list[Any]) -> None:
    """Every branch is opened once, by OpenBranch or Fork, before anything else is said of it, and closed at most once."""
    known: set[str] = set()
    closed: set[str] = set()
    for message in sent:
        if isinstance(message, OpenBranch):
            assert message.branch not in known
            known.add(message.branch)
        elif getattr(message, "branch", None) is not None:
            assert message.branch in known
            assert message.branch not in closed
            if isinstance(message, Fork):
                assert not known & set(message.children)
                known |= set(message.children)
            if isinstance(message, CloseBranch):
                closed.add(message.branch)
    assert known == closed


def test_answers_that_come_at_once_behind_a_late_one_do_not_recurse() -> None:
    backend = ManualBackend(answers_later_scores_at_once=True)

    @function
    def f(s: State) -> None:
        for _ in range(2000):
            s += select("a", ["x", "y"])
        backend.choose(next(iter(backend.futures)))

    assert f.run(backend=backend, timeout_s=20).text() == "x" * 2000


@pytest.mark.parametrize("later", ["finishes", "fails otherwise"])
def test_a_result_behind_a_failure_counts_as_failed_whatever_the_backend_says(later: str) -> None:
    backend = ManualBackend()

    @function
    def f(s: State) -> None:
        s += "a" + gen("first") + gen("second")
        first, second = backend.futures
        backend.futures[first].set_exception(EngineDied("it ended"))
        if later == "finishes":
            backend.finish(second, "nonsense")
        else:
            backend.futures[second].set_exception(ProgramError("no such branch"))
        with pytest.raises(EngineDied, match="it ended"):
            _ = s["second"]

    f.run(backend=backend)


def test_without_an_end_token_the_choices_alone_follow_a_line_break() -> None:
    backend = ManualBackend()

    @function
    def f(s: State) -> None:
        s += select("a", ["x", "y"], choices_method="unconditional_likelihood_normalized")
        for request in list(backend.futures):
            backend.choose(request)

    assert f.run(backend=backend)["a"] == "x"


def test_a_lone_surrogate_is_refused_on_the_line_that_appends_it() -> None:
    @function
    def f(s: State) -> None:
        s += "a\ud800"

    with pytest.raises(PromptError, match="character 1 of the text") as caught:
        f.run(backend=ScriptedBackend())
    assert "test_branch.py" in caught.value.place


def test_whatever_sending_raises_behind_a_select_settles_what_waits() -> None:
    class Odd(ScriptedBackend):
        def generate(self, message: Any, on_delta: Any = None) -> Any:
            raise ValueError("cannot encode")

    @function
    def f(s: State) -> None:
        s += "a" + select("c", ["p", "q"]) + gen("x") + gen("y")

    backend = Odd({"c": "p"})
    backend.pause()
    threading.Timer(0.05, backend.resume).start()
    with pytest.raises(ServiceError, match="cannot encode") as caught:
        f.run(backend=backend, timeout_s=20)
    assert isinstance(caught.value.__cause__, ValueError)


def test_children_and_grandchildren_of_a_fork_that_was_refused_fail_with_its_error() -> None:
    class NoForks(ScriptedBackend):
        def send(self, message: Any) -> None:
            if isinstance(message, Fork):
                raise Overloaded("no more branches")
            super().send(message)

    @function
    def f(s: State) -> None:
        s += "a" + gen("x")
        child = s.fork(2)[0]
        child += gen("y")
        with pytest.raises(Overloaded, match="no more branches"):
            _ = child["y"]
        grandchild = s.fork(1)[0].copy()
        grandchild += gen("z")
        with pytest.raises(Overloaded, match="no more branches"):
            _ = grandchild["z"]

    backend = NoForks(default="t")
    f.run(backend=backend)
    assert len(backend.requests) == 1


def test_a_gen_that_waits_behind_a_select_knows_of_the_fork_behind_it() -> None:
    @function
    def f(s: State) -> None:
        s += select("c", ["x", "y"])
        s += gen("a")
        fs = s.fork(5)
        fs += gen("b")

    backend = ScriptedBackend({"c": "x", "a": "1", "b": "2"})
    with backend.paused():
        call = f.run(backend=backend, stream=True)
    call.finish()
    hints = [m.hints.num_forks for m in backend.sent if isinstance(m, Generate)]
    assert hints == [5, 0, 0, 0, 0, 0]
