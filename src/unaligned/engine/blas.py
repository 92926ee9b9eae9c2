"""The number of cores, and how many threads BLAS may use."""

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
    """Return the number of jobs that scikit-learn's `n_jobs` means."""
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
    """A loaded BLAS library.

    Attributes
    ----------
    path
        Its file.
    by_thread
        Whether each thread has its own number of BLAS threads, as with OpenMP since
        threadpoolctl 3.8.
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
        """The number of threads it uses."""
        return int(self._handle.num_threads)

    @n_threads.setter
    def n_threads(self, number: int) -> None:
        # Since threadpoolctl 3.8 only the first thread may set the number, until it is cleared.
        if self._controlled:
            self._handle.clear_controlling_thread(force=True)
        self._handle.set_num_threads(number)
        if self._controlled:
            self._handle.clear_controlling_thread()


def blas_libraries() -> list[Library]:
    """Return the loaded BLAS libraries."""
    # Searching takes milliseconds, and only an import loads new ones.
    return _libraries(len(sys.modules))


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[Library]:
    from threadpoolctl import ThreadpoolController

    handles = ThreadpoolController().select(user_api="blas").lib_controllers
    return [Library(handle) for handle in handles]


class _Limit:
    """The number of threads that some libraries may use, as set by one thread."""

    def __init__(self, n_threads: int, select: Callable[[list[Library]], list[Library]]) -> None:
        self.n_threads, self.select = n_threads, select
        self.thread = threading.get_ident()


class _Limits:
    """All active limits.

    The smallest one counts, and none raises a library above its original number of threads.
    When the last limit of a library ends, the original number is restored, whichever thread set
    the first limit.
    """

    def __init__(self) -> None:
        # Reentrant: the garbage collector may end a limit inside of these methods.
        self.lock = threading.RLock()
        self.active: set[_Limit] = set()
        # By the path of the library, and by the thread if the library counts by thread.
        self.original: dict[tuple[str, int], int] = {}
        self.current: dict[tuple[str, int], int] = {}

    def begin(self, limit: _Limit) -> None:
        with self.lock:
            self.active.add(limit)
            self._apply()

    def end(self, limit: _Limit) -> None:
        """End a limit; may be called again."""
        with self.lock:
            self.active.discard(limit)
            self._apply()

    def _apply(self) -> None:
        here, libraries = threading.get_ident(), blas_libraries()
        limits: dict[Library, int] = {}
        for limit in tuple(self.active):
            for library in limit.select(libraries):
                if limit.thread == here or not library.by_thread:
                    limits[library] = min(limit.n_threads, limits.get(library, limit.n_threads))
        for library in libraries:
            key = library.path, here if library.by_thread else 0
            if library in limits:
                if key not in self.original:
                    self.original[key] = self.current[key] = library.n_threads
                self._set(library, key, min(limits[library], self.original[key]))
            elif key in self.original:
                self._set(library, key, self.original[key])
                del self.original[key], self.current[key]

    def _set(self, library: Library, key: tuple[str, int], number: int) -> None:
        if number != self.current[key]:
            self.current[key] = 0  # unknown if Ctrl-C comes before the end: `end` tries again
            library.n_threads = number
            self.current[key] = number


# The number of BLAS threads belongs to the process, and so do its limits.
_LIMITS = _Limits()


@contextmanager
def _limited(limit: _Limit) -> Iterator[None]:
    try:
        _LIMITS.begin(limit)
        yield
    finally:
        try:
            _LIMITS.end(limit)
        except BaseException:  # Ctrl-C in the middle of it
            _LIMITS.end(limit)
            raise


def limited_blas(n_threads: int) -> AbstractContextManager[None]:
    """Limit BLAS, and our own loops, to `n_threads` threads.

    Limits of several threads may overlap. (`threadpoolctl.threadpool_limits` restores the number
    it found, so the later of two overlapping limits would be left behind.)

    Examples
    --------
    >>> with limited_blas(1):
    ...     max((library.n_threads for library in blas_libraries()), default=1)
    1
    """
    return _limited(_Limit(n_threads, list))


def one_blas() -> AbstractContextManager[None]:
    """Let only NumPy's BLAS use several threads.

    The wheels of NumPy and SciPy contain an OpenBLAS each, whose idle threads spin for a while.
    Work that alternates between the two spends most of its time waiting: a Krylov solve took
    3.9 s on two cores, 1.7 s on one, and 1.1 s this way. Nothing changes if both share one
    library.
    """

    def others(libraries: list[Library]) -> list[Library]:
        found = [library for library in libraries if "numpy.libs" not in library.path]
        return found if len(found) < len(libraries) else []

    return _limited(_Limit(1, others))
