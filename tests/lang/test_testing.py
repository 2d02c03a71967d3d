"""The scripted backend keeps the promises a runtime makes of branches."""

from __future__ import annotations

import pytest

from radixlm import (
    Aborted,
    EngineDied,
    ProgramError,
    ScriptedBackend,
    State,
    function,
    gen,
    select,
    user,
)
from radixlm.lang.backend import Backend, as_backend
from radixlm.lang.testing import Answer, Request
from radixlm.runtime.messages import (
    Abort,
    Append,
    CloseBranch,
    Delta,
    Fork,
    Generate,
    OpenBranch,
    Text,
)


@function
def two(s: State) -> None:
    s += user("first?") + gen("a") + user("second?") + gen("b")


def test_it_is_a_backend() -> None:
    backend = ScriptedBackend()
    assert isinstance(backend, Backend)
    assert as_backend(backend) is backend


def test_answers_by_name_by_prompt_and_by_default() -> None:
    backend = ScriptedBackend({"a": "named"}, by_prompt={"second": "matched"}, default="default")
    assert dict(two.run(backend=backend)) == {"a": "named", "b": "matched"}
    assert dict(two.run(backend=ScriptedBackend(default="d"))) == {"a": "d", "b": "d"}


def test_lists_are_used_in_order_and_run_out_loudly() -> None:
    backend = ScriptedBackend(default=["1", "2", "3"])
    assert dict(two.run(backend=backend)) == {"a": "1", "b": "2"}
    with pytest.raises(ProgramError, match="are used"):
        two.run(backend=backend)


def test_a_callable_sees_the_request() -> None:
    def reply(request: Request) -> str:
        return f"{request.name}@{len(request.prompt)}"

    backend = ScriptedBackend(default=reply)
    st = two.run(backend=backend)
    assert st["a"] == f"a@{len(backend.requests[0].prompt)}"
    assert backend.requests[0].prompt == "<|im_start|>user\nfirst?<|im_end|>\n"


def test_no_script_and_broken_constraints_fail_with_the_name() -> None:
    @function
    def f(s: State) -> None:
        s += gen("d", regex="[0-9]+")

    with pytest.raises(ProgramError, match="no scripted answer for 'd'"):
        f.run(backend=ScriptedBackend())
    with pytest.raises(ProgramError, match="breaks"):
        f.run(backend=ScriptedBackend({"d": "x"}))
    assert f.run(backend=ScriptedBackend({"d": Answer("", "length")}))["d"] == ""


def test_a_select_is_scripted_by_its_winner_or_its_scores() -> None:
    @function
    def f(s: State) -> None:
        s += select("c", ["x", "y"])

    assert f.run(backend=ScriptedBackend({"c": "y"}))["c"] == "y"
    assert f.run(backend=ScriptedBackend({"c": {"x": -1.0, "y": -2.0}}))["c"] == "x"
    with pytest.raises(ProgramError, match="no choice"):
        f.run(backend=ScriptedBackend({"c": "z"}))


def test_deltas_add_up_to_the_text() -> None:
    backend = ScriptedBackend({"x": "three little words"})
    deltas: list[Delta] = []
    message = Generate(backend.new_id("x"), stream=True, segments=(Text("a"),))
    finished = backend.generate(message, deltas.append).result(1)
    assert "".join(delta.text for delta in deltas) == finished.outputs[0].text
    assert len(deltas) == 3


def test_a_request_holds_what_is_behind_it_and_fork_copies_then() -> None:
    backend = ScriptedBackend({"x": "X"}, default="Y")
    with backend.paused():
        backend.send(OpenBranch("b"))
        backend.send(Append("b", (Text("p"),)))
        backend.generate(Generate(backend.new_id("x"), "b"))
        backend.send(Fork("b", ("c",)))
        backend.send(Append("c", (Text("q"),)))
        last = backend.generate(Generate(backend.new_id("y"), "c"))
        backend.send(CloseBranch("b"))
        assert backend.num_waiting == 1
        assert not last.done()
    assert backend.requests[-1].prompt == "pXq"
    assert backend.open_branches == ("c",)


