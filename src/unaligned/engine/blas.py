"""How many cores there are, and how many of them BLAS may use."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from .. import _check
from ..errors import InputError


def resolve_jobs(n_jobs: int | None) -> int:
    """Turn scikit-learn's `n_jobs` into a number of jobs."""
    if n_jobs is None:
        return 1
    jobs = _check.whole_number("n_jobs", n_jobs)
    if jobs == 0:
        raise InputError("n_jobs=0 must not be zero. Use 1 for one job, -1 for all cores.")
    return jobs if jobs > 0 else max(1, available_cores() + 1 + jobs)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[Any]:
    """Return the BLAS libraries that are loaded.

    To look for them takes some milliseconds, and only an import brings new ones: so they are
    looked for once for every number of modules.
    """
    from threadpoolctl import ThreadpoolController

    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


class _Held:
    """Holds BLAS libraries to one thread each.

    Counts who is inside, so that threads that overlap leave the limits as they found them.

    Parameters
    ----------
    chosen
        Picks the libraries among those that are loaded.
    """

    def __init__(self, chosen: Callable[[list[Any]], list[Any]]) -> None:
        self.chosen = chosen
        self.lock = threading.Lock()
        self.inside = 0
        self.before: list[tuple[Any, int]] = []

    def enter(self) -> None:
        with self.lock:
            self.inside += 1
            if self.inside > 1:
                return
            libraries = self.chosen(_libraries(len(sys.modules)))
            self.before = [(lib, lib.num_threads) for lib in libraries]
            for library, _ in self.before:
                library.set_num_threads(1)

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                for library, threads in self.before:
                    library.set_num_threads(threads)
                self.before = []


def _all_but_numpys(libraries: list[Any]) -> list[Any]:
    others = [lib for lib in libraries if "numpy.libs" not in lib.filepath]
    return others if len(others) < len(libraries) else []


# The number of BLAS threads belongs to the process, and so does the count of who changed it.
_ONE_BLAS = _Held(_all_but_numpys)
_ONE_THREAD = _Held(list)


@contextmanager
def one_blas() -> Iterator[None]:
    """Let only NumPy's BLAS use several threads while this lasts.

    The wheels of NumPy and SciPy bring an OpenBLAS each. A thread of theirs that has nothing to
    do spins for a while, so work that goes to and fro between the two on a few cores spends
    most of its time waiting: a Krylov solve took 3.9 s on two cores, 1.7 s on one, and 1.1 s
    this way. Where both share one library nothing changes.
    """
    with _inside(_ONE_BLAS):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Let no BLAS, and so none of our loops, use more than one thread while this lasts."""
    with _inside(_ONE_THREAD):
        yield


@contextmanager
def _inside(held: _Held) -> Iterator[None]:
    held.enter()
    try:
        yield
    finally:
        held.leave()
