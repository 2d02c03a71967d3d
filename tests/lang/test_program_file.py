"""Programs by file and name, and their arguments as texts: what is found, what is converted, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Literal

import pytest

from radixlm import State, function
from radixlm.errors import ConfigError, ProgramError
from radixlm.lang.program_file import load_program, read_arguments

TWO = """
from helper_beside import function

@function
def first(s, text: str): ...

@function
def second(s): ...

number = 5
if __name__ == "__main__":
    raise SystemExit("the file was run, not imported")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With two programs in one file, and a module that it imports; the import path is restored."""
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    (tmp_path / "two_programs.py").write_text(TWO)
    (tmp_path / "helper_beside.py").write_text("from radixlm import function")
    (tmp_path / "single_program.py").write_text(
        "from radixlm import function\nfrom two_programs import first\n@function\ndef only(s): ...\n"
    )
    return tmp_path


def test_a_program_is_found_by_name_or_because_it_is_the_only_one(folder: Path) -> None:
    assert load_program(f"{folder}/two_programs.py:second").__name__ == "second"
    assert (
        load_program(f"{folder}/single_program.py").__name__ == "only"
    )  # imported ones do not count
    assert load_program("two_programs:first").__name__ == "first"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("two_programs.py", "2 programs"),
        ("two_programs.py:secnd", "Did you mean 'second'"),
        ("two_programs.py:number", "is no program"),
        ("helper_beside.py", "no program"),
        ("none.py", "no file"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(folder: Path, target: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_program(f"{folder}/{target}")
    with pytest.raises(ConfigError, match="no module 'nowhere_at_all'"):
        load_program("nowhere_at_all:x")


@function
def program(
    s: State, text: str, free, count: int = 1, share: float = 0.5, is_on: bool = False, items: list[str] = []  # noqa: B006
) -> None: ...  # fmt: skip


def test_values_are_read_by_the_parameters_type(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("from a file\n")
    pairs = [
        "text=5", "free=a=b", "count=3", "share=2", "is_on=true", 'items=["a"]',
    ]  # fmt: skip
    assert read_arguments(program, pairs) == {
        "text": "5", "free": "a=b", "count": 3, "share": 2, "is_on": True, "items": ["a"],
    }  # fmt: skip
    given = read_arguments(program, [f"text=@{tmp_path}/long.txt", "free=@@home"])
    assert given == {"text": "from a file\n", "free": "@home"}


@pytest.mark.parametrize(
    ("pairs", "place", "words"),
    [
        (["text=x"], "free", "needs the argument 'free'"),
        (["txt=x"], "txt", "Did you mean 'text'"),
        (["text"], "text", "name=value"),
        (["text=a", "text=b"], "text", "twice"),
        (["text=a", "free=b", "count=two"], "count", "type int"),
        (["text=a", "free=b", "count=true"], "count", "type int"),
        (["text=a", "free=b", "items=5"], "items", "type list"),
        (["text=@nofile", "free=b"], "text", "cannot be read"),
    ],
)
def test_a_wrong_argument_is_named(pairs: list[str], place: str, words: str) -> None:
    with pytest.raises(ProgramError, match=words) as caught:
        read_arguments(program, pairs)
    assert caught.value.place == place


class Colour(Enum):
    RED = "red"


@dataclass
class Address:
    """Where somebody lives."""

    street: str


@function
def typed(
    s: State, maybe: str | None = None, day: date | None = None, colour: Colour = Colour.RED,
    home: Address | None = None, level: Literal["1", "2"] = "1", **more: str,
) -> None: ...  # fmt: skip


def test_values_become_what_the_annotation_says() -> None:
    pairs = [
        "maybe=5", "day=2026-01-02", "colour=red", 'home={"street": "Mill Road"}', "level=2", "other=7",
    ]  # fmt: skip
    assert read_arguments(typed, pairs) == {
        "maybe": "5", "day": date(2026, 1, 2), "colour": Colour.RED, "home": Address("Mill Road"), "level": "2",
        "other": "7",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["backend", "stream", "timeout_s"])
def test_options_of_the_run_are_no_arguments(name: str) -> None:
    with pytest.raises(ProgramError, match=f"no argument '{name}'"):
        read_arguments(typed, [f"{name}=1"])
