"""The build of native libraries on a source of four lines: what it makes, what it says when it cannot, and when it has nothing to do."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

import pytest

from radixlm.kernels import build_native

needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="there is no C++ compiler"
)
GOOD = 'extern "C" __attribute__((visibility("default"))) int answer() {\n    return ANSWER;\n}\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "src" / "answer.cpp"
    path.parent.mkdir()
    path.write_text(GOOD)
    return path


@needs_compiler
def test_a_library_is_compiled_with_its_flags_and_replaces_the_one_before(
    source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "_native.so"
    target.write_bytes(b"an older one")
    assert build_native.build(target, [(source, "one", ["-DANSWER=42"])]) is None
    assert ctypes.CDLL(str(target)).answer() == 42
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_native.so", "src"]


@needs_compiler
def test_what_the_compiler_refuses_is_told_and_the_library_before_stays(
    source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "_native.so"
    target.write_bytes(b"an older one")
    source.write_text("int answer() { return nothing; }\n")
    problem = build_native.build(target, [(source, "one", [])])
    assert problem is not None
    assert "error" in problem
    assert "nothing" in problem
    assert target.read_bytes() == b"an older one"


def test_without_a_compiler_the_build_says_so(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    problem = build_native.build(tmp_path / "_native.so", [(source, "one", [])])
    assert problem == "there is no C++ compiler"


@needs_compiler
def test_a_library_is_current_by_what_it_is_made_of_and_not_by_its_time(
    source: Path, tmp_path: Path
) -> None:
    target, jobs = tmp_path / "_native.so", [(source, "one", ["-DANSWER=42"])]
    assert not build_native.is_current(target, jobs)
    assert build_native.build(target, jobs) is None
    os.utime(target, (0, 0))
    assert build_native.is_current(target, jobs)
    copy = tmp_path / "copy.so"
    shutil.copyfile(target, copy)
    assert build_native.is_current(copy, jobs)
    assert not build_native.is_current(target, [(source, "one", ["-DANSWER=43"])])
    header = source.with_name("answer.h")
    header.write_text("")
    assert not build_native.is_current(target, jobs)
    header.unlink()
    assert build_native.is_current(target, jobs)
    source.write_text(GOOD.replace("ANSWER", "7"))
    os.utime(source, (0, 0))
    assert not build_native.is_current(target, jobs)
    target.write_bytes(b"no library")
    assert not build_native.is_current(target, jobs)


@needs_compiler
def test_a_library_says_what_it_was_made_of(source: Path, tmp_path: Path) -> None:
    target, jobs = tmp_path / "_native.so", [(source, "one", ["-DANSWER=42"])]
    build_native.build(target, jobs)
    library = ctypes.CDLL(str(target))
    library.radix_build_id.restype = ctypes.c_char_p
    assert library.radix_build_id().decode() == build_native.build_id(jobs)


@needs_compiler
def test_another_compiler_builds_again_and_none_takes_what_has_the_same_sources(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, jobs = tmp_path / "_native.so", [(source, "one", ["-DANSWER=42"])]
    build_native.build(target, jobs)
    other = tmp_path / "bin" / "g++"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho another compiler 1.0\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{other.parent}:/bin:/usr/bin")
    assert not build_native.is_current(target, jobs)
    other.unlink()
    monkeypatch.setenv("PATH", str(other.parent))
    assert build_native.is_current(target, jobs)
    source.write_text(GOOD.replace("ANSWER", "7"))
    assert not build_native.is_current(target, jobs)


class Screen:
    """What hatchling shows to people."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def display_warning(self, text: str) -> None:
        self.warnings.append(text)


def run_hook(target: Path, jobs: list, monkeypatch: pytest.MonkeyPatch) -> tuple[dict, list[str]]:
    """What the hook says of a build with one library, and what it shows."""
    monkeypatch.setattr(build_native, "LIBRARIES", ((str(target), lambda: jobs, "answer machine"),))
    data: dict = {"artifacts": [], "pure_python": True, "infer_tag": False}
    hook = build_native.NativeBuildHook("", {}, None, None, "", "wheel")  # type: ignore[arg-type]
    screen = Screen()
    monkeypatch.setattr(build_native.NativeBuildHook, "app", screen)
    hook.initialize("standard", data)
    return data, screen.warnings


def test_an_install_without_a_compiler_succeeds_and_says_what_it_lost(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    data, shown = run_hook(tmp_path / "_native.so", [(source, "one", [])], monkeypatch)
    assert data == {"artifacts": [], "pure_python": True, "infer_tag": False}
    assert len(shown) == 1
    assert "no native answer machine (there is no C++ compiler)" in shown[0]


@needs_compiler
def test_an_install_takes_the_library_along_and_belongs_to_its_platform(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, jobs = tmp_path / "_native.so", [(source, "one", ["-DANSWER=42"])]
    for _ in range(2):  # built, then taken as it is
        data, shown = run_hook(target, jobs, monkeypatch)
        assert data == {"artifacts": [f"/{target}"], "pure_python": False, "infer_tag": True}
        assert shown == []
    assert ctypes.CDLL(str(target)).answer() == 42
