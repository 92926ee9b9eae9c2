"""How many cores there are, and how many of them BLAS may use."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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


class Library:
    """A BLAS library that is loaded.

    Attributes
    ----------
    path
        Its file.
    by_thread
        Whether each thread has a number of BLAS threads of its own: OpenMP's way, to which
        threadpoolctl keeps since 3.8.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.path: str = handle.filepath
        self._controlled = hasattr(handle, "clear_controlling_thread")
        self.by_thread: bool = (
            self._controlled and getattr(handle, "threading_layer", "") == "openmp"
        )

    @property
    def n_threads(self) -> int:
        """How many threads it uses."""
        return int(self._handle.num_threads)

    @n_threads.setter
    def n_threads(self, number: int) -> None:
        # Since threadpoolctl 3.8 only the thread that came first has a say, until that is cleared.
        if self._controlled:
            self._handle.clear_controlling_thread(force=True)
        self._handle.set_num_threads(number)
        if self._controlled:
            self._handle.clear_controlling_thread()


def blas_libraries() -> list[Library]:
    """Return the BLAS libraries that are loaded."""
    return _libraries(len(sys.modules))


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[Library]:
    """Return the BLAS libraries that are loaded.

    To look for them takes some milliseconds, and only an import brings new ones: so they are
    looked for once for every number of modules.
    """
    from threadpoolctl import ThreadpoolController

    handles = ThreadpoolController().select(user_api="blas").lib_controllers
    return [Library(handle) for handle in handles]


class _Limit:
    """How many threads each of some libraries may use, in the eyes of one thread of ours."""

    def __init__(self, n_threads: int, chosen: Callable[[list[Library]], list[Library]]) -> None:
        self.n_threads, self.chosen = n_threads, chosen
        self.thread = threading.get_ident()


class _Limits:
    """All limits that hold at the moment.

    Of several the smallest counts, and none gives a library more threads than it was found with.
    When the last limit of a library ends it gets back what it was found with, whichever thread
    set the first one.
    """

    def __init__(self) -> None:
        # The garbage collector may end a limit anywhere, in the middle of these methods too.
        self.lock = threading.RLock()
        self.holding: set[_Limit] = set()
        # By the path of the library, and by the thread where that matters.
        self.found: dict[tuple[str, int], int] = {}
        self.given: dict[tuple[str, int], int] = {}

    def begin(self, limit: _Limit) -> None:
        with self.lock:
            self.holding.add(limit)
            self._apply()

    def end(self, limit: _Limit) -> None:
        """End a limit; once more is harmless."""
        with self.lock:
            self.holding.discard(limit)
            self._apply()

    def end_all(self, thread: int) -> None:
        """End all limits that a thread began."""
        with self.lock:
            self.holding = {limit for limit in self.holding if limit.thread != thread}
            self._apply()

    def _apply(self) -> None:
        here, libraries = threading.get_ident(), blas_libraries()
        limits: dict[Library, int] = {}
        for limit in tuple(self.holding):
            for library in limit.chosen(libraries):
                if limit.thread == here or not library.by_thread:
                    limits[library] = min(limit.n_threads, limits.get(library, limit.n_threads))
        for library in libraries:
            key = library.path, here if library.by_thread else 0
            if library in limits:
                if key not in self.found:
                    self.found[key] = self.given[key] = library.n_threads
                self._give(library, key, min(limits[library], self.found[key]))
            elif key in self.found:
                self._give(library, key, self.found[key])
                del self.found[key], self.given[key]

    def _give(self, library: Library, key: tuple[str, int], number: int) -> None:
        if number != self.given[key]:
            self.given[key] = 0  # who knows, where Ctrl-C comes before the end: `end` tries again
            library.n_threads = number
            self.given[key] = number


def _all_but_numpys(libraries: list[Library]) -> list[Library]:
    others = [library for library in libraries if "numpy.libs" not in library.path]
    return others if len(others) < len(libraries) else []


# The number of BLAS threads belongs to the process, and so does the account of who limits it.
_LIMITS = _Limits()


@contextmanager
def _limited(limit: _Limit) -> Iterator[None]:
    try:
        _LIMITS.begin(limit)
        yield
    finally:
        try:
            _LIMITS.end(limit)
        except BaseException:  # Ctrl-C came just now
            _LIMITS.end(limit)
            raise


def unlimited_here() -> None:
    """End what limits this thread began: one that was stopped may have been kept from it."""
    _LIMITS.end_all(threading.get_ident())


def limited_blas(n_threads: int) -> AbstractContextManager[None]:
    """Let no BLAS, and so none of our loops, use more threads than this while this lasts.

    Any thread may at any time: see `_Limits`. (`threadpoolctl.threadpool_limits` sets back what
    it found, so that of two threads that overlap the last one leaves the other's limit behind.)

    Examples
    --------
    >>> with limited_blas(1):
    ...     max((library.n_threads for library in blas_libraries()), default=1)
    1
    """
    return _limited(_Limit(n_threads, list))


def one_blas() -> AbstractContextManager[None]:
    """Let only NumPy's BLAS use several threads while this lasts.

    The wheels of NumPy and SciPy bring an OpenBLAS each. A thread of theirs that has nothing to
    do spins for a while, so work that goes to and fro between the two on a few cores spends
    most of its time waiting: a Krylov solve took 3.9 s on two cores, 1.7 s on one, and 1.1 s
    this way. Where both share one library nothing changes.
    """
    return _limited(_Limit(1, _all_but_numpys))
