"""The command line: quick help, errors as one line with a hint, and the commands that need no engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from radixlm import cli
from radixlm.runtime import model_pull


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "radixlm", *arguments], capture_output=True, text=True, timeout=60
    )


def test_help_names_the_commands_and_loads_nothing_heavy() -> None:
    script = """
import sys
sys.argv = ["radixlm", "--help"]
from radixlm.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
heavy = {"torch", "numpy", "zmq", "transformers", "tokenizers", "pydantic", "rich"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    for command in ("pull", "generate", "chat", "doctor"):
        assert command in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pull", "no-such-model"), "smollm2-135m"),
        (("generate", "hi", "--set", "thread=2"), "Did you mean 'threads'"),
        (("generate", "hi", "--set", "threads"), "name=value"),
        (("generate", "hi", "--model", "nowhere.gguf"), "nowhere.gguf"),
    ],
)
def test_a_users_mistake_is_one_line_and_status_1(arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("radixlm: ")
    assert words in line


def test_an_unknown_flag_is_refused() -> None:
    assert run("generate", "hi", "--temprature", "1").returncode == 2


def test_pull_prints_the_path_alone_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        model_pull, "pull", lambda name, report, *, cache_dir: Path(cache_dir) / name
    )
    monkeypatch.setenv("RADIXLM_CACHE_DIR", "/somewhere")
    cli.pull("m", print_path=True)
    assert capsys.readouterr().out == "/somewhere/m\n"
    cli.pull("m", print_path=False)
    assert capsys.readouterr().out == "m is ready: /somewhere/m\n"


def test_doctor_says_what_is_there() -> None:
    done = run("doctor", "--model", "nowhere.gguf")
    assert done.returncode == 0
    assert "torch" in done.stdout
    assert "nowhere.gguf" in done.stdout
