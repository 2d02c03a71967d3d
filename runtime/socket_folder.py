"""The private folder of one engine's sockets, and the removal of those that killed processes left.

The folder has mode 0700 and holds a lock file that its owner keeps locked (flock(2)) while it lives; the kernel lets go of the lock
however the owner ends, so an unlocked folder belongs to nobody and may go. Process ids would not do: containers that share a temporary
folder do not share them. Owns the folder; knows no socket.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from ..errors import ConfigError

PREFIX = "radixlm-"
LOCK_NAME = "lock"
MAX_PATH_BYTES = (
    88  # the kernel takes 107 for a socket's whole path; the rest is for names and a margin
)


class SocketFolder:
    """A new folder in `parent`, or in the system's temporary folder. ConfigError when it cannot be made or its path is too long."""

    def __init__(self, parent: str = "") -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent or None))
        except OSError as error:
            raise ConfigError(
                f"no socket folder can be made in {parent!r}: {error.strerror}", place="socket_dir"
            ) from None
        if len(os.fsencode(self.path)) > MAX_PATH_BYTES:
            shutil.rmtree(self.path, ignore_errors=True)
            raise ConfigError(
                f"the socket folder's path {str(self.path)!r} is too long for a Unix socket",
                place="socket_dir",
                hint="Set socket_dir to a shorter one, such as '/tmp'",
            )
        unlocked = self.path / "unlocked"
        self._lock = _try_lock(unlocked, os.O_CREAT)
        unlocked.rename(self.path / LOCK_NAME)  # the lock is never seen before it is held

    def remove(self) -> None:
        """Remove the folder and give up the lock. Safe to call twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def remove_abandoned(parent: str = "") -> int:
    """Remove this user's socket folders whose owners ended without doing so; how many."""
    num_removed = 0
    for folder in Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        lock = _try_lock(folder / LOCK_NAME)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            num_removed += 1
    return num_removed


def _try_lock(path: Path, flags: int = 0) -> int | None:
    """The locked descriptor of `path`, or None when it is missing, somebody else's or locked."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
