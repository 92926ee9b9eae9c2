"""Where work runs: one function over many items, in order or on threads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from . import _check
from .errors import InputError, InputTypeError

Item = TypeVar("Item")
Result = TypeVar("Result")


def run(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
    description: str = "",
) -> list[Result]:
    """Return `[function(item) for item in items]`, on `n_jobs` threads.

    The heavy work (BLAS, LAPACK, compiled loops) releases the interpreter's lock, so threads
    are enough. Each job gets its share of the BLAS threads: never more threads than cores.

    Parameters
    ----------
    n_jobs
        How many items at a time; None means 1, and -1 all cores, as in scikit-learn.
    progress
        Show a bar; None shows one only on a terminal and for more than one item.

    Examples
    --------
    >>> run(abs, [-1, -2], n_jobs=2)
    [1, 2]
    """
    jobs = min(resolve_jobs(n_jobs), max(1, len(items)))
    if progress is not None and not isinstance(progress, bool):
        raise InputTypeError(f"progress={progress!r} must be True, False or None.")
    visible = progress if progress is not None else len(items) > 1 and sys.stderr.isatty()
    with _bar(visible, description, len(items)) as advance:
        if jobs == 1:
            return [_noted(function(item), advance) for item in items]
        return _run_threads(function, items, jobs, advance)


def resolve_jobs(n_jobs: int | None) -> int:
    """Turn scikit-learn's `n_jobs` into a number of threads."""
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


class _OneBlas:
    """Counts who is inside, so that threads that overlap leave the limits as they found them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.before: list[tuple[Any, int]] = []

    def enter(self) -> None:
        from threadpoolctl import ThreadpoolController

        with self.lock:
            self.inside += 1
            if self.inside > 1:
                return
            libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            others = [lib for lib in libraries if "numpy.libs" not in lib.filepath]
            if len(others) < len(libraries):
                self.before = [(lib, lib.num_threads) for lib in others]
            for library, _ in self.before:
                library.set_num_threads(1)

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                for library, threads in self.before:
                    library.set_num_threads(threads)
                self.before = []


# The number of BLAS threads belongs to the process, and so does the count of who changed it.
_ONE_BLAS = _OneBlas()


@contextmanager
def one_blas() -> Iterator[None]:
    """Let only NumPy's BLAS use several threads while this lasts.

    The wheels of NumPy and SciPy bring an OpenBLAS each. A thread of theirs that has nothing to
    do spins for a while, so work that goes to and fro between the two on a few cores spends
    most of its time waiting: a Krylov solve took 3.9 s on two cores, 1.7 s on one, and 1.1 s
    this way. Where both share one library nothing changes.
    """
    _ONE_BLAS.enter()
    try:
        yield
    finally:
        _ONE_BLAS.leave()


def _run_threads(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int,
    advance: Callable[[], None],
) -> list[Result]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=max(1, available_cores() // jobs)):
        pool = ThreadPoolExecutor(jobs)
        try:
            return [_noted(result, advance) for result in pool.map(function, items)]
        finally:
            # After an error or Ctrl-C nothing new is started.
            pool.shutdown(wait=True, cancel_futures=True)


def _noted(result: Result, advance: Callable[[], None]) -> Result:
    advance()
    return result


@contextmanager
def _bar(visible: bool, description: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar on stderr, or nothing."""
    if not visible:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns: list[Any] = ["{task.description}", BarColumn(), MofNCompleteColumn()]
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task(description, total=total)
        yield lambda: progress.advance(task)
