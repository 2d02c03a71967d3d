"""Each test here runs on every backend; what one cannot do it must refuse by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from backend_subjects import NAMES, ON_THE_MODEL, Subject, subject_of
from toy_processes import toy_command

from radixlm.runtime.config import EngineConfig
from radixlm.runtime.launch import Runtime


@pytest.fixture(scope="session")
def toy_runtime() -> Iterator[Runtime]:
    """Real processes around a toy model."""
    runtime = Runtime(EngineConfig.create(model="toy", threads=1), toy_command)
    yield runtime
    runtime.close()


_REAL = [
    pytest.param(name, marks=[pytest.mark.model, pytest.mark.timeout(300)]) for name in ON_THE_MODEL
]


@pytest.fixture(params=[*NAMES, *_REAL])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    is_real = request.param in ON_THE_MODEL
    runtime = request.getfixturevalue("engine")._runtime if is_real else None
    return subject_of(request.param, runtime or request.getfixturevalue("toy_runtime"), tmp_path)
