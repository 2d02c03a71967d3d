"""The code of the README runs as it stands, in order, and the first program prints the shape of what the README says it prints.

The model's own words may differ between kernels; that they come, and how many lines and fields they have, may not.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import radixlm

README = (Path(__file__).resolve().parent.parent / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
PROGRAM, DOORS, CLIENT = PYTHON
pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the first program defines, without running the model."""
    module = sys.modules["program_of_the_readme"] = ModuleType("program_of_the_readme")
    exec(PROGRAM.partition("with radixlm.Engine")[0], module.__dict__)
    return module.__dict__


@pytest.fixture
def served(smollm2_files: object) -> Iterator[str]:
    """The address of `radixlm serve`."""
    command = [sys.executable, "-m", "radixlm", "serve", "--port", "0", "--threads", "1"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        said = next((line for line in iter(server.stderr.readline, "") if "http://" in line), "")
        yield said.split()[-1]
        server.terminate()
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.communicate()


def test_the_first_program_prints_its_lines(smollm2_files: object, tmp_path: Path) -> None:
    printed = re.findall(r"```text\n(.*?)```", README, re.DOTALL)[0]
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert run.returncode == 0, run.stderr
    assert [line.count("|") for line in run.stdout.splitlines()] == [
        line.count("|") for line in printed.splitlines()
    ]


def test_batches_streams_and_plain_calls_run(
    engine: radixlm.Engine, names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    exec(DOORS, names | {"engine": engine, "reviews": [names["review"], "Cold food in Oslo."]})
    partials = capsys.readouterr().out.splitlines()
    assert partials
    assert "hotel" in partials[-1]


def test_the_openai_client_gets_a_date_and_an_instance(
    served: str, names: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code = CLIENT.replace("http://127.0.0.1:8000", served)
    assert code != CLIENT
    exec(code + "\napi.close()", names)
    day, stay = capsys.readouterr().out.splitlines()
    assert re.match(r"\d{4}-\d\d-\d\d \d+$", day)
    assert stay.startswith("hotel=")
