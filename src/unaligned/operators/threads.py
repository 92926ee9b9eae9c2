"""How many cores the hot loops may use, and splitting rows over them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from ..engine import available_cores, blas_libraries

Item = TypeVar("Item")
Result = TypeVar("Result")

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
