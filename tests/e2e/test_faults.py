"""The whole server under mixed traffic whose clients leave as they like, and whose engine is killed: everything ends once, nothing stays.

The long version, with its numbers, is `tests/bench/soak.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from serve_process import serving
from soak import AT_REST, Report, Soak

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(400)]
SECONDS = 6.0
MAX_GROWTH_MIB = 64.0  # within so short a time; the long version is stricter


@pytest.fixture(scope="module")
def soaked(smollm2_files: object) -> Iterator[tuple[Report, int, list[str]]]:
    # few pages: they run out
    with serving(threads=1, kv_bytes=192 << 20, context_length=2048) as process:
        soak = Soak(process, num_clients=20, seconds=SECONDS, kill_after_s=SECONDS / 2, seed=7)
        report = soak.run()
        yield report, process.end(), process.stderr


def test_every_request_ends_once_and_as_it_must(
    soaked: tuple[Report, int, list[str]],
) -> None:
    report = soaked[0]
    assert not report.faults, "\n".join(report.faults[:10])
    assert sum(report.outcomes.values()) == report.num_sent
    assert {"answered", "refused", "left"} <= set(report.outcomes)


def test_the_engine_s_death_is_told_to_those_who_lost_by_it_and_the_next_one_serves(
    soaked: tuple[Report, int, list[str]],
) -> None:
    report = soaked[0]
    assert report.outcomes["engine died"] > 0
    assert len([name for name in report.memory if name.startswith("engine")]) == 2


def test_afterwards_nothing_is_held(soaked: tuple[Report, int, list[str]]) -> None:
    report = soaked[0]
    assert set(AT_REST) <= set(report.counters)
    assert not report.not_at_rest
    assert report.counters["radixlm_repairs_total"] == 0
    assert report.counters["radixlm_event_loop_lag_seconds_count"] > 0


def test_no_process_grows_and_the_log_tells_of_one_death(
    soaked: tuple[Report, int, list[str]],
) -> None:
    report, status, stderr = soaked
    for name, memory in report.memory.items():
        if not name.startswith("engine"):  # it fills its pages first
            assert memory.growth_mib() < MAX_GROWTH_MIB, name
    assert status == 0
    assert re.search(r"holds [1-9][\d,]* tokens, keys and values in (int8|float32)$", stderr[1])
    told = [line for line in stderr[2:] if "serving" not in line]
    assert len(told) == 1, "".join(told)
    assert "SIGKILL" in told[0]
