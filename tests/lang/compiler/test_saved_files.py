"""A saved program's file: what is damaged in it is refused with its place."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from radixlm import ConfigError, Program, State, function, gen


@function
def talk(s: State, first: str, second: str) -> Any:
    s += f"[{first}|{second}]" + gen("a", temperature=1.0, seed=5)
    s += "<" + s["a"] + ">"
    forks = s.fork(2)
    forks += lambda i: f"child {i}: " + gen("b", max_tokens=9)
    forks.join()
    return [s["a"], s["b"]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "talk.json"
    talk.save(path, first="river", second="stone")
    return path


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda d: d.update(version=2), r"version 2, not 'radixlm program' of version 1"),
        (lambda d: d.update(format="a cake"), r"this is 'a cake'"),
        (lambda d: d["steps"][0].update(branch=9), r"there is no branch 9 .*\$\.steps\[0\]"),
        (lambda d: d["steps"][0]["parts"][1].update(name="x"), r"no argument 'x' .*steps\[0\]"),
        (lambda d: d["steps"].pop(1), r"there is no result 0 .*steps\[1\]"),
        (lambda d: d["steps"][1].update(ask="one"), r"Expected `int`, got `str` - at `\$\.steps"),
        (lambda d: d["steps"][1].update(type="dance"), r"dance.*\$\.steps"),
        (lambda d: d["steps"][1]["options"].update(temperature="hot"), r"temperature"),
        (lambda d: d["steps"][1]["options"].update(heat=1), r"heat"),
        (lambda d: d.pop("steps"), r"steps"),
        (
            lambda d: d["steps"][2]["parts"][1].update(output=7),
            r"result 0 has no output 7 .*steps\[2\]",
        ),
        (lambda d: d["steps"][2]["parts"][1].update(output=-1), r"result 0 has no output -1"),
        (
            lambda d: d["steps"][-1]["value"]["items"][0].update(output=1),
            r"result 0 has no output 1 ",
        ),
        (
            lambda d: d["steps"].insert(
                1, {"type": "scope", "branch": 0, "name": "z", "begins": False}
            ),
            r"the scope 'z' ends and did not begin .*steps\[1\]",
        ),
        (lambda d: d["steps"][1].update(value="choice"), r"no choices"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place(
    saved: Path, tmp_path: Path, change: Any, why: str
) -> None:
    content = json.loads(saved.read_text())
    change(content)
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=why) as caught:
        Program.load(path)
    assert str(path) in str(caught.value)


@given(st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_damage_is_anything_but_a_refusal(saved: Path, data: Any) -> None:
    content = bytearray(saved.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:at]
    else:
        content[at] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.json"
        path.write_bytes(bytes(content))
        try:
            Program.load(path)
        except ConfigError:
            return


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Program.load(tmp_path / "nothing.json")
