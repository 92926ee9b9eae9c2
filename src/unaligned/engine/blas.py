"""The number of cores, and how many threads BLAS may use."""

import os
import sys
import threading
from collections.abc import Iterator
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


def blas_libraries() -> list[Any]:
    """Return threadpoolctl's controllers of the loaded BLAS libraries."""
    # Searching takes milliseconds, and only an import loads new ones.
    return _libraries(len(sys.modules))


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[Any]:
    from threadpoolctl import ThreadpoolController

    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


def _set_threads(library: Any, number: int) -> None:
    # Only the first thread may set the number, until it is cleared.
    library.clear_controlling_thread(force=True)
    library.set_num_threads(number)
    library.clear_controlling_thread()


class _Limits:
    """All active limits, each the number of threads, whether it holds for NumPy, and its thread.

    The smallest one counts, and none raises a library above its original number of threads,
    which is restored when its last limit ends, whichever thread set the first.
    """

    def __init__(self) -> None:
        # Reentrant: the garbage collector may end a limit inside of these methods.
        self.lock = threading.RLock()
        self.active: dict[object, tuple[int, bool, int]] = {}
        self.original: dict[tuple[str, int], int] = {}

    def begin(self, key: object, n_threads: int, numpy_too: bool) -> None:
        with self.lock:
            self.active[key] = n_threads, numpy_too, threading.get_ident()
            self._apply()

    def end(self, key: object) -> None:
        """End a limit; may be called again."""
        with self.lock:
            self.active.pop(key, None)
            self._apply()

    def _apply(self) -> None:
        here, libraries = threading.get_ident(), blas_libraries()
        bundled = any("numpy.libs" in library.filepath for library in libraries)
        for library in libraries:
            is_numpys = "numpy.libs" in library.filepath or not bundled
            # With OpenMP each thread has its own number.
            by_thread = getattr(library, "threading_layer", "") == "openmp"
            limits = [
                n_threads
                for n_threads, numpy_too, thread in tuple(self.active.values())
                if (numpy_too or not is_numpys) and (thread == here or not by_thread)
            ]
            key = library.filepath, here if by_thread else 0
            if limits or key in self.original:
                number = min([self.original.setdefault(key, library.num_threads), *limits])
                if library.num_threads != number:
                    _set_threads(library, number)
            if not limits:
                self.original.pop(key, None)


# The number of BLAS threads belongs to the process, and so do its limits.
_LIMITS = _Limits()


@contextmanager
def _limited(n_threads: int, numpy_too: bool) -> Iterator[None]:
    key = object()
    try:
        _LIMITS.begin(key, n_threads, numpy_too)
        yield
    finally:
        try:
            _LIMITS.end(key)
        except BaseException:  # Ctrl-C in the middle of it
            _LIMITS.end(key)
            raise


def limited_blas(n_threads: int) -> AbstractContextManager[None]:
    """Limit BLAS, and our own loops, to `n_threads` threads.

    Limits of several threads may overlap. (`threadpoolctl.threadpool_limits` restores the number
    it found, so the later of two overlapping limits would be left behind.)
    """
    return _limited(n_threads, True)


def one_blas() -> AbstractContextManager[None]:
    """Let only NumPy's BLAS use several threads.

    The wheels of NumPy and SciPy contain an OpenBLAS each, whose idle threads spin for a while.
    Work that alternates between the two spends most of its time waiting: a Krylov solve took
    3.9 s on two cores, 1.7 s on one, and 1.1 s this way.
    """
    return _limited(1, False)
