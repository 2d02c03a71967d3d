"""Bounded waits and questions about processes, for tests that start some."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil


def wait_until(
    condition: Callable[[], bool], timeout_s: float = 30.0, what: str = "the condition"
) -> None:
    """Poll until `condition()` holds; AssertionError after `timeout_s`."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"{what} did not hold within {timeout_s:g} s"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Is the process there and not a zombie?"""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants(pid: int) -> list[int]:
    """Pids of all living processes below `pid`."""
    return [
        child.pid
        for child in psutil.Process(pid).children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE
    ]


def has_mapped(pid: int, library: str) -> bool:
    """Does the process have a file of that name in its memory?"""
    return library in Path(f"/proc/{pid}/maps").read_text()
