"""`radixlm chat` on a pseudo-terminal and the real model: answers stream, Ctrl-C stops one, the dialogue goes on, /quit ends it cleanly."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest


class Terminal:
    """A command on a pseudo-terminal of its own session, where Ctrl-C reaches its whole foreground group."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self.shown = ""
        self._seen = 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_SESSION, sys.executable, "-m", "radixlm", *arguments],
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def send(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, words: str, timeout_s: float = 90.0) -> None:
        """Read until `words` are shown behind what was waited for before."""
        deadline_s = time.monotonic() + timeout_s
        while (at := self.shown.find(words, self._seen)) < 0:
            left_s = deadline_s - time.monotonic()
            assert left_s > 0, f"{words!r} did not come; shown: {self.shown!r}"
            if select.select([self._master], [], [], left_s)[0]:
                try:
                    self.shown += os.read(self._master, 4096).decode(errors="replace")
                except OSError:
                    pytest.fail(f"{words!r} did not come before the end: {self.shown!r}")
        self._seen = at + len(words)

    def close(self) -> int:
        try:
            return self.process.wait(30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            os.close(self._master)


_IN_SESSION = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal is this session's
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.model
def test_an_answer_is_stopped_by_ctrl_c_and_the_dialogue_goes_on(smollm2_files: object) -> None:
    terminal = Terminal("chat", "--threads", "1", "--max-tokens", "400", "--system", "Be brief.")
    try:
        terminal.wait_for("/help lists commands")
        terminal.wait_for("> ")
        terminal.send("/regex [a-z ]{300,400}\n")  # an answer that cannot end before it is stopped
        terminal.wait_for("> ")
        terminal.send("Tell me a story.\n")
        terminal.wait_for("\n")  # the echo of the line
        terminal.wait_for(" ")  # the answer has begun
        terminal.send("\x03")
        terminal.wait_for("(stopped)")
        terminal.wait_for("> ")
        terminal.send("\x03")  # at the prompt it only clears the line
        terminal.send("/regex (yes|no)\n")
        terminal.send("Is water wet?\n")
        terminal.wait_for("prompt tokens cached")
        terminal.send("/quit\n")
    except BaseException:
        terminal.process.kill()
        raise
    finally:
        status = terminal.close()
    assert status == 0, terminal.shown
    assert "Traceback" not in terminal.shown
