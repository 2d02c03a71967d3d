"""How many cores a process may use, from control groups made of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from radixlm.runtime.cores import usable_cores


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of cgroups on a machine of 8 cores; the process is in /a/b."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    (tmp_path / "own").write_text("0::/a/b\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    return tmp_path


def cores(group: Path) -> int:
    return usable_cores(group, group / "own")


def test_without_a_quota_the_affinity_counts(group: Path) -> None:
    assert cores(group) == 8
    (group / "a" / "b" / "cpu.max").write_text("max 100000\n")
    assert cores(group) == 8
    assert usable_cores(group / "nowhere", group / "nothing") == 8


@pytest.mark.parametrize(("quota", "wanted"), [("200000", 2), ("150000", 2), ("10000", 1), ("9999999", 8)])  # fmt: skip
def test_a_quota_is_rounded_up_and_never_more_than_the_affinity(
    group: Path, quota: str, wanted: int
) -> None:
    (group / "a" / "b" / "cpu.max").write_text(f"{quota} 100000\n")
    assert cores(group) == wanted


def test_a_group_above_bounds_those_below(group: Path) -> None:
    (group / "a" / "cpu.max").write_text("300000 100000\n")
    (group / "a" / "b" / "cpu.max").write_text("max 100000\n")
    assert cores(group) == 3


def test_the_first_version_of_control_groups_is_read_too(group: Path) -> None:
    (group / "own").write_text("4:cpu,cpuacct:/job\n3:memory:/job\n")
    job = group / "cpu,cpuacct" / "job"
    job.mkdir(parents=True)
    (job / "cpu.cfs_quota_us").write_text("250000\n")
    (job / "cpu.cfs_period_us").write_text("100000\n")
    assert cores(group) == 3
    (job / "cpu.cfs_quota_us").write_text("-1\n")
    assert cores(group) == 8


def test_files_that_make_no_sense_bound_nothing(group: Path) -> None:
    (group / "a" / "b" / "cpu.max").write_text("many\n")
    (group / "own").write_text("nonsense\n")
    assert cores(group) == 8
