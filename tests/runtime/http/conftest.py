"""One toy runtime, 20 ms a step, for the tests of the server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from toy_processes import toy_command

from radixlm.runtime.config import EngineConfig
from radixlm.runtime.launch import Runtime


@pytest.fixture(scope="session")
def slow_runtime() -> Iterator[Runtime]:
    """Real processes around a toy model."""
    runtime = Runtime(EngineConfig.create(model="toy-slow", threads=1), toy_command)
    yield runtime
    runtime.close()
