from __future__ import annotations

import pytest
from lagging_backend import lagging

from radixlm import (
    EngineDied,
    OutputError,
    ProgramError,
    ScriptedBackend,
    State,
    function,
    gen,
    user,
    user_begin,
)
from radixlm.lang.testing import Answer
from radixlm.runtime.messages import CloseBranch, Fork


def test_a_group_is_iterated_indexed_and_appended_to() -> None:
    @function
    def f(s: State) -> list[str]:
        fs = s.fork(3)
        assert len(fs) == 3
        fs += "same "
        fs += ["a", "b", "c"]
        fs += lambda index: f" {index}"
        fs[1] += "!"
        return [x.text() for x in fs]

    st = f.run(backend=ScriptedBackend())
    assert st.ret_value == ["same a 0", "same b 1!", "same c 2"]
    assert st.text() == ""


def test_join_gathers_what_the_children_set_into_lists() -> None:
    @function
    def f(s: State) -> None:
        s += gen("before")
        fs = s.fork(3)
        for i, x in enumerate(fs):
            x += gen("v")
            if i != 1:
                x["odd"] = i
        fs.join()

    st = f.run(backend=ScriptedBackend({"before": "b", "v": ["x", "y", "z"]}))
    assert dict(st) == {"before": "b", "v": ["x", "y", "z"], "odd": [0, 2]}


def test_join_concat_appends_what_each_child_added() -> None:
    @function
    def f(s: State) -> None:
        s += "head."
        fs = s.fork(2)
        for i, x in enumerate(fs):
            x += user(f"q{i} ") + " a:" + gen("v")
        fs.join("concat")
        s += " tail"

    backend = ScriptedBackend({"v": ["x", "y"]})
    st = f.run(backend=backend)
    assert st.text() == "head.q0  a:xq1  a:y tail"
    assert "v" not in st
    assert [m["content"] for m in st.messages()] == ["q0 ", "q1 "]


def test_joined_children_are_closed_and_stay_readable() -> None:
    @function
    def f(s: State) -> None:
        s += "x"
        fs = s.fork(2)
        fs += gen("v")
        fs.join()
        assert fs[0]["v"] == "1"
        with pytest.raises(ProgramError, match="has ended"):
            fs += "more"

    backend = ScriptedBackend({"v": ["1", "2"]})
    f.run(backend=backend)
    assert not backend.open_branches
    assert sum(isinstance(m, CloseBranch) for m in backend.sent) == 3


@pytest.mark.parametrize("mode", ["gather", "concat"])
def test_a_failed_child_raises_at_join_with_its_index(mode: str) -> None:
    @function
    def f(s: State) -> None:
        fs = s.fork(4)
        fs += gen("v")
        fs.join(mode)

    answers = ["ok", EngineDied("it ended"), "ok", EngineDied("it ended too")]
    with (
        lagging({"v": answers}) as backend,
        pytest.raises(EngineDied, match=r"^it ended\n") as caught,
    ):
        f.run(backend=backend)
    notes = "\n".join(caught.value.__notes__)
    assert "child 1 of fork(4)" in notes
    assert "children 3 failed too" in notes
    assert __file__ in notes


def test_a_child_whose_typed_value_was_cut_fails_the_join() -> None:
    @function
    def f(s: State) -> None:
        fs = s.fork(2)
        fs += gen("v", schema=list[int])
        fs.join()

    with pytest.raises(OutputError, match="cut by max_tokens") as caught:
        f.run(backend=ScriptedBackend({"v": ["[1]", Answer("[2,", "length")]}))
    assert any("child 1 of fork(2)" in note for note in caught.value.__notes__)


def test_a_fork_is_one_message_however_many_children() -> None:
    @function
    def f(s: State) -> None:
        s += "shared"
        fs = s.fork(50)
        fs += gen("v")

    backend = ScriptedBackend(default="x")
    f.run(backend=backend)
    forks = [m for m in backend.sent if isinstance(m, Fork)]
    assert [len(m.children) for m in forks] == [50]


def test_forks_nest_and_read_through_to_the_root() -> None:
    @function
    def f(s: State) -> list[str]:
        s += "r" + gen("v")
        leaves: list[State] = []
        for i, x in enumerate(s.fork(2)):
            x += f".{i}" + gen("v")
            for j, y in enumerate(x.fork(2)):
                y += f".{j}" + gen("v")
                leaves.append(y)
        s += "-"
        return [y.text() for y in leaves]

    with lagging(default="g") as backend:
        st = f.run(backend=backend)
    assert st.ret_value == ["rg.0g.0g", "rg.0g.1g", "rg.1g.0g", "rg.1g.1g"]
    assert st.text() == "rg-"


@pytest.mark.parametrize("bad", [0, -1, 1.5, None])
def test_a_fork_has_at_least_one_child(bad: object) -> None:
    @function
    def f(s: State) -> None:
        s.fork(bad)  # type: ignore[reportArgumentType]

    with pytest.raises(ProgramError, match="at least 1 child"):
        f.run(backend=ScriptedBackend())


def test_wrong_uses_of_a_group_are_refused() -> None:
    @function
    def f(s: State) -> None:
        fs = s.fork(2)
        with pytest.raises(ProgramError, match="3 items for 2 children"):
            fs += ["a", "b", "c"]
        with pytest.raises(ProgramError, match="cannot be replaced"):
            fs[0] = s
        with pytest.raises(ProgramError, match="unknown join mode"):
            fs.join("zip")

    f.run(backend=ScriptedBackend())


def test_a_concat_whose_roles_do_not_fit_appends_nothing() -> None:
    @function
    def f(s: State) -> None:
        fs = s.fork(2)
        fs[0] += "first" + user_begin()
        fs[1] += user("q")
        with pytest.raises(ProgramError) as caught:
            fs.join("concat")
        assert any("child 1 of fork(2)" in note for note in caught.value.__notes__)

    assert f.run(backend=ScriptedBackend()).text() == ""
