"""The data files beside the checkout: real schemas, the official suites, patterns, reported cases. Absent files skip the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
CASES = SHARED / "cases"
DATA = SHARED / "data"


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON-lines file; skips the test where the file is not there."""
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with path.open(encoding="utf-8") as lines:  # not splitlines: texts hold other line separators
        return list(map(json.loads, lines))


def rows_at_collection(path: Path) -> list[dict[str, Any]]:
    """The rows to parametrize tests with; none where the file is not there."""
    return rows_of(path) if path.exists() else []
