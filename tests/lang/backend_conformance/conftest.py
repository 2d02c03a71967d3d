"""Each test here runs on every backend; what one cannot do it must refuse by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from backend_subjects import NAMES, Subject, subject_of
from toy_processes import toy_command

from radixlm.runtime.config import EngineConfig
from radixlm.runtime.launch import Runtime


@pytest.fixture(scope="session")
def toy_runtime() -> Iterator[Runtime]:
    """Real processes around a toy model."""
    runtime = Runtime(EngineConfig.create(model="toy", threads=1), toy_command)
    yield runtime
    runtime.close()


@pytest.fixture(params=NAMES)
def subject(request: pytest.FixtureRequest, toy_runtime: Runtime, tmp_path: Path) -> Subject:
    return subject_of(request.param, toy_runtime, tmp_path)
