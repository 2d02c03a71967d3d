"""Builds the native kernels while the package is built: hatchling's hook, and the two functions that it calls.

    pip install .      compiles kernels/cpu/src/*.cpp to kernels/cpu/_native.so and puts it into the wheel

Needs g++ or clang++ on the path. Without a compiler, or when it fails, the install succeeds all the same and says what is lost: the
reference kernels serve then. Each instruction set is one compilation of `unit.cpp`. Imports nothing of radixlm.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path(__file__).parent / "cpu"
FLAGS = [
    "-O3",
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-pthread",
    "-Wall",
    "-Wextra",
]
X86 = {"avx2": ["-mavx2", "-mfma", "-mf16c"]}


class NativeBuildHook(BuildHookInterface):
    """Compiles before files are gathered, and marks the wheel as belonging to this platform if that worked."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling's build hook interface."""
        problem = build(FOLDER / "_native.so")
        if problem:
            self.app.display_warning(
                f"radixlm: no native CPU kernels ({problem}); the slower reference kernels serve"
            )
            return
        build_data["artifacts"].append("/kernels/cpu/_native.so")
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def build(target: Path) -> str | None:
    """Compile and link to `target`; None, or one line saying why not."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return "there is no C++ compiler"
    is_x86 = platform.machine().lower() in {"x86_64", "amd64"}
    sets = {"portable": [], **(X86 if is_x86 else {})}
    defines = [f"-DRADIX_HAS_{name.upper()}" for name in sets if name != "portable"]
    source = FOLDER / "src"
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            (source / "unit.cpp", Path(folder, f"{name}.o"), [f"-DRADIX_ISA={name}", *flags])
            for name, flags in sets.items()
        ]
        jobs.append((source / "library.cpp", Path(folder, "library.o"), []))
        for path, made, flags in jobs:
            problem = _run([compiler, *FLAGS, *defines, *flags, "-c", str(path), "-o", str(made)])
            if problem:
                return problem
        linked = Path(folder, "native.so")
        objects = [str(made) for _, made, _ in jobs]
        problem = _run([compiler, "-shared", "-pthread", *objects, "-o", str(linked)])
        if problem:
            return problem
        # a new file under the old name: a running process keeps the one it has mapped
        staged = target.with_suffix(".new")
        shutil.copyfile(linked, staged)
        staged.replace(target)
    return None


def _run(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if "error" in line] or ["it failed"]
    return f"{Path(command[0]).name}: {lines[0]}"


if __name__ == "__main__":  # rebuild in place, for people who work on the kernels
    found = build(FOLDER / "_native.so")
    sys.exit(found and f"radixlm: {found}")
