from __future__ import annotations

import threading

import pytest
from lagging_backend import lagging
from pydantic import BaseModel, Field

from radixlm import (
    EngineDied,
    OutputError,
    ProgramError,
    RadixError,
    ScriptedBackend,
    State,
    UnknownVariable,
    assistant,
    function,
    gen,
    select,
    user,
    user_begin,
    user_end,
)


def test_appending_never_waits_and_reading_waits_for_what_is_read() -> None:
    backend = ScriptedBackend({"a": "1", "b": "2"})
    backend.pause()

    @function
    def f(s: State) -> str:
        s += "x" + gen("a") + "y" + gen("b")
        fork = s.fork(2)
        fork += "z" + select("c", ["p", "q"]) + gen("d")
        assert backend.num_waiting == 1
        threading.Timer(0.05, backend.resume).start()
        return s["a"]

    backend._answers |= {"c": "q", "d": "4"}  # type: ignore[reportPrivateUsage]
    assert f.run(backend=backend).ret_value == "1"


def test_text_holds_constants_and_results_in_order() -> None:
    @function
    def f(s: State) -> None:
        s += "a"
        s += gen("x") + "b" + select("y", ["Q", "R"]) + "c"
        assert s.text() == "aXbRc"

    assert f.run(backend=ScriptedBackend({"x": "X", "y": "R"})).text() == "aXbRc"


def test_a_name_used_twice_holds_the_latest_result() -> None:
    @function
    def f(s: State) -> list[str]:
        seen: list[str] = []
        for _ in range(3):
            s += gen("x")
            seen.append(s["x"])
        return seen

    st = f.run(backend=ScriptedBackend({"x": ["1", "2", "3"]}))
    assert st.ret_value == ["1", "2", "3"]
    assert st["x"] == "3"


def test_gens_without_a_name_are_numbered_on_their_branch() -> None:
    @function
    def f(s: State) -> None:
        s += gen() + gen("named") + gen() + select(choices=["p", "q"])

    st = f.run(backend=ScriptedBackend({"gen_0": "a", "named": "b", "gen_2": "c", "select_3": "q"}))
    assert dict(st) == {"gen_0": "a", "named": "b", "gen_2": "c", "select_3": "q"}


def test_variables_can_be_set_and_asked_for() -> None:
    @function
    def f(s: State) -> None:
        s["note"] = 7
        assert "note" in s
        assert "other" not in s

    st = f.run(backend=ScriptedBackend())
    assert st["note"] == 7
    with pytest.raises(ProgramError, match="no gen or select"):
        st.get_meta("note")


def test_a_var_scope_is_the_text_appended_inside() -> None:
    @function
    def f(s: State) -> None:
        s += "a"
        with s.var_scope("inner"):
            s += "b" + gen("x")
            assert s["inner"] == "bX"
            child = s.copy()
            s += "c"
        s += "d"
        child += "e"
        assert child["inner"] == "bX"

    st = f.run(backend=ScriptedBackend({"x": "X"}))
    assert st["inner"] == "bXc"
    assert st.text() == "abXcd"


def test_roles_as_blocks_functions_and_marks_read_the_same() -> None:
    @function
    def blocks(s: State) -> None:
        with s.system():
            s += "be brief"
        with s.user():
            s += "hi"
        with s.assistant():
            s += gen("x")

    @function
    def calls(s: State) -> None:
        s.system("be brief")
        s += user_begin() + "hi" + user_end()
        s.assistant(gen("x"))

    runs = [p.run(backend=ScriptedBackend({"x": "yo"})) for p in (blocks, calls)]
    for st in runs:
        assert st.messages() == [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "yo"},
        ]


def test_roles_do_not_nest_and_end_what_began() -> None:
    @function
    def nested(s: State) -> None:
        with s.user():
            s += user("x")

    @function
    def unmatched(s: State) -> None:
        s += user_end()

    for program, complaint in ((nested, "inside the open role"), (unmatched, "no role is open")):
        with pytest.raises(ProgramError, match=complaint):
            program.run(backend=ScriptedBackend())


@pytest.mark.parametrize("value", [None, 7, 1.5, b"x", ["a"], {"a": 1}])
def test_only_text_and_nodes_can_be_appended(value: object) -> None:
    @function
    def f(s: State) -> None:
        s += value  # type: ignore[reportOperatorIssue]

    with pytest.raises(ProgramError, match="cannot append"):
        f.run(backend=ScriptedBackend())


def test_a_gen_inside_an_f_string_is_refused() -> None:
    with pytest.raises(ProgramError, match="cannot be formatted"):
        f"answer: {gen('x')}"


def test_a_finished_state_is_readable_and_takes_nothing_more() -> None:
    @function
    def f(s: State) -> None:
        s += "a" + gen("x")

    st = f.run(backend=ScriptedBackend({"x": "X"}))
    with pytest.raises(ProgramError, match="has ended"):
        st += "more"
    assert st.text() == "aX"


def test_meta_data_tells_how_a_gen_ended_and_what_it_cost() -> None:
    @function
    def f(s: State) -> None:
        s += "one two three" + gen("x")

    meta = f.run(backend=ScriptedBackend({"x": "four five"})).get_meta("x")
    assert meta.finish_reason == "stop"
    assert (meta.usage.prompt_tokens, meta.usage.completion_tokens) == (3, 2)
    assert len(meta.token_ids) == 2
    assert len(meta.outputs) == 1


