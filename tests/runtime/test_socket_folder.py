"""Socket folders are private, their paths fit, and those of killed processes are removed, never a living one's."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from radixlm.errors import ConfigError
from radixlm.runtime.socket_folder import SocketFolder, remove_abandoned


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path is short: pytest's own may leave no room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="rl") as folder:
        yield Path(folder)


def test_the_folder_is_private_and_goes_when_told(short_path: Path) -> None:
    folder = SocketFolder(str(short_path))
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    folder.remove()
    folder.remove()
    assert not list(short_path.iterdir())


def test_a_place_that_cannot_be_used_is_refused_and_left_clean(short_path: Path) -> None:
    with pytest.raises(ConfigError, match="no socket folder"):
        SocketFolder(str(short_path / "missing"))
    deep = short_path / ("x" * 90)
    deep.mkdir()
    with pytest.raises(ConfigError, match="too long"):
        SocketFolder(str(deep))
    assert not list(deep.iterdir())


def test_the_folder_of_a_killed_process_is_removed_and_a_living_ones_is_not(
    short_path: Path,
) -> None:
    script = """
import sys, time
from radixlm.runtime.socket_folder import SocketFolder
folder = SocketFolder(sys.argv[1])
print(folder.path, flush=True)
time.sleep(600)
"""
    owner = subprocess.Popen(
        [sys.executable, "-c", script, str(short_path)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    path = Path(owner.stdout.readline().strip())
    mine = SocketFolder(str(short_path))
    (short_path / "radixlm-of-something-else").mkdir()
    assert remove_abandoned(str(short_path)) == 0
    assert path.is_dir()
    owner.kill()
    owner.communicate()
    assert remove_abandoned(str(short_path)) == 1
    assert not path.exists()
    assert mine.path.is_dir()
    mine.remove()
