"""Threads of this process: BLAS, LAPACK and compiled loops release the interpreter's lock."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

import numpy as np

from .._check import FloatArray
from .base import Engine, Job, Result, StopFlag, check_stop, in_order, stopped_by, with_warnings
from .blas import available_cores, blas_libraries, limited_blas

Item = TypeVar("Item")

# The threads of our own loops while BLAS has one (see `own_threads`); None elsewhere.
_OWN: ContextVar[Workers | None] = ContextVar("own_threads", default=None)


def thread_count() -> int:
    """Return the number of cores, at most that of BLAS threads: one switch controls both."""
    own = _OWN.get()
    if own is not None:
        return own.n_threads
    cores = available_cores()
    allowed = [library.num_threads for library in blas_libraries()]
    # The largest: `one_blas` limits every library but NumPy's, and not our loops.
    return max(1, min(cores, max(allowed, default=cores)))


class Workers:
    """A pool of threads that share the rows of a tile, open during one pass over the matrix.

    Every call checks first whether the run was stopped by Ctrl-C.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = thread_count() if n_threads is None else n_threads
        self._pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=kind is not None)

    def each(self, items: Iterable[Item], task: Callable[[Item], Result]) -> list[Result]:
        """Return the results of `task(item)`, in order; this thread takes its share of them."""
        check_stop()
        if self._pool is None:
            results = []
            for result in map(task, items):
                results.append(result)
                check_stop()
            return results
        jobs, waiting = list(items), deque[int]()
        waiting.extend(range(len(jobs)))  # handing them out is cheaper than a future for each
        found: dict[int, Result] = {}

        def work(check: Callable[[], None]) -> None:
            context = Context()  # an empty one on all threads: products inside are not shared
            try:
                while (place := _popped(waiting)) is not None:
                    found[place] = context.run(task, jobs[place])
                    check()
            except BaseException:
                waiting.clear()
                raise

        helpers = [
            self._pool.submit(work, lambda: None)
            for _ in range(min(self.n_threads, len(jobs)) - 1)
        ]
        work(check_stop)
        for helper in helpers:
            if not helper.cancel():  # one that has not begun is not needed
                helper.result()
        return [found[place] for place in range(len(jobs))]

    def over_rows(
        self, n_rows: int, task: Callable[[slice], Result], per_thread: int = 4
    ) -> list[Result]:
        """Return the results of `task(slice)` over slices that cover all rows, in order."""
        # Four per thread: rows of a triangle cost unequally, and the machine is shared.
        n_slices = min(n_rows, per_thread * self.n_threads)
        if self._pool is None or n_slices <= 1:
            return self.each([slice(0, n_rows)], task)
        ends = [n_rows * part // n_slices for part in range(n_slices + 1)]
        return self.each(itertools.starmap(slice, itertools.pairwise(ends)), task)

    def product(self, a: FloatArray, b: FloatArray, out: FloatArray | None = None) -> FloatArray:
        """Return a @ b by rows of `a`, in column order; BLAS should have one thread."""
        result = np.empty((a.shape[0], b.shape[1]), order="F") if out is None else out
        self.over_rows(a.shape[0], lambda rows: np.matmul(a[rows], b, out=result[rows]), 2)
        return result

    def inner(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return aᵀ @ b, a sum over rows of both; BLAS should have one thread."""
        parts = self.over_rows(a.shape[0], lambda rows: a[rows].T @ b[rows], 2)
        total: FloatArray = np.sum(parts, axis=0)
        return total


def _popped(places: deque[int]) -> int | None:
    """Return the first of these, or None if there are none left."""
    with suppress(IndexError):
        return places.popleft()
    return None


@contextmanager
def own_threads() -> Iterator[None]:
    """Give the threads of BLAS to our own loops, `product` and `inner`.

    BLAS threads spin while they wait for each other: with other work on the machine, Krylov
    solves took 7 times as long with two of them as with one (benchmarks/bench_busy.py).
    """
    if _OWN.get() is not None:
        yield
        return
    with Workers() as workers, limited_blas(1):
        token = _OWN.set(workers)
        try:
            yield
        finally:
            _OWN.reset(token)


def workers_for(operations: int) -> Workers | None:
    """Return our own threads if they pay for a product of this many multiply-adds."""
    own = _OWN.get()
    return own if own and own.n_threads > 1 and operations > 5_000_000 else None  # 0.2 ms


def product(a: FloatArray, b: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return a @ b, in column order; inside `own_threads`, these share the rows of `a`.

    With 32 columns, BLAS writes columns 1.2 to 1.8 times as fast as rows.
    """
    out = np.empty((a.shape[0], b.shape[1]), order="F") if out is None else out
    workers = workers_for(a.size * b.shape[1])
    return np.matmul(a, b, out=out) if workers is None else workers.product(a, b, out)


def inner(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return aᵀ @ b of tall matrices; inside `own_threads`, these share the rows of both."""
    workers = workers_for(a.size * b.shape[1])
    return np.asarray(a.T @ b) if workers is None else workers.inner(a, b)


class Threads(Engine):
    """Jobs on threads, each with its share of the BLAS threads; one job runs in this thread."""

    def _results(self, function: Job[Result], items: Iterable[Any], shared: Any) -> Generator[Any]:
        n_threads = min(self.n_workers, len(items)) if isinstance(items, Sized) else self.n_workers
        if n_threads <= 1:
            for item in items:
                yield function(shared, item), []  # warnings go straight to the user
            return
        flag, blas_threads = StopFlag(), max(1, available_cores() // n_threads)

        def run(item: Any) -> Any:
            with stopped_by(flag), limited_blas(blas_threads):
                check_stop()
                return with_warnings(function, shared, item)

        pool, most = ThreadPoolExecutor(n_threads), 2 * n_threads
        try:
            # In a copy of this context, so that jobs show their progress in the same display.
            def submit(item: Any) -> Any:
                return pool.submit(copy_context().run, run, item)

            for future in in_order(submit, items, lambda: most):
                yield future.result()
        except BaseException:
            # After an error or Ctrl-C, running jobs end at their next check; do not wait for them.
            flag.is_set = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