def test_a_failure_carries_the_line_and_the_text_so_far() -> None:
    @function
    def f(s: State) -> None:
        s += "The prompt. " + gen("ok")
        s += " then " + gen("bad")  # the line of the note
        s += gen("after")

    with lagging({"ok": "fine", "bad": EngineDied("it ended"), "after": "x"}) as backend:
        with pytest.raises(EngineDied) as caught:
            f.run(backend=backend)
        names = [request.name for request in backend.requests]
    notes = "\n".join(caught.value.__notes__)
    line = f.__wrapped__.__code__.co_firstlineno + 3
    assert f"running 'bad' at {__file__}:{line} in f()" in notes
    assert "The prompt. fine then " in notes
    assert "after" not in names, "what follows a failure is not answered"


def test_what_follows_a_failure_raises_the_same_error() -> None:
    @function
    def f(s: State) -> None:
        s += gen("bad")
        s += gen("after") + select("choice", ["a", "b"])
        child = s.fork(1)[0]
        child += gen("deep")
        for state, name in ((s, "after"), (s, "choice"), (child, "deep"), (s, "bad")):
            with pytest.raises(EngineDied, match="it ended"):
                _ = state[name]
        with pytest.raises(EngineDied):
            s.text()
        assert isinstance(s.error(), EngineDied)

    with lagging({"bad": EngineDied("it ended")}, default="x") as backend:
        f.run(backend=backend)
        assert [request.name for request in backend.requests] == ["bad"]


def test_a_failure_that_the_program_handled_is_not_raised_again() -> None:
    @function
    def f(s: State) -> str:
        attempt = s.copy()
        attempt += gen("bad")
        try:
            return attempt["bad"]
        except EngineDied:
            s += gen("good")
            return s["good"]

    backend = ScriptedBackend({"bad": EngineDied("it ended"), "good": "yes"})
    assert f.run(backend=backend).ret_value == "yes"


def test_one_exception_object_for_many_requests_gets_each_its_own_notes() -> None:
    shared = EngineDied("it ended")

    @function
    def f(s: State) -> None:
        errors: list[BaseException] = []
        for x in s.fork(2):
            x += gen("v")
            with pytest.raises(EngineDied) as caught:
                _ = x["v"]
            errors.append(caught.value)
        assert errors[0] is not errors[1]
        assert all(len(error.__notes__) == 2 for error in errors)

    f.run(backend=ScriptedBackend({"v": lambda request: shared}, default=""))
    assert not hasattr(shared, "__notes__")


def test_unknown_variables_name_the_known_ones() -> None:
    @function
    def f(s: State) -> None:
        with pytest.raises(UnknownVariable, match="No variable is set yet"):
            _ = s["x"]
        s["alpha"] = 1
        with pytest.raises(UnknownVariable, match="Known: alpha"):
            _ = s["x"]

    f.run(backend=ScriptedBackend())


def test_an_exception_in_a_block_closes_its_role_and_its_span() -> None:
    @function
    def f(s: State) -> None:
        try:
            with s.var_scope("part"), s.user():
                s += "a"
                raise ValueError("mine")
        except ValueError:
            pass
        s += "b"
        with s.assistant():
            s += "c"

    st = f.run(backend=ScriptedBackend())
    assert st["part"] == "a"
    assert [each["role"] for each in st.messages()] == ["user", "assistant"]


class Adult(BaseModel):
    """A person of at least 18."""

    age: int = Field(ge=18)


@pytest.mark.parametrize("end", ["unjoined", "concat"])
def test_the_error_of_a_run_is_known_from_forks_that_nobody_read(end: str) -> None:
    @function
    def f(s: State) -> None:
        s += "a"
        group = s.fork(2)
        group += gen("person", schema=Adult)
        if end == "concat":
            group.join("concat")

    backend = ScriptedBackend({"person": ['{"age": 40}', '{"age": 4}']})
    error = f.run(backend=backend).error()
    assert isinstance(error, OutputError)
    assert error.place == "/age"


def test_the_error_of_a_fork_that_failed_is_known_before_the_run_ends() -> None:
    seen: list[BaseException | None] = []

    @function
    def f(s: State) -> None:
        s += "a"
        child = s.copy()
        child += gen("x")
        seen.append(s.error())
        seen.append(s.error())  # told once: from then on the program knows

    f.run(backend=ScriptedBackend({"x": EngineDied("it ended")}))
    assert isinstance(seen[0], EngineDied)
    assert seen[1] is None


def test_a_message_whose_content_is_refused_is_closed() -> None:
    @function
    def f(s: State) -> None:
        for wrong in (user("x" + gen("x", temperature=-5)), user(assistant("x"))):
            with pytest.raises(RadixError):
                s += wrong
        s += user("again")

    state = f.run(backend=ScriptedBackend())
    assert state.messages()[-1] == {"role": "user", "content": "again"}


def test_a_run_tells_its_steps_and_its_time_which_stands_still_when_it_is_over() -> None:
    import time

    @function
    def f(s: State) -> tuple[float, int]:
        s += "x" + gen("a", regex="[a-z]+ [0-9]")
        assert s["a"]
        return s.time_s, s.usage().steps

    began_s = time.monotonic()
    state = f.run(backend=ScriptedBackend({"a": "word 1"}))
    within_s, steps = state.ret_value
    usage = state.usage()
    assert steps == usage.steps == usage.completion_tokens - usage.forced_tokens > 0
    assert 0 < within_s <= state.time_s <= time.monotonic() - began_s
    assert state.time_s == state.time_s


def test_a_state_is_no_operand_of_plus() -> None:
    @function
    def f(s: State) -> None:
        s = s + "x"

    with pytest.raises(ProgramError, match="appended to in place") as raised:
        f.run(backend=ScriptedBackend())
    assert raised.value.hint == "Write s += ..."
