"""Every example runs, on scripted answers here and on the embedded model."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import radixlm
from radixlm import ScriptedBackend

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS: dict[str, dict[str, Any]] = {
    "hello": {"greeting": "Welcome, Ada!"},
    "fork_join": {"tip": ["Sleep well.", "Eat greens.", "Walk."], "plan": " a walk"},
    "extract_person": {
        "person": '{"name":"Maria Lopez","age":34,"city":"Madrid","hobbies":["chess"]}'
    },
    "extract_folder": {"extract": '{"hotel":"Bellevue","city":"Lyon","mood":"mixed"}'},
    "demo": {
        "note": [" clean", " excellent", " slow"],
        "mood": "mixed",
        "report": '{"hotel":"Bellevue","city":"Lyon","nights":2,"room":"clean","wifi":"slow"}',
    },
}
SAYS = {
    "hello": ["Welcome, Ada!"],
    "fork_join": ["sleep     Sleep well.", "food      Eat greens.", "Start with a walk."],
    "extract_person": ["Maria Lopez, 34, Madrid: chess"],
    "extract_folder": ["Bellevue in Lyon, mixed", "3 rows, 0 failed", "reads 0 documents"],
    "demo": ["The review is mixed.", "room='clean'", "prompt tokens were cached"],
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where pydantic looks up what annotations name
    spec.loader.exec_module(module)
    return module


def names() -> list[str]:
    return sorted(path.stem for path in EXAMPLES.glob("*.py"))


def test_every_example_has_a_script() -> None:
    assert names() == sorted(SCRIPTS)


@pytest.mark.parametrize("name", names())
def test_an_example_is_short_and_says_how_to_run_it(name: str) -> None:
    text = (EXAMPLES / f"{name}.py").read_text()
    assert text.count("\n") <= 60
    assert f"python examples/{name}.py" in text or name == "demo"


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_an_example_runs_on_scripted_answers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    backend = ScriptedBackend(SCRIPTS[name])
    load(name).main(backend)
    printed = capsys.readouterr().out
    for text in SAYS[name]:
        assert text in printed
    assert not backend.open_branches


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_an_example_runs_on_the_embedded_model(
    name: str, engine: radixlm.Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    load(name).main(engine)
    assert capsys.readouterr().out.strip()


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("smollm2_files")
def test_an_example_runs_as_a_script() -> None:
    command = [sys.executable, str(EXAMPLES / "hello.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()
