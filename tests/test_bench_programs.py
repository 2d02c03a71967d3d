"""`radixlm bench programs` on a fake model: what is counted, and the targets that are counts."""

from __future__ import annotations

import json
from functools import cache

import pytest
from toy_engine import open_toy

from radixlm import reports
from radixlm.bench_programs import ABLATIONS, ProgramRow, measure_programs
from radixlm.errors import ConfigError
from radixlm.lang.workloads import workloads

FITTING = [load.name for load in workloads(1) if not load.num_pages]
FORK_HEAVY = ("judge, fork 6", "tree of thought 3x3x2")


@cache
def rows(name: str) -> dict[str, ProgramRow]:
    found = measure_programs(open_toy, only=[name], warm=False)
    return {row.without: row for row in found if row.workload == name}


def test_each_kind_of_the_paper_is_there() -> None:
    kinds = ("few-shot", "select of 4", "react", "judge", "tree of thought", "skeleton", "json character", "chat, short",
             "chat, long", "16 mixed agents")  # fmt: skip
    names = [load.name for load in workloads(1)]
    assert len(names) == len(kinds)
    assert all(name.startswith(kind) for name, kind in zip(names, kinds, strict=True))


@pytest.mark.parametrize("name", FITTING)
def test_a_cache_that_fits_computes_at_most_1_03_of_the_fewest(name: str) -> None:
    whole = rows(name)[""]
    assert whole.computed <= 1.03 * whole.fewest
    if not whole.forced:  # a forced end is written without being computed
        assert whole.fewest <= whole.computed


def test_a_cache_that_is_too_small_has_95_percent_of_the_best_hits() -> None:
    found = rows("16 mixed agents, small cache")
    whole = found[""]
    assert whole.hit_share >= 0.95
    assert whole.computed > whole.fewest, "else it is not too small"
    assert whole.clairvoyant >= whole.fewest
    assert found["fcfs, no compile"].computed > 1.1 * whole.computed


@pytest.mark.parametrize("name", FORK_HEAVY)
def test_an_interpreter_over_a_plain_queue_computes_much_more(name: str) -> None:
    found = rows(name)
    assert found["fcfs, no compile"].computed >= 1.3 * found[""].computed
    assert found["no cache"].computed == found["no cache"].uncached >= 3 * found[""].computed
    assert found["no cache"].hit_share == 0


def test_jump_forward_halves_the_steps_at_least() -> None:
    found = rows("json character")
    assert found[""].forced > 0 == found["no jump-forward"].forced
    assert found["no jump-forward"].steps >= 2 * found[""].steps
    assert "no jump-forward" not in rows("few-shot"), "it forces nothing there"


def test_a_select_computes_a_fraction_of_scored_prompts_and_says_the_same() -> None:
    found = rows("select of 4")
    assert found["four scored prompts"].computed >= 3 * found[""].computed
    assert found["four scored prompts"].steps >= 3 * found[""].steps
    assert found["four requests"].messages > 2 * found[""].messages
    assert found["four requests"].same_texts
    assert found["four scored prompts"].same_texts


@pytest.mark.parametrize("name", [load.name for load in workloads(1)])
def test_nothing_that_is_left_out_changes_a_text(name: str) -> None:
    found = rows(name)
    assert set(ABLATIONS) - set(found) <= {"no jump-forward"}
    assert all(row.same_texts for kind, row in found.items() if kind != "no jump-forward")


def test_names_that_are_not_there_are_refused_before_anything_is_measured() -> None:
    with pytest.raises(ConfigError, match="no workload's name begins with 'chess'"):
        next(measure_programs(open_toy, only=["chat", "chess"]))
    with pytest.raises(ConfigError, match="nothing is called 'no luck'"):
        next(measure_programs(open_toy, without=["no luck"]))


def test_rows_are_a_table_or_lines_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(rows("judge, fork 6").values())
    reports.print_programs(iter(found), as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["without"] for line in lines] == [row.without for row in found]
    assert lines[0]["ratio"] == found[0].computed / found[0].fewest
    reports.print_programs(iter(found), as_json=False)
    out = capsys.readouterr().out.splitlines()
    assert out[0].split("  ")[0] == "workload"
    assert out[1].startswith("judge, fork 6 ")
    assert any(line.startswith("  fcfs, no compile ") for line in out)
