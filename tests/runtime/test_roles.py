"""A child's error of `errors.py` crosses stderr as itself; anything else is left as it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

from radixlm.errors import GrammarError, ModelError
from radixlm.runtime.config import EngineConfig
from radixlm.runtime.roles import EXIT_STATUS_OF_ERROR, error_in, error_line


def test_an_error_survives_the_way_through_stderr() -> None:
    error = ModelError("the file is short", place="header", hint="Pull it again")
    found = error_in("some warning\n" + error_line(error) + "more noise\n")
    assert isinstance(found, ModelError)
    assert (found.message, found.place, found.hint) == (error.message, error.place, error.hint)
    assert error_in("Traceback ...\nValueError: no\n") is None
    assert error_in("radixlm-error: {broken\n") is None
    assert isinstance(error_in(error_line(GrammarError("x", keyword="k"))), GrammarError)


@pytest.mark.parametrize("role", ["engine", "gateway"])
def test_a_role_with_a_missing_model_reports_it_and_leaves_with_its_status(role: str) -> None:
    import os

    config = EngineConfig.create(model="/nowhere/at/all.gguf").to_json()
    command = [
        sys.executable,
        "-m",
        "radixlm",
        role,
        "--config",
        config,
        "--parent",
        str(os.getpid()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == EXIT_STATUS_OF_ERROR
    assert isinstance(error_in(done.stderr), ModelError)


def test_a_child_whose_parent_is_gone_already_does_not_start() -> None:
    command = [sys.executable, "-m", "radixlm", "gateway", "--config", "{}", "--parent", "1"]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 1
