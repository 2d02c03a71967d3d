"""The first program of the README runs as it stands and prints what the README says it prints, but for the model's own words."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text()


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_program_of_the_readme_prints_its_lines(smollm2_files: object, tmp_path: Path) -> None:
    program, printed = re.findall(r"```(?:python|text)\n(.*?)```", README, re.DOTALL)[:2]
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert run.returncode == 0, run.stderr
    assert [line.count("|") for line in run.stdout.splitlines()] == [
        line.count("|") for line in printed.splitlines()
    ]
