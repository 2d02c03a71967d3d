"""Results never depend on compilation: compiled, interpreted and sequential runs of random programs give the same."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lagging_backend import lagging
from random_programs import PROGRAMS, Outcome, answer, carry_out, outcome

from radixlm import Program, ScriptedBackend

QUIET = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # fmt: skip


def run(program: Program, **given: Any) -> Outcome:
    backend = ScriptedBackend(default=answer)
    try:
        state = program.run(backend=backend, seed=3, **given)
    except Exception as error:  # noqa: BLE001  compared
        found = outcome(None, error)
    else:
        found = outcome(state, None)
    assert not backend.open_branches
    return found


@given(PROGRAMS)
@QUIET
def test_interpreted_compiled_and_sequential_runs_agree(ops: list[Any]) -> None:
    interpreted = run(carry_out, ops=ops, value="v")
    assert run(carry_out, ops=ops, value="v", one_by_one=True) == interpreted
    assert run(carry_out.compile(ops, "v"), ops=ops, value="v") == interpreted
    assert run(carry_out.compile(ops[1:], "other"), ops=ops, value="v") == interpreted


@given(
    PROGRAMS, st.lists(st.sampled_from("pqr"), min_size=1, max_size=5), st.sampled_from([1, 2, 9])
)
@QUIET
def test_items_of_a_batch_agree_whatever_they_share(
    ops: list[Any], values: list[str], num_live: int
) -> None:
    items = [{"ops": ops, "value": value} for value in values]
    shared: dict[str, Any] = {"num_threads": num_live, "progress_bar": False, "seed": 3}
    backends = [ScriptedBackend(default=answer) for _ in range(2)]
    plain = carry_out.run_batch(items, backend=backends[0], **shared)
    compiled = carry_out.compile(ops, "p").run_batch(items, backend=backends[1], **shared)
    assert [outcome(state, None) for state in compiled] == [outcome(state, None) for state in plain]
    assert len(backends[1].requests) <= len(backends[0].requests)
    assert not backends[1].open_branches


@given(PROGRAMS, st.lists(st.sampled_from("pq"), min_size=2, max_size=5))
@example([("gen", "a", "greedy"), ("fork", 2, [("select", "a")], "gather")], ["p", "p"])
@settings(QUIET, max_examples=40)
def test_a_batch_agrees_when_answers_come_late_on_another_thread(
    ops: list[Any], values: list[str]
) -> None:
    items = [{"ops": ops, "value": value} for value in values]
    plain = carry_out.run_batch(items, backend=ScriptedBackend(default=answer), seed=3)
    with lagging(default=answer) as backend:
        compiled = carry_out.compile(ops, "p").run_batch(items, backend=backend, seed=3)
        assert not backend.open_branches
    for late, soon in zip(compiled, plain, strict=True):
        if soon.error() is None:
            assert outcome(late, None) == outcome(soon, None)
        else:  # what had not come when the program ended itself is stopped: only the clock says what that is
            assert repr(late.error()) == repr(soon.error())
