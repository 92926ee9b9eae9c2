"""Threads of this process: the heavy work (BLAS, LAPACK, compiled loops) lets them run."""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from .base import Engine, Job, Result, heard, in_order, noted
from .blas import available_cores, blas_libraries, limited_blas, unlimited_here

Item = TypeVar("Item")

_PIECES = 4  # pieces per thread: rows of a triangle cost unequally, and the machine is shared


def thread_count() -> int:
    """Return the cores this process may run on, but no more than BLAS is allowed.

    BLAS does the products between our loops, so that one switch (`threadpoolctl`, or
    `OMP_NUM_THREADS`) rules both; an engine that runs datasets side by side sets it to 1.
    """
    cores = available_cores()
    allowed = [library.n_threads for library in blas_libraries()]
    # The most that any is allowed: `one_blas` holds back all but NumPy's, and means only those.
    return max(1, min(cores, max(allowed, default=cores)))


class Workers:
    """Threads that share the rows of a tile, alive as long as one pass over the matrix.

    Examples
    --------
    >>> with Workers(2) as workers:
    ...     sum(workers.over_rows(10, lambda rows: rows.stop - rows.start))
    10
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = thread_count() if n_threads is None else n_threads
        self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=kind is not None)  # Ctrl-C waits for no more

    def each(self, items: Iterable[Item], task: Callable[[Item], Result]) -> list[Result]:
        """Return the results of `task(item)`, in order."""
        return list(map(task, items) if self._pool is None else self._pool.map(task, items))

    def over_rows(self, n_rows: int, task: Callable[[slice], Result]) -> list[Result]:
        """Return the results of `task(slice)` over slices that make up all rows, in order."""
        n_pieces = min(n_rows, _PIECES * self.n_threads)
        if self._pool is None or n_pieces <= 1:
            return [task(slice(0, n_rows))]
        ends = [n_rows * piece // n_pieces for piece in range(n_pieces + 1)]
        slices = [slice(a, b) for a, b in itertools.pairwise(ends)]
        return list(self._pool.map(task, slices))


_REMINDERS = 10  # to a job that was stopped and goes on


class Threads(Engine):
    """Jobs on threads, each with its share of the BLAS threads; one thread is this one itself.

    Examples
    --------
    >>> list(Threads(2).map(pow, [1, 2, 3], shared=2))
    [2, 4, 8]
    """

    def map(
        self, function: Job[Result], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[Result]:
        """Yield `function(shared, item)` of each item, in order."""
        n_threads = min(self.n_workers, len(items)) if isinstance(items, Sized) else self.n_workers
        if n_threads <= 1:
            return (function(shared, item) for item in items)
        return heard(_threaded(function, items, shared, n_threads))


def _threaded(
    function: Job[Result], items: Iterable[Any], shared: Any, n_threads: int
) -> Iterator[Any]:
    jobs = _Stoppable(max(1, available_cores() // n_threads))
    pool = ThreadPoolExecutor(n_threads)
    try:
        futures = in_order(
            lambda item: pool.submit(jobs.run, function, shared, item),
            items,
            lambda: 2 * n_threads,
        )
        for future in futures:
            yield future.result()
    except BaseException:
        # After an error or Ctrl-C nothing new is started, and what runs is not waited for.
        pool.shutdown(wait=False, cancel_futures=True)
        jobs.stop()
        raise
    pool.shutdown()


class _Stopped(BaseException):
    """Raised inside of a job that nobody waits for any more."""


class _Stoppable:
    """Jobs that can be stopped from outside, as Ctrl-C stops the main thread.

    Python raises Ctrl-C in the main thread only. The same is done to the other threads here: an
    exception is set for them, and raised as soon as they are back from compiled code. Until then
    they keep to their share of the BLAS threads.
    """

    def __init__(self, blas_threads: int) -> None:
        self._blas_threads = blas_threads
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._stopped = False

    def run(self, function: Job[Result], shared: Any, item: Any) -> Any:
        """Return what `noted` does."""
        try:
            return self._run(function, shared, item)
        finally:
            self._running.discard(threading.get_ident())
            if self._stopped:
                unlimited_here()

    def _run(self, function: Job[Result], shared: Any, item: Any) -> Any:
        this = threading.get_ident()
        with self._lock:
            if self._stopped:
                raise _Stopped
            self._running.add(this)
        try:
            with limited_blas(self._blas_threads):
                return noted(function, shared, item)
        finally:
            with self._lock:
                self._running.discard(this)
            # An exception that was set late is raised here, not in the pool's own code.
            for _ in range(100 if self._stopped else 0):
                pass

    def stop(self) -> None:
        """Raise `_Stopped` in every job that runs."""
        self._stopped = True
        self._raise()
        threading.Thread(target=self._insist, daemon=True).start()

    def _insist(self) -> None:
        """Raise it again: code that catches everything, such as some imports, swallows it."""
        for _ in range(_REMINDERS):
            time.sleep(1.0)
            if not self._running:
                return
            self._raise()

    def _raise(self) -> None:
        with self._lock:
            for thread in self._running:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread), ctypes.py_object(_Stopped)
                )
