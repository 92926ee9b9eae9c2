"""How much memory is available, and whether a matrix fits."""

import math
import os
from pathlib import Path

# Limit, usage and statistics of Linux's control groups, versions 2 and 1.
_CGROUPS = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)


def available_memory(root: Path = Path("/")) -> int:
    """Return the bytes available without swapping, within a container's limit."""
    return int(min(_machine(root), *(_container(root, files) for files in _CGROUPS)))


def _machine(root: Path) -> int:
    """Return the kernel's estimate, or half of the physical memory."""
    for words in _words(root / "proc" / "meminfo"):
        if words[0] == "MemAvailable:":
            return int(words[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return 4 << 30  # Windows has no sysconf; any machine that runs SciPy has 4 GiB


def _container(root: Path, files: tuple[str, str, str]) -> float:
    """Return the bytes left in a control group; infinity without a limit."""
    limit, used, statistics = (_words(root / "sys" / "fs" / "cgroup" / name) for name in files)
    if not limit or not limit[0][0].isdecimal():  # no such group, or `max`
        return math.inf
    counts = {name: int(number) for name, number in statistics}
    # The page cache counts as used, but is freed on demand.
    cached = counts.get("total_inactive_file", counts.get("inactive_file", 0))
    in_use = int(used[0][0]) - cached if used else 0
    return max(int(limit[0][0]) - max(in_use, 0), 0)


def _words(path: Path) -> list[list[str]]:
    """Return the words of each line; none if the file does not exist (not Linux)."""
    try:
        return [line.split() for line in path.read_text().splitlines() if line.strip()]
    except OSError:
        return []


def fits_into_memory(n_bytes: int) -> bool:
    """Whether a matrix takes at most a quarter of memory: solvers need copies and a basis."""
    return n_bytes <= available_memory() // 4


def storage_for(n_samples: int, memory_limit: int | None) -> str:
    """Return `dense` if 8 N² bytes fit into `memory_limit` (default: memory / 4), else `tiled`."""
    n_bytes = 8 * n_samples * n_samples
    fits = fits_into_memory(n_bytes) if memory_limit is None else n_bytes <= memory_limit
    return "dense" if fits else "tiled"
