"""`import radixlm`, with what a program is written in, is light: few modules, few milliseconds."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "torch", "zmq", "tokenizers", "transformers", "interegular", "numpy", "pydantic", "greenlet", "jinja2", "gguf",
    "uvloop", "rich", "typer", "asyncio", "msgspec",
)  # fmt: skip
PROGRAM = """
import sys, time
start = time.process_time()
import radixlm
from radixlm import function, gen, select, system, user, assistant

@function
def f(s, question):
    s += user(question) + assistant("x")

spent_ms = (time.process_time() - start) * 1000
print(spent_ms, *(name for name in %r if name in sys.modules))
"""


def measure() -> tuple[float, list[str]]:
    """Milliseconds of processor time (other work on the machine does not count), and heavy modules loaded."""
    command = [sys.executable, "-c", PROGRAM % (HEAVY,)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    spent_ms, *heavy = out.stdout.split()
    return float(spent_ms), heavy


def test_defining_programs_loads_no_heavy_package_and_takes_under_150_ms() -> None:
    runs = [measure() for _ in range(5)]
    assert runs[0][1] == []
    assert min(spent_ms for spent_ms, _ in runs) < 150
