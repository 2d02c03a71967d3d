"""`radixlm bench` on the real model with the least work: every group is measured, and a shared prefix is hit."""

from __future__ import annotations

import json

import pytest

import radixlm
from radixlm import bench, reports
from radixlm.bench import Report, Row, Sizes
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.model_files import ModelFiles
from radixlm.runtime.native_runner import can_serve


@pytest.mark.model
def test_all_groups_are_measured_and_the_shared_prefix_is_hit(engine: radixlm.Engine) -> None:
    sizes = Sizes(prefix_sentences=4, num_requests=2, num_tokens=2, rounds=1)
    report = bench.measure(engine, sizes)
    rows = {(row.group, row.name): row.value for row in report.rows}
    assert {group for group, _ in rows} == {
        "prefix sharing",
        "time to first token",
        "decoding",
        "JSON Schema",
    }
    assert all(value > 0 for value in rows.values())
    assert rows["prefix sharing", "prompt tokens from the cache"] > 25
    assert 0 < rows["JSON Schema", "forced tokens"] < 100


def test_a_report_is_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    machine = {"processor": "P", "threads": 2, "instructions": "avx2", "torch": "2"}
    report = Report("toy", machine, [Row("decoding", "1 stream", 12.345, "tokens/s", "warm")])
    reports.print_bench(report, as_json=False)
    out = capsys.readouterr().out
    assert out.startswith("decoding\n  1 stream")
    assert "12.3 tokens/s  (warm)\ntoy on P, 2 threads" in out
    reports.print_bench(report, as_json=True)
    assert json.loads(capsys.readouterr().out)["rows"][0]["value"] == 12.345


@pytest.mark.model
def test_steps_are_timed_by_part_and_the_parts_make_the_whole(smollm2_files: ModelFiles) -> None:
    config = EngineConfig.create(model=smollm2_files.name, num_pages=256, threads=1)
    if config.kernels == "auto" and not can_serve(config.dtype, config.kv_dtype):
        pytest.skip("the native kernels were not built")
    rows = bench.measure_steps(config, num_steps=3, in_parts=True).rows
    assert {row.group for row in rows} == {"step of 1 stream", "step of 32 streams"}
    for group in {row.group for row in rows}:
        whole, *parts = [row.value for row in rows if row.group == group]
        assert len(parts) == 4
        assert all(0 < value < whole for value in parts)
