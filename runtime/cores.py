"""How many cores this process may use: what the scheduler lets it run on, and what its control group pays for.

Owns the reading of the kernel's files (cgroups v2 and v1, Linux's `cgroups(7)`); knows no configuration. A container that may use two of
sixty-four cores sees all of them; more threads than that would wait for each other at every barrier.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path


def usable_cores(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Cores this process may run on, at least 1: the affinity mask, or fewer where the control group's quota is smaller, rounded up."""
    allowed = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quotas = [_quota(folder) for folder in _folders(root, own)]
    return max(1, min([allowed, *(math.ceil(cores) for cores in quotas if cores is not None)]))


def _folders(root: Path, own: Path) -> list[Path]:
    """Of this process's group and those above it, v2; or of the v1 controller of processor time."""
    found = [root, root / "cpu", root / "cpu,cpuacct"]
    with suppress(OSError, ValueError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            base = root if not controllers else root / controllers
            if not controllers or "cpu" in controllers.split(","):
                place = base / path.lstrip("/")
                found += [place, *(each for each in place.parents if base in each.parents)]
    return found


def _quota(folder: Path) -> float | None:
    """Cores' worth of processor time that a group may use; None without a bound."""
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        return None if quota == "max" else int(quota) / int(period)
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota = (folder / "cpu.cfs_quota_us").read_text(encoding="utf-8")
        period = (folder / "cpu.cfs_period_us").read_text(encoding="utf-8")
        return int(quota) / int(period) if int(quota) > 0 else None
    return None