def test_a_failed_request_fails_what_is_behind_it() -> None:
    backend = ScriptedBackend({"x": EngineDied("it ended")}, default="Y")
    with backend.paused():
        backend.send(OpenBranch("b"))
        first = backend.generate(Generate(backend.new_id("x"), "b"))
        backend.send(Fork("b", ("c",)))
        second = backend.generate(Generate(backend.new_id("y"), "c"))
    for future in (first, second):
        assert isinstance(future.exception(1), EngineDied)


def test_abort_answers_the_request_and_breaks_its_branch() -> None:
    backend = ScriptedBackend(default="Y")
    backend.pause()
    backend.send(OpenBranch("b"))
    names = [backend.new_id("x") for _ in range(3)]
    futures = [backend.generate(Generate(name, "b")) for name in names]
    backend.send(Abort(names[2]))
    backend.send(Abort(names[0]))
    backend.send(Abort("unknown"))
    backend.resume()
    assert [type(future.exception(1)) for future in futures] == [Aborted] * 3


def test_messages_for_a_branch_that_is_not_open_are_refused() -> None:
    backend = ScriptedBackend(default="Y")
    backend.send(CloseBranch("never"))
    with pytest.raises(ProgramError, match="'never'"):
        backend.send(Append("never", (Text("x"),)))
    with pytest.raises(ProgramError, match="'never'"):
        backend.generate(Generate("r", "never"))


def test_cached_tokens_are_those_whose_prefix_was_seen_but_never_all() -> None:
    backend = ScriptedBackend(default="w")
    message = Generate("r#1", segments=(Text("one two three"),))
    usages = [backend.generate(message).result(1).usage for _ in range(2)]
    assert [usage.cached_tokens for usage in usages] == [0, 2]
    other = Generate("r#2", segments=(Text("one two four five"),), namespace="elsewhere")
    assert backend.generate(other).result(1).usage.cached_tokens == 0


def test_trickle_gives_words_and_serves_the_waiting_requests_in_turn() -> None:
    backend = ScriptedBackend({"x": "a b c", "y": "d e"})
    backend.pause()
    got: list[str] = []
    futures = [
        backend.generate(
            Generate(backend.new_id(name), stream=True, segments=(Text("p"),)),
            lambda delta: got.append(delta.text),
        )
        for name in ("x", "y")
    ]
    for expected in (["a"], ["a", "d"], ["a", "d", " b"]):
        assert backend.trickle()
        assert got == expected
    assert not futures[0].done()
    assert backend.trickle(5)
    assert futures[1].result(1).outputs[0].text == "d e"
    backend.resume()
    assert futures[0].result(1).outputs[0].text == "a b c"
    assert got == ["a", "d", " b", " e", " c"]
    assert not backend.trickle(), "nothing waits"
    assert len(backend.requests) == 2, "a script is asked once"


def test_a_request_that_is_aborted_between_its_words_is_over() -> None:
    backend = ScriptedBackend({"x": "a b c"})
    backend.pause()
    name = backend.new_id("x")
    future = backend.generate(
        Generate(name, stream=True, segments=(Text("p"),)), lambda delta: backend.send(Abort(name))
    )
    assert backend.trickle()
    assert isinstance(future.exception(1), Aborted)
    assert not backend.trickle()


def test_an_answer_may_break_off_after_its_text() -> None:
    backend = ScriptedBackend({"x": Answer("a b", failure=EngineDied("it ended"))})
    got: list[str] = []
    message = Generate(backend.new_id("x"), stream=True, segments=(Text("p"),))
    future = backend.generate(message, lambda delta: got.append(delta.text))
    assert isinstance(future.exception(1), EngineDied)
    assert got == ["a", " b"]


def test_a_pattern_that_only_the_grammar_reads_is_not_checked() -> None:
    @function
    def f(s: State) -> None:
        s += "a" + gen("x", regex=r"\p{L}+")

    assert f.run(backend=ScriptedBackend({"x": "é"}))["x"] == "é"
