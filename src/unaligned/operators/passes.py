"""A pass over all rows: a sum of what pieces of them give, here or wherever an engine works."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from operator import add
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from .._check import FloatArray
from ..data.sources import Part, RowSource
from ..engine import Engine, Threads
from .threads import Workers

Sum = TypeVar("Sum")
# What a piece gives: a function of its rows, the place of the first, and what all share.
Work: TypeAlias = Callable[[FloatArray, int, Any], Sum]

# Rows of a piece: enough for the work to outweigh the call, and few enough to share out.
_PIECE = 2048


class RowPasses:
    """Passes over the rows of a source, as float64 and centred.

    A pass is a function of a piece of rows whose results are added with `+`. On threads the
    blocks are read here one by one and their pieces shared out. Elsewhere each part of the
    source is a job: it is read there if it can be, or sent; what all pieces share is sent once
    to each worker, and only sums come back.

    Parameters
    ----------
    source
        The rows.
    engine
        Where the work is done, and how far it has come; by default here.
    mean
        What is subtracted from every row; the mean of the source, where None.

    Examples
    --------
    >>> from unaligned.data.sources import ArrayRows
    >>> passes = RowPasses(ArrayRows(np.array([[1.0], [2.0], [6.0]])))
    >>> passes.reduce(lambda rows, start, shared: shared * len(rows), 10)
    30
    """

    def __init__(
        self, source: RowSource, engine: Engine | None = None, mean: FloatArray | None = None
    ) -> None:
        self.source, self.engine = source, engine or Threads(1)
        self.mean = source.summary.mean if mean is None else mean

    def blocks(self) -> Iterator[FloatArray]:
        """Yield all rows, block by block."""
        for block in self.source.blocks():
            yield block.astype(np.float64) - self.mean

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows, (len(rows), d)."""
        return self.source.take(rows) - self.mean

    def sample(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return random rows without replacement, in random order, (n_rows, d)."""
        size = min(n_rows, self.source.n_rows)
        return self.take(rng.choice(self.source.n_rows, size=size, replace=False))

    def reduce(self, function: Work[Sum], shared: Any, description: str = "reading") -> Sum:
        """Return the sum of `function(rows, start, shared)` over pieces that make up all rows."""
        task = self.engine.progress.task(description, self.source.n_rows, unit="rows")
        with task as advance:
            if not self.engine.remote:
                return over_blocks(self.blocks(), function, shared, advance)
            sizes: deque[int] = deque()
            known = function, shared, self.mean
            found: Sum = self.engine.reduce(
                _job,
                _noting(self.source.jobs(), sizes),
                add,
                shared=known,
                advance=lambda: advance(sizes.popleft()),
            )
            return found


def over_blocks(
    blocks: Iterable[FloatArray],
    function: Work[Sum],
    shared: Any,
    advance: Callable[[int], object] | None = None,
) -> Sum:
    """Return the sum of `function(rows, start, shared)` over blocks, their pieces on threads.

    In memory: one block, and a result per thread besides the sum.
    """
    parts: list[Sum] = []
    lock, start = threading.Lock(), 0
    with Workers() as workers, threadpool_limits(1, user_api="blas"):
        for block in blocks:

            def task(rows: slice, block: FloatArray = block, start: int = start) -> None:
                part = function(block[rows], start + rows.start, shared)
                with lock:
                    parts[:] = [add(parts[0], part) if parts else part]
                if advance is not None:
                    advance(rows.stop - rows.start)

            workers.each(_pieces(block), task)
            start += block.shape[0]
    return parts[0]


def numbers_from(seed: int, first: int, count: int) -> FloatArray:
    """Return the numbers of one random stream from place `first` on, uniform on [0, 1).

    What belongs to a row is the same however the rows are cut into blocks and pieces.

    Examples
    --------
    >>> bool((numbers_from(0, 0, 5)[2:] == numbers_from(0, 2, 3)).all())
    True
    """
    return np.random.Generator(np.random.PCG64(seed).advance(first)).random(count)


def _job(known: tuple[Work[Sum], Any, FloatArray], job: Any) -> Sum:
    """Return the sum over the pieces of one part. Runs on a worker."""
    function, shared, mean = known
    # A lazy part of Dask that was sent to a process which is no worker of Dask is read there.
    part: Part = job.compute(scheduler="synchronous") if hasattr(job, "__dask_graph__") else job
    found: list[Sum] = []
    for start, rows in part.blocks():
        points = rows.astype(np.float64) - mean
        for piece in _pieces(points):
            one = function(points[piece], start + piece.start, shared)
            found[:] = [add(found[0], one) if found else one]
    return found[0]


def _pieces(block: FloatArray) -> list[slice]:
    n = block.shape[0]
    return [slice(a, min(a + _PIECE, n)) for a in range(0, n, _PIECE)]


def _noting(jobs: Iterator[tuple[int, Any]], sizes: deque[int]) -> Iterator[Any]:
    """Yield jobs, noting the number of rows of each."""
    for n_rows, job in jobs:
        sizes.append(n_rows)
        yield job
