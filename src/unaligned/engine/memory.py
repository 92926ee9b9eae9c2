"""What the memory there is means for a matrix."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

_ROOT = Path("/")


class _Accounts(NamedTuple):
    """The files in which one version of Linux's control groups keeps account of memory."""

    limit: str
    used: str
    details: str


_GROUPS = (
    _Accounts("memory.max", "memory.current", "memory.stat"),
    _Accounts(
        "memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"
    ),
)


def available_memory(root: Path = _ROOT) -> int:
    """Return the bytes that can be had without swapping, a container's limit included."""
    return int(min(_machine(root), *(_container(root, accounts) for accounts in _GROUPS)))


def _machine(root: Path) -> int:
    """Return what the kernel calls available; half of the physical memory where it cannot say."""
    for words in _words(root / "proc" / "meminfo"):
        if words[0] == "MemAvailable:":
            return int(words[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return 4 << 30  # Windows has no sysconf; 4 GiB is there on anything that runs SciPy


def _container(root: Path, accounts: _Accounts) -> float:
    """Return what a control group leaves; without a limit, without end."""
    limit, used, details = (_words(root / "sys" / "fs" / "cgroup" / name) for name in accounts)
    if not limit or not limit[0][0].isdecimal():  # no such group, or `max`
        return math.inf
    told = {name: int(number) for name, number in details}
    # Files that were read lie in memory until it is needed: that is counted, and not in use.
    cached = told.get("total_inactive_file", told.get("inactive_file", 0))
    in_use = int(used[0][0]) - cached if used else 0
    return max(int(limit[0][0]) - max(in_use, 0), 0)


def _words(path: Path) -> list[list[str]]:
    """Return the words of each line of a file; none where there is no such file."""
    try:
        return [line.split() for line in path.read_text().splitlines() if line.strip()]
    except OSError:
        return []  # not Linux, or another version


_SHARE = 4  # without a limit, one matrix may take a quarter: solvers need copies and a basis


def fits_into_memory(n_bytes: int) -> bool:
    """Whether one matrix of so many bytes leaves room for the work with it."""
    return n_bytes <= available_memory() // _SHARE


def storage_for(n_samples: int, memory_limit: int | None) -> str:
    """Return `dense` if 8 N² bytes fit into `memory_limit`, else `tiled`.

    Without a limit, a quarter of the memory that is available now counts as the limit.

    Examples
    --------
    >>> storage_for(1000, memory_limit=8_000_000), storage_for(1001, memory_limit=8_000_000)
    ('dense', 'tiled')
    """
    n_bytes = 8 * n_samples * n_samples
    fits = fits_into_memory(n_bytes) if memory_limit is None else n_bytes <= memory_limit
    return "dense" if fits else "tiled"
