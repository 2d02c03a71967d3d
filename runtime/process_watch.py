"""Who is alive: children end with their parent, and the end of another process is noticed at once.

Linux tells both: `prctl(PR_SET_PDEATHSIG)` sends a child SIGKILL when the thread that started it ends (so children are started from a
thread that lives as long as they shall), and a pidfd becomes readable when its process ends (pidfd_open(2), Linux 5.3). Elsewhere
processes are polled. Owns no process; knows no socket and no message.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
POLL_INTERVAL_S = 0.5  # where there is no pidfd


def die_with_parent(parent_pid: int) -> None:
    """End this process, with SIGKILL, when its parent does; now, if the parent ended before this call."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    leave_if_orphaned(parent_pid)


def leave_if_orphaned(parent_pid: int) -> None:
    """End this process if `parent_pid` is its parent no more (for systems without PDEATHSIG, called from idle loops)."""
    if parent_pid and os.getppid() != parent_pid:
        os._exit(1)


def is_alive(pid: int) -> bool:
    """Does a process of that number exist (zombies count)?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class ProcessWatch:
    """Calls `on_death` once, on the loop, when process `pid` has ended (also when it ended before)."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pid: int, on_death: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._pid = pid
        self._on_death = on_death
        self._pidfd = -1
        self._timer: asyncio.Handle | None = None
        self._is_over = False
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._timer = loop.call_soon(self._died)
            return
        except (AttributeError, OSError):  # another system, or a kernel without it
            self._poll()
            return
        loop.add_reader(self._pidfd, self._died)

    def cancel(self) -> None:
        """Stop watching."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def _poll(self) -> None:
        if is_alive(self._pid):
            self._timer = self._loop.call_later(POLL_INTERVAL_S, self._poll)
        else:
            self._died()

    def _died(self) -> None:
        if not self._is_over:
            self.cancel()
            self._on_death()
