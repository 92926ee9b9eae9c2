"""How much memory is there."""

from __future__ import annotations

import os
from pathlib import Path


def available_memory() -> int:
    """Return the bytes that can be had without swapping, a container's limit included."""
    free = _proc_available()
    limit, used = (_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if limit is not None:
        free = min(free, max(limit - (used or 0), 0))
    return free


def _proc_available() -> int:
    """Return what the kernel calls available; half of the physical memory where it cannot say."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return 4 << 30  # Windows has no sysconf; 4 GiB is there on anything that runs SciPy


def _number(path: str) -> int | None:
    """Return the whole number in a file, None if there is no file or it says `max`."""
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None
