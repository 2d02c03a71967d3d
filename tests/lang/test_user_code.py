"""The user's files as modules: under their own name, but never in the place of another module."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from radixlm.errors import ConfigError
from radixlm.lang.user_code import load_module


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


def test_a_file_that_is_called_like_a_library_does_not_replace_it(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("word = 'mine'")
    assert load_module(str(tmp_path / "random.py")).word == "mine"
    assert sys.modules["random"] is random


def test_a_file_that_fails_leaves_no_half_of_itself(tmp_path: Path) -> None:
    (tmp_path / "half_a_module.py").write_text("import json\n1 / 0")
    with pytest.raises(ZeroDivisionError):
        load_module(str(tmp_path / "half_a_module.py"))
    assert "half_a_module" not in sys.modules


@pytest.mark.parametrize("where", ["./prog", "", "a b", "nowhere.py", "no_such_package.inner"])
def test_what_is_not_there_is_said(where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_module(where)
    assert caught.value.place == where


def test_what_a_module_itself_misses_is_its_own_error(tmp_path: Path) -> None:
    (tmp_path / "needs_something.py").write_text("import not_installed_anywhere")
    sys.path.insert(0, str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        load_module("needs_something")
