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


def test_only_a_library_younger_than_all_it_is_made_of_is_current(
    source: Path, tmp_path: Path
) -> None:
    target, jobs = tmp_path / "_native.so", [(source, "one", [])]
    assert not build_native.is_current(target, jobs)
    target.write_bytes(b"")
    header = source.with_name("answer.h")
    header.write_text("")
    now = header.stat().st_mtime

    def is_current(built: float, header_changed: float) -> bool:
        os.utime(target, (built, built))
        os.utime(header, (header_changed, header_changed))
        return build_native.is_current(target, jobs)

    assert is_current(now + 9, now)
    assert not is_current(now + 9, now + 10)
    assert is_current(now + 11, now + 10)
    assert not is_current(0, 0), "it is older than the script that says how it is made"
