"""A run follows its plan as far as it fits; where it does not, only the hints are missing."""

from __future__ import annotations

from typing import Any

from radixlm import ScriptedBackend, State, function, gen, select
from radixlm.runtime.messages import Generate, Score


@function
def steps(s: State, num: int, names: str = "abc") -> None:
    s += "Begin. " + gen(names[0], max_tokens=1)
    for child in s.fork(num):
        child += gen(names[1], max_tokens=2) + select("c", ["x", "y"])
    s += gen(names[2], max_tokens=4)


def hints(backend: ScriptedBackend) -> list[tuple[str, int, bool, int]]:
    asked = [each for each in backend.sent if isinstance(each, Generate | Score)]
    return [
        (each.request.partition("#")[0], each.hints.num_forks, each.hints.last_use, each.hints.priority)
        for each in asked
    ]  # fmt: skip


def run(program: Any, **given: Any) -> list[tuple[str, int, bool, int]]:
    backend = ScriptedBackend({"c": "x"}, default="t")
    program.run(backend=backend, **given)
    return hints(backend)


def test_every_request_gets_what_the_plan_knows_of_it() -> None:
    assert run(steps.compile(2), num=2) == [
        ("a", 3, False, 11), ("b", 1, False, 10), ("c", 0, True, 8),
        ("b", 1, False, 10), ("c", 0, True, 8), ("c", 0, False, 4),
    ]  # fmt: skip


def test_more_or_fewer_children_than_planned_follow_the_plan_of_the_last() -> None:
    compiled = steps.compile(2)
    assert len([h for h in run(compiled, num=4) if h[3]]) == 1 + 2 * 4 + 1
    assert len([h for h in run(compiled, num=1) if h[3]]) == 1 + 2 + 1


def test_what_was_not_planned_ends_the_plan_of_its_branch_alone() -> None:
    found = run(steps.compile(2), num=2, names="axc")
    assert [h[3] for h in found] == [11, 0, 0, 0, 0, 4]
    assert [h[3] for h in run(steps.compile(2), num=2, names="zbc")] == [0] * 6


def test_without_a_plan_there_are_no_hints() -> None:
    assert {h[1:] for h in run(steps, num=2)} == {(0, False, 0)}


def test_bound_arguments_and_options_stay_with_the_plan() -> None:
    compiled = steps.compile(2).bind(num=2, temperature=0.5)
    assert run(compiled)[0] == ("a", 3, False, 11)
