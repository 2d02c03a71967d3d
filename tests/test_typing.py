"""The public names as a type checker sees them are a file that pyright reads; here: that it is read, and that it can be imported."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_sample_of_types_is_among_what_pyright_reads_and_runs() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "tests/typing" in config["tool"]["pyright"]["include"]
    assert config["tool"]["pyright"]["typeCheckingMode"] == "strict"
    names = runpy.run_path(str(ROOT / "tests" / "typing" / "public_api.py"))
    assert {"ask", "typed"} <= set(names)
