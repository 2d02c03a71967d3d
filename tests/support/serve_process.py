"""`radixlm serve` as a user starts it: its address, its processes by role and their memory, what it says on stderr, its counters."""

from __future__ import annotations

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
from prometheus_client.parser import text_string_to_metric_families

ROLES = ("gateway", "engine", "compile-worker")


class ServeProcess:
    """A running server."""

    def __init__(self, options: dict[str, Any]) -> None:
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "radixlm", "serve", "--port", "0", *words],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        self.stderr: list[str] = []
        self.url = ""
        for line in self._process.stderr:
            self.stderr.append(line)
            if " on http://" in line:
                self.url = line.split()[-1]
                break
        assert self.url, f"no server: {self.stderr}"
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self.stderr.extend(self._process.stderr)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def processes(self) -> dict[str, psutil.Process]:
        """The living ones, by role."""
        server = psutil.Process(self._process.pid)
        found = {"server": server}
        for child in server.children(recursive=True):
            try:
                words = child.cmdline()
            except psutil.Error:
                continue
            found.update({role: child for role in ROLES if role in words})
        return found

    def samples(self) -> dict[str, float]:
        """/metrics, by name and labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as page:
            text = page.read().decode()
        return {
            sample.name + "".join(f"[{value}]" for _, value in sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }  # fmt: skip

    def end(self) -> int:
        """SIGTERM; the exit status."""
        self._process.terminate()
        status = self._process.wait(60)
        self._listener.join()
        return status

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()
        assert self._process.stderr is not None
        self._process.stderr.close()


@contextmanager
def serving(**options: Any) -> Iterator[ServeProcess]:
    """A server for the time of the block."""
    process = ServeProcess(options)
    try:
        yield process
    finally:
        process.kill()
