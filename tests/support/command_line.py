"""The command line as its user runs it: a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `radixlm` with these arguments, at most a minute."""
    return subprocess.run(
        [sys.executable, "-m", "radixlm", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
    )
