"""The rules of the house, as tests: file sizes, docstrings, imports, the environment, packaging, documents that must stay true."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("lang", "runtime", "radix_cache", "grammar", "kernels")
ROOT_FILES = (
    "__init__.py", "__main__.py", "errors.py", "offline.py", "cli.py", "cli_grammar.py", "flags.py", "console.py",
    "reports.py", "bench.py", "bench_programs.py", "doctor.py",
)  # fmt: skip
SOURCES = [ROOT / name for name in ROOT_FILES] + [
    path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
]
TORCH_FREE = ("lang", "radix_cache", "grammar")
TORCH_FREE_RUNTIME = (
    "scheduler", "request", "plan", "messages", "gateway", "branches", "text_memory", "transport", "client",
    "local", "launch", "config", "compile_worker", "tokenizer", "chat_template", "gguf_file", "model_files",
    "native_runner", "native_sampler", "packed_weights", "runner_steps", "runner_protocol", "engine", "engine_process",
    "decoder", "packed", "packed_file", "pool", "library", "step",
)  # fmt: skip


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file, the module first; every rule reads the same ones."""
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imported_names(path: Path) -> set[str]:
    """Top-level packages that a file imports from outside, wherever in the file it does so."""
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.split(".")[0])
    return names


def function_lengths(path: Path) -> list[tuple[str, int]]:
    return [
        (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_every_module_opens_with_a_docstring_and_is_short(path: Path) -> None:
    module = nodes_of(path)[0]
    assert isinstance(module, ast.Module)
    assert ast.get_docstring(module), "a module says what it is, owns and must not know"
    assert path.read_text().count("\n") <= 400
    long = [(name, lines) for name, lines in function_lengths(path) if lines > 60]
    assert not long, f"functions over 60 lines: {long}"


def test_no_file_is_a_junk_drawer() -> None:
    drawers = [
        relative(p) for p in SOURCES if re.search(r"(utils?|helpers?|common|misc)\.py$", p.name)
    ]
    assert not drawers


def test_no_module_speaks_pickle() -> None:
    guilty = [
        relative(p)
        for p in SOURCES
        if imported_names(p) & {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
    ]
    assert not guilty


def test_torch_stays_with_the_kernels_and_the_model() -> None:
    guilty = [
        relative(p)
        for p in SOURCES
        if (
            p.parent.name in TORCH_FREE
            or relative(p).split("/")[0] in TORCH_FREE
            or p.stem in TORCH_FREE_RUNTIME
        )
        and imported_names(p) & {"torch", "triton"}
    ]
    assert not guilty


ALLOWED_IMPORTERS = {
    "zmq": ("runtime/transport.py", "runtime/client.py", "runtime/gateway"),
    "interegular": ("grammar/",),
    "pydantic": ("lang/schema",),
    "typer": ("cli.py", "cli_grammar.py", "flags.py"),
    "greenlet": ("lang/",),
    "tokenizers": ("runtime/tokenizer",),
    "jinja2": ("runtime/chat_template.py", "runtime/template_"),
    "gguf": ("runtime/gguf_file.py", "runtime/models/", "runtime/tokenizer_gguf.py"),
    "safetensors": ("runtime/models/",),
    "transformers": ("runtime/models/",),
    "torch": ("kernels/", "runtime/models/", "runtime/model_runner.py", "runtime/sampler", "runtime/sampling_noise.py",
              "runtime/kv_buffers.py", "runtime/model_facts.py"),
    "triton": ("kernels/triton/",),
    "starlette": ("runtime/http/",),
    "uvicorn": ("runtime/http/",),
    "prometheus_client": ("runtime/http/",),
    "h11": ("runtime/http/",),
    "httpx2": ("runtime/remote/",),
    "jsonschema": ("lang/extraction/target.py",),
    "referencing": ("lang/extraction/target.py",),
    "pyarrow": ("lang/extraction/parquet.py",),
}  # fmt: skip


@pytest.mark.parametrize("package", sorted(ALLOWED_IMPORTERS))
def test_a_third_party_package_is_used_only_where_it_belongs(package: str) -> None:
    allowed = ALLOWED_IMPORTERS[package]
    guilty = [
        relative(p)
        for p in SOURCES
        if package in imported_names(p) and not relative(p).startswith(allowed)
    ]
    assert not guilty


def test_only_the_config_reads_the_environment() -> None:
    guilty = [
        relative(p)
        for p in SOURCES
        if re.search(r"os\.environ|os\.getenv|from os import environ", p.read_text())
        and relative(p) != "runtime/config.py"
    ]
    assert not guilty


def test_import_contracts_hold() -> None:
    run = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.timeout(320)  # it compiles the native libraries unless they are current
def test_the_wheel_holds_the_package_with_its_libraries_and_nothing_beside_it(
    tmp_path: Path,
) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"radixlm"}
    if shutil.which("g++") or shutil.which("clang++"):
        assert {"radixlm/kernels/cpu/_native.so", "radixlm/grammar/_native.so"} <= set(names)


def test_the_top_level_holds_only_the_agreed_names() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    if tracked.returncode != 0:
        pytest.skip("not a git checkout")
    tops = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    agreed = {*FOLDERS, *ROOT_FILES, "tests", "examples", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md",
              "CONTRIBUTING.md", "Makefile", "py.typed"}  # fmt: skip
    assert {top for top in tops if not top.startswith(".")} <= agreed


def test_each_folder_explains_itself() -> None:
    missing = [folder for folder in FOLDERS if not (ROOT / folder / "README.md").is_file()]
    assert not missing
