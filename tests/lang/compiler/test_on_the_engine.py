"""Compiled and interpreted runs give the same through gateway, scheduler and pages, also when pages are short."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import PROGRAMS, carry_out, outcome
from toy_engine import FIRST_COME_FIRST_SERVED, InProcess, toy_core
from toy_tokenizer import ToyTokenizer

from radixlm import Program, State, function, gen, select
from radixlm.radix_cache.optimum import fewest_tokens


def run(program: Program, items: list[dict[str, Any]], num_pages: int) -> list[Any]:
    with InProcess(toy_core(num_pages, page_size=4), ToyTokenizer()) as backend:
        states = program.run_batch(
            items, backend=backend, seed=3, max_tokens=12, progress_bar=False, timeout_s=60
        )
        outcomes = [outcome(state, None) for state in states]
    backend.core.check()
    assert backend.core.cache.num_leases == 0
    assert backend.num_open() == 0
    return outcomes


@given(PROGRAMS, st.lists(st.sampled_from("pqr"), min_size=1, max_size=4))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_runs_agree_on_the_engine(ops: list[Any], values: list[str]) -> None:
    items = [{"ops": ops, "value": value} for value in values]
    assert run(carry_out.compile(ops, "p"), items, 200) == run(carry_out, items, 400)


@function
def agent(s: State, number: int) -> None:
    s += "You are an agent that has many rules to keep to, all of them written here. "
    s += f"Task {number}: " + gen("plan", max_tokens=12, ignore_eos=True)
    tries = s.fork(3)
    tries += lambda i: f" way {i}: " + gen("way", max_tokens=8, ignore_eos=True)
    tries.join()
    s += " best: " + select("best", ["one", "two"]) + gen("end", max_tokens=8, ignore_eos=True)


def computed(
    program: Program, num_pages: int, limits: Any = None, **options: Any
) -> tuple[int, int, list[str]]:
    """Tokens computed, the fewest that were possible, and the texts."""
    core = toy_core(num_pages, page_size=4, limits=limits)
    with InProcess(core, ToyTokenizer(), **options) as backend:
        items = [{"number": number} for number in range(8)]
        states = program.run_batch(items, backend=backend, progress_bar=False)
        texts = [state.text() for state in states]
    needed = [sequence[:-1] for sequence in backend.sequences]
    return int(core.stats()["computed_tokens"]), fewest_tokens(needed), texts


def test_a_cache_that_fits_computes_what_an_unlimited_one_would() -> None:
    num_computed, fewest, texts = computed(agent.compile(1), 4000)
    assert num_computed <= 1.03 * fewest
    assert computed(agent, 4000)[2] == texts


@pytest.mark.parametrize("has_cache", [True, False])
def test_neither_order_nor_cache_change_a_text(has_cache: bool) -> None:
    compiled = agent.compile(1)
    plain = computed(compiled, 4000)
    limits = FIRST_COME_FIRST_SERVED if has_cache else None
    changed = computed(compiled, 4000, limits, has_cache=has_cache)
    assert changed[2] == plain[2]
    assert (changed[0] > 2 * plain[0]) == (not has_cache)


def test_a_cache_that_is_too_small_serves_compiled_programs_no_worse() -> None:
    with_hints, _, texts = computed(agent.compile(1), 90)
    without, _, plain = computed(agent, 90)
    assert texts == plain
    assert with_hints <= 1.1 * without
