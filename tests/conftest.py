"""Fixtures for all tests: the default model's files, where they were pulled, and one running engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import radixlm
from radixlm.errors import ModelError
from radixlm.runtime.model_files import ModelFiles, resolve_model


@pytest.fixture(scope="session")
def smollm2_files() -> ModelFiles:
    """The files of smollm2-135m in the user's cache; the test is skipped when they are not there."""
    try:
        return resolve_model("smollm2-135m")
    except ModelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def engine(smollm2_files: ModelFiles) -> Iterator[radixlm.Engine]:
    """The default model running, shared by all tests that do not need an engine of their own."""
    with radixlm.Engine(model="smollm2-135m", threads=2) as engine:
        yield engine
