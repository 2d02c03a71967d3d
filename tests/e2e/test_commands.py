"""Commands as a user runs them, on the real model: a constrained answer from a pipe, a traced program, a server that ends on a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

RADIXLM = [sys.executable, "-m", "radixlm"]
PROGRAM = """
from radixlm import assistant, function, gen, select, user

@function
def judge(s, review: str):
    s += user(review + " Positive or negative?")
    s += assistant("It is " + select("mood", ["positive", "negative"]) + ".")
    forks = s.fork(2)
    forks += user("Why?") + assistant(gen("why", max_tokens=4))
    forks.join()
"""


@pytest.mark.model
def test_generate_continues_a_pipe_under_a_schema(smollm2_files: object, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"type": "array", "items": {"enum": [1, 2]}, "maxItems": 3}))
    done = subprocess.run(
        [*RADIXLM, "generate", "-", "--schema", str(path), "--threads", "1", "--num-pages", "200"],
        input="A list of numbers: ", capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) <= {1, 2}


@pytest.mark.model
def test_run_traces_what_forks_share(smollm2_files: object, tmp_path: Path) -> None:
    path = tmp_path / "judge_program.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [*RADIXLM, "run", str(path), "--arg", "review=The room was clean.", "--trace", "-t", "1"],
        capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert 'mood = "' in done.stdout
    assert 'user "The room was clean. Positive or negative?"' in done.stdout
    assert done.stdout.count("-- gen why = ") == 2
    counts = [line for line in done.stdout.splitlines() if "gen why" in line]
    assert any(" 0 hit" not in line for line in counts)  # one of the forks found the other's prefix


@pytest.mark.model
def test_serve_says_where_it_is_answers_and_drains_on_a_signal(smollm2_files: object) -> None:
    server = subprocess.Popen(
        [*RADIXLM, "serve", "--port", "0", "--threads", "1"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stderr is not None
        lines = iter(server.stderr.readline, "")
        said = next((line for line in lines if "serving" in line), "")
        assert "smollm2-135m on http://127.0.0.1:" in said
        url = said.split()[-1]
        with urllib.request.urlopen(f"{url}/health", timeout=30) as answer:
            assert answer.status == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.communicate()
