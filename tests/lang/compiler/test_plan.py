"""Tracing and the passes: what a program does, what depends on what, what follows what."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from radixlm import (
    ProgramError,
    ScriptedBackend,
    State,
    assistant,
    function,
    gen,
    gen_int,
    select,
    user,
)
from radixlm.lang.compiler.folding import fold
from radixlm.lang.compiler.graph import AskStep, ForkStep, JoinStep, TextStep
from radixlm.lang.compiler.plan import Plan
from radixlm.lang.compiler.prefixes import shared_by_children
from radixlm.lang.compiler.tracing import MAX_STEPS, trace
from radixlm.runtime.messages import Hints, RoleBegin, RoleEnd, Text


@function
def tips(s: State, topic: str, num: int = 2) -> None:
    s += "You know much. "
    s += f"Tips on {topic}: "
    s += gen("tips", max_tokens=10)
    forks = s.fork(num)
    forks += lambda i: f"More of tip {i}: " + gen("more", max_tokens=20 + 10 * i)
    forks.join()
    s += "In short (" + s["more"][0] + s["more"][1].upper() + "): " + gen("short", max_tokens=5)


def texts(plan: Plan, branch: int = 0) -> list[list[tuple[str, set[str], bool]]]:
    steps = plan.graph.branches[branch].steps
    return [
        [(part.text, set(part.sources), part.is_computed) for part in step.parts]
        for step in steps
        if isinstance(step, TextStep)
    ]


def test_adjacent_constants_fold_to_one_text() -> None:
    raw = trace(tips, ("x",), {}, 0)
    assert [type(step) for step in raw.branches[0].steps[:3]] == [TextStep, TextStep, AskStep]
    folded = fold(raw).branches[0].steps
    assert [type(step) for step in folded] == [TextStep, AskStep, ForkStep, JoinStep, TextStep, AskStep]  # fmt: skip
    first = folded[0]
    assert isinstance(first, TextStep)
    assert first.text == "You know much. Tips on x: "


def test_text_that_stems_from_an_argument_is_told_from_constants() -> None:
    first = texts(tips.compile("sleep").plan)[0]
    assert first == [
        ("You know much. Tips on ", set(), False), ("sleep", {"topic"}, False), (": ", set(), False),
    ]  # fmt: skip


def test_results_in_texts_are_found_and_what_python_made_of_them_is_opaque() -> None:
    last = texts(tips.compile("sleep").plan)[-1]
    assert last[0] == ("In short (", set(), False)
    assert last[1] == ("‹more 1›", {"$1"}, False)
    assert last[2][1:] == ({"$0", "$1", "$2"}, True)
    assert last[3] == ("): ", set(), False)


def test_what_every_run_begins_with_is_the_constant_prefix() -> None:
    assert tips.compile("sleep").plan.prefix == (Text("You know much. Tips on "),)

    @function
    def chat(s: State, question: str) -> None:
        s += user("Be brief.") + assistant("Yes.") + user(question) + assistant(gen("a"))

    segments = chat.compile("why?").plan.prefix
    assert segments[:3] == (RoleBegin("user"), Text("Be brief."), RoleEnd("user"))
    assert segments[-1] == RoleBegin("user")
    fork = next(s for s in tips.compile("x").plan.graph.branches[0].steps if isinstance(s, ForkStep))  # fmt: skip
    assert shared_by_children(tips.compile("x").plan.graph, fork) == "More of tip "


def test_continuations_are_counted_and_last_uses_known() -> None:
    plan = tips.compile("sleep").plan
    assert [ask.name for ask in plan.graph.asks] == ["tips", "more", "more", "short"]
    assert plan.num_continuations == (3, 0, 0, 0)


def test_chains_are_as_long_as_what_waits_for_them() -> None:
    assert tips.compile("sleep").plan.remaining == (10 + 30 + 5, 20 + 5, 30 + 5, 5)


def test_requests_need_the_arguments_in_their_text_and_those_of_earlier_results() -> None:
    @function
    def f(s: State, document: str, question: str) -> None:
        s += "Say hello. " + gen("hello")
        s += document + gen("summary")
        s += question + gen("answer")
        s += gen("drawn", temperature=1.0) + gen("after")

    needed = f.compile("d", "q").plan.needs
    both = frozenset({"document", "question"})
    assert needed == (frozenset(), frozenset({"document"}), both, None, None)


def test_a_way_that_another_result_would_not_take_is_a_guess() -> None:
    @function
    def f(s: State) -> None:
        s += "Good? " + select("good", ["yes", "no"])
        if s["good"] == "yes":
            s += gen("why") + gen("how")
        s += "."

    plan = f.compile().plan
    steps = plan.graph.branches[0].steps
    assert [step.is_guess for step in steps] == [False, False, True, True, True]
    assert plan.num_continuations == (1, 1, -1), "the last may go on in another run: no claim"


@pytest.mark.parametrize("argument", [3, [1, 2], {"a": "b"}, True, 2.5, ("x", "y")])
def test_arguments_of_all_plain_types_are_varied(argument: object) -> None:
    @function
    def f(s: State, value: object) -> None:
        s += f"Of {value!r}: " + gen("x")

    parts = texts(f.compile(argument).plan)[0]
    assert any(sources == {"value"} for _, sources, _ in parts)


def test_a_program_that_a_placeholder_stops_is_traced_up_to_there_and_runs_all_the_same() -> None:
    @function
    def f(s: State) -> None:
        s += "A number: " + gen("n")
        s += "next " * int(s["n"]) + gen("end")

    compiled = f.compile()
    assert compiled.stopped.startswith("ValueError: invalid literal for int()")
    assert "not traced further" in str(compiled.drawing)
    state = compiled.run(backend=ScriptedBackend({"n": "2", "end": "x"}))
    assert state.text() == "A number: 2next next x"


def test_a_program_that_never_ends_on_placeholders_is_cut() -> None:
    @function
    def f(s: State) -> None:
        while True:
            s += "again "
            try:
                s += gen("x")
                if s["x"] == "done":
                    return
            except Exception:  # noqa: BLE001  what bodies do
                continue

    compiled = f.compile()
    assert compiled.stopped == f"it took more than {MAX_STEPS} steps"
    assert compiled.run(backend=ScriptedBackend({"x": ["a", "done"]}))["x"] == "done"


def test_constrained_results_are_played_as_values_of_their_type() -> None:
    @function
    def f(s: State) -> None:
        s += "How many? " + gen_int("n", minimum=2, maximum=3)
        for _ in range(s["n"]):
            s += gen("x")

    plan = f.compile().plan
    assert not plan.graph.stopped
    assert [ask.name for ask in plan.graph.asks] == ["n", "x", "x"]
    assert plan.graph.branches[0].may_go_on


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(ProgramError, match="missing a required argument"):
        tips.compile()
    with pytest.raises(ProgramError, match="no parameter 'tpic'"):
        tips.graph(tpic="x")


def test_hints_say_what_follows_and_the_last_result_of_a_run_may_still_be_used_by_the_user() -> (
    None
):
    steps = tips.compile("sleep").plan.steps(in_batch=False)
    in_batch = tips.compile("sleep").plan.steps(in_batch=True)
    assert steps[0].hints == Hints(num_forks=3, priority=45)  # type: ignore[union-attr]
    assert steps[1].children[1][0].hints == Hints(last_use=True, priority=35)  # type: ignore[union-attr]
    assert not steps[2].hints.last_use  # type: ignore[union-attr]
    assert in_batch[2].hints.last_use  # type: ignore[union-attr]


def test_a_plan_is_drawn_as_text_and_as_a_picture() -> None:
    drawing = tips.graph("sleep")
    lines = str(drawing).splitlines()
    assert lines[0] == "tips(topic)"
    assert lines[1] == '  text "You know much. Tips on " {topic} ": "'
    assert lines[2].startswith("  gen tips max 10 = $0 ")
    assert lines[2].endswith("3 follow, 45 to go")
    assert lines[3].startswith("  fork 2")
    assert lines[3].endswith('all begin "More of tip "')
    assert [line[:6] for line in lines[4:8]] == ["  |-- ", "  |   ", "  `-- ", "      "]
    picture = ElementTree.fromstring(drawing.svg())
    written = [node.text or "" for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert sum(text.startswith("gen more") for text in written) == 2
    widths = {float(node.get("width", "0").rstrip("%")) for node in picture.iter("{http://www.w3.org/2000/svg}rect")}  # fmt: skip
    assert max(widths) <= float(picture.get("width", "0"))
