"""How much memory is there, and what that means for a matrix."""

from __future__ import annotations

import os
from pathlib import Path

_SHARE = 4  # without a limit, one matrix may take a quarter: solvers need copies and a basis


def storage_for(n_samples: int, memory_limit: int | None) -> str:
    """Return `dense` if 8 N² bytes fit into `memory_limit`, else `tiled`.

    Without a limit, a quarter of the memory that is available now counts as the limit.

    Examples
    --------
    >>> storage_for(1000, memory_limit=8_000_000), storage_for(1001, memory_limit=8_000_000)
    ('dense', 'tiled')
    """
    limit = available_memory() // _SHARE if memory_limit is None else memory_limit
    return "dense" if 8 * n_samples * n_samples <= limit else "tiled"


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
