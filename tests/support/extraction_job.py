"""A job on a scripted backend that answers at once, and the same as processes that are killed.

    python extraction_job.py FOLDER random SEED     kills the job at random moments until one run reaches its end
    python extraction_job.py FOLDER calls N         lets run n, for n = 1 .. N, kill itself just before its n-th write, sync or
                                                    transaction: points that a kill from outside rarely meets

The job reads FOLDER/notes.jsonl and writes FOLDER/out.jsonl. This program has one thread, so that it may fork.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from radixlm.lang.extract import Summary, extract_files
from radixlm.lang.testing import Request, ScriptedBackend

SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "word": {"type": "string"}},
    "required": ["number", "word"],
    "additionalProperties": False,
}


def document_of(request: Request) -> str:
    """The document's text in a prompt."""
    asked = request.prompt.partition("<|im_start|>user\n")[2].partition("<|im_end|>")[0]
    return asked.rpartition("\n\nReport as JSON:")[0] or asked


def answer(request: Request) -> str:
    """What the scripted model reads in "note 12 about rain"."""
    found = re.search(r"note (\d+) about (\w+)", document_of(request))
    assert found is not None, request.prompt
    return json.dumps({"number": int(found[1]), "word": found[2]})


def slow_answer(request: Request) -> str:
    time.sleep(0.0005)
    return answer(request)


def write_notes(path: Path, num: int, broken: tuple[int, ...] = ()) -> None:
    """num JSON lines; those in `broken` are no JSON."""
    lines = [
        "{broken"
        if n in broken
        else json.dumps({"text": f"note {n} about {'rain' if n % 2 else 'sun'}"})
        for n in range(num)
    ]
    path.write_text("\n".join(lines) + "\n")


def run_job(folder: Path, answers: Callable[[Request], Any] = answer, **options: Any) -> Summary:
    """The job over FOLDER/notes.jsonl."""
    backend = ScriptedBackend(default=answers)
    return extract_files(
        folder / "notes.jsonl",
        SCHEMA,
        folder / options.pop("output", "out.jsonl"),
        backend=backend,
        **options,
    )


def die_at_call(number: int) -> None:
    """End this process by SIGKILL just before the number-th write, sync or transaction of the job."""
    from radixlm.lang.extraction.journal import Journal
    from radixlm.lang.extraction.outputs import LineFile

    calls = 0

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return call

    LineFile.append = counted(LineFile.append)
    LineFile.sync = counted(LineFile.sync)
    Journal.commit = counted(Journal.commit)
    Journal.begin = counted(Journal.begin)


def run_in_fork(folder: Path, call: int = 0) -> int:
    """The process id of a child that runs the job."""
    pid = os.fork()
    if pid:
        return pid
    try:
        if call:
            die_at_call(call)
        run_job(folder, slow_answer, num_under_way=8)
    except BaseException:  # noqa: BLE001  the child of a fork must not return
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def end_of(pid: int) -> int:
    """0 if the child reached its end, -9 if it was killed; anything else ends this program."""
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code not in (0, -signal.SIGKILL):
        sys.exit(1)
    return code


def kill_randomly(folder: Path, seed: int) -> int:
    """How many runs were killed after they had written something, before one reached its end."""
    chance = random.Random(seed)
    output = folder / "out.jsonl"
    num_killed = 0
    for number in count():
        size = output.stat().st_size if output.exists() else 0
        pid = run_in_fork(folder)
        time.sleep(
            0.01 * number + chance.random() * 0.3
        )  # longer each time: it ends on any machine
        os.kill(pid, signal.SIGKILL)
        if end_of(pid) == 0:
            return num_killed
        num_killed += output.exists() and output.stat().st_size > size
    raise AssertionError("count() has no end")


if __name__ == "__main__":
    where, mode, how_many = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if mode == "random":
        print(kill_randomly(where, how_many))
    else:
        print(sum(end_of(run_in_fork(where, call)) != 0 for call in range(1, how_many + 1)))
