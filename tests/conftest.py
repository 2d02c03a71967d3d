"""Fixtures for all tests: the default model's files, where they were pulled."""

from __future__ import annotations

import pytest
from radixlm.errors import ModelError
from radixlm.runtime.model_files import ModelFiles, resolve_model


@pytest.fixture(scope="session")
def smollm2_files() -> ModelFiles:
    """The files of smollm2-135m in the user's cache; the test is skipped when they are not there."""
    try:
        return resolve_model("smollm2-135m")
    except ModelError as error:
        pytest.skip(str(error))
