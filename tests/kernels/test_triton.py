"""Triton kernels: equal to the reference under the interpreter, and compiling for NVIDIA architectures without a device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
SCRIPT = Path(__file__).parents[1] / "support" / "triton_checks.py"


def outcomes(mode: str, cache: Path) -> dict[str, str]:
    environment = dict(os.environ) | {"TRITON_INTERPRET": "1" if mode == "interpret" else "0"}
    environment |= {
        "TRITON_CACHE_DIR": str(cache)
    }  # a fresh one: a compiled kernel in the user's cache would prove nothing
    done = subprocess.run(
        [sys.executable, str(SCRIPT), mode],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("mode", "least"), [("interpret", 9), ("compile", 4)])
def test_every_kernel_check_passes(mode: str, least: int, tmp_path: Path) -> None:
    found = outcomes(mode, tmp_path)
    assert {name: outcome for name, outcome in found.items() if outcome != "ok"} == {}
    assert len(found) >= least
