"""Builds the native libraries while the package is built: hatchling's hook, and the functions that it calls.

    pip install .      compiles kernels/cpu/src to kernels/cpu/_native.so and grammar/native/src to grammar/_native.so, into the wheel

Needs g++ or clang++ on the path. Without a compiler, or when it fails, the install succeeds all the same and says what is lost: the
reference kernels and the numpy grammar engine serve then. A library carries what it was made of: a digest of its sources and this file,
and one of compiler and flags. One that carries the right digests is taken as it is, wherever it came from; without a compiler the first
is enough. Each instruction set of the kernels is one compilation of `unit.cpp`. Imports nothing of radixlm.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent.parent
KERNELS = "kernels/cpu/_native.so"
GRAMMAR = "grammar/_native.so"
FLAGS = ["-O3", "-std=c++17", "-fPIC", "-fvisibility=hidden", "-pthread", "-Wall", "-Wextra"]
AVX2 = ["-mavx2", "-mfma", "-mf16c"]
AVX512 = [
    *AVX2,
    "-mavx512f",
    "-mavx512bw",
    "-mavx512vl",
    "-mavx512vnni",
    "-Wno-maybe-uninitialized",  # gcc 12 takes the undefined third operand in its own headers for a mistake
]
X86 = {
    "avx2": AVX2,
    "avxvnni": [*AVX2, "-mavxvnni"],
    "avx512vnni": AVX512,
    "avx512bf16": [*AVX512, "-mavx512bf16"],
}

_MARK = "radixlm-build:"
_BUILD_ID = 'extern "C" __attribute__((visibility("default"))) const char* radix_build_id() {{ return "{}"; }}\n'

_Job = tuple[Path, str, list[str]]  # source, name of the object file, its own flags


class NativeBuildHook(BuildHookInterface):
    """Compiles before files are gathered, and marks the wheel as belonging to this platform if that worked."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling's build hook interface."""
        for target, jobs, loss in LIBRARIES:
            problem = None if is_current(ROOT / target, jobs()) else build(ROOT / target, jobs())
            if problem:
                self.app.display_warning(
                    f"radixlm: no native {loss} ({problem}); slower ones serve"
                )
                continue
            build_data["artifacts"].append(f"/{target}")
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


def kernel_jobs() -> list[_Job]:
    """The CPU kernels: one object per instruction set that the compiler knows, and the library's border."""
    source = ROOT / "kernels" / "cpu" / "src"
    is_x86 = platform.machine().lower() in {"x86_64", "amd64"}
    known = {name: flags for name, flags in X86.items() if is_x86 and _takes(flags)}
    sets = {"portable": [], **known}
    # the same bits on every path: no fused multiply-add that the compiler chooses
    shared = ["-ffp-contract=off"]
    shared += [f"-DRADIX_HAS_{name.upper()}" for name in sets if name != "portable"]
    jobs = [
        (source / "unit.cpp", name, [*shared, f"-DRADIX_ISA={name}", *flags])
        for name, flags in sets.items()
    ]
    # first, and then the plainest: of functions that several units have, the linker keeps the one it meets first, and it must run anywhere
    return [(source / "library.cpp", "library", shared), *jobs]


def grammar_jobs() -> list[_Job]:
    """The grammar engine: its two halves."""
    source = ROOT / "grammar" / "native" / "src"
    return [(source / f"unit_{half}.cpp", half, []) for half in ("compile", "match")]


LIBRARIES = (
    (KERNELS, kernel_jobs, "CPU kernels"),
    (GRAMMAR, grammar_jobs, "grammar engine"),
)


def is_current(target: Path, jobs: list[_Job]) -> bool:
    """Is the library there and made of these sources, and by this compiler with these flags if there is a compiler?"""
    try:
        made_of = target.read_bytes()
    except OSError:
        return False
    wanted = f"{_MARK}{_digest_of_sources(jobs)}:"
    if _compiler() is not None:
        wanted = build_id(jobs)
    return wanted.encode() in made_of


def build_id(jobs: list[_Job]) -> str:
    """What the library carries: digests of its sources, and of compiler and flags."""
    flags = [FLAGS, *([name, *own] for _, name, own in jobs)]
    version = subprocess.run([str(_compiler()), "--version"], capture_output=True, text=True)
    tools = hashlib.sha256(repr((flags, version.stdout)).encode()).hexdigest()
    return f"{_MARK}{_digest_of_sources(jobs)}:{tools[:16]}"


def _digest_of_sources(jobs: list[_Job]) -> str:
    """Of every file of the sources' folders, of this one, and of the kind of machine."""
    digest = hashlib.sha256(f"{sys.platform} {platform.machine()}".encode())
    folders = sorted({source.parent for source, _, _ in jobs})
    for path in [
        Path(__file__),
        *(path for folder in folders for path in sorted(folder.iterdir())),
    ]:
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def build(target: Path, jobs: list[_Job]) -> str | None:
    """Compile and link to `target`; None, or one line saying why not."""
    compiler = _compiler()
    if compiler is None:
        return "there is no C++ compiler"
    with tempfile.TemporaryDirectory() as folder:
        origin = Path(folder, "build_id.cpp")
        origin.write_text(_BUILD_ID.format(build_id(jobs)))
        commands = [
            [compiler, *FLAGS, *flags, "-c", str(path), "-o", str(Path(folder, f"{name}.o"))]
            for path, name, flags in [*jobs, (origin, "build_id", [])]
        ]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            problem = next((found for found in pool.map(_run, commands) if found), None)
        if problem:
            return problem
        linked = Path(folder, "native.so")
        objects = [command[-1] for command in commands]
        problem = _run([compiler, "-shared", "-pthread", *objects, "-o", str(linked)])
        if problem:
            return problem
        # a new file under the old name: a running process keeps the one it has mapped
        staged = target.with_suffix(".new")
        shutil.copyfile(linked, staged)
        staged.replace(target)
    return None


def _compiler() -> str | None:
    return shutil.which("g++") or shutil.which("clang++")


def _takes(flags: list[str]) -> bool:
    """Whether the compiler knows all of them."""
    compiler = _compiler()
    command = [str(compiler), *flags, "-fsyntax-only", "-x", "c++", os.devnull]
    return compiler is not None and _run(command) is None


def _run(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if "error" in line] or ["it failed"]
    return f"{Path(command[0]).name}: {lines[0]}"


def main(wanted: list[str]) -> str | None:
    """Rebuild in place what is named (all by default), for people who work on the native code; what went wrong."""
    for target, jobs, _ in LIBRARIES:
        if not wanted or target in wanted:
            problem = build(ROOT / target, jobs())
            if problem:
                return f"radixlm: {target}: {problem}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
