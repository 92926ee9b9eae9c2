"""A pass over all rows: a sum of what pieces of them give, here or wherever an engine works."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import add
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..engine import Engine, Threads, limited_blas
from ..engine.threads import Workers
from ..errors import InputError
from .source import PIECE_ROWS, SAME_ROWS, Part, RowSource

Sum = TypeVar("Sum")
# What a piece gives: a function of its rows, the place of the first, and what all share.
Work: TypeAlias = Callable[[FloatArray, int, Any], Sum]

_JOBS = 4  # per worker, at the least: all have work, and a bar moves
# Of the largest value: more than rounding can do to the mean of a column.
_ROUNDING = 1e-10


class Centre(NamedTuple):
    """What the first pass over rows found: their mean, (d,), and the largest magnitude."""

    mean: FloatArray
    peak: float

    @classmethod
    def of(cls, source: RowSource) -> Centre:
        """Return what the summary of a source says."""
        return cls(source.summary.mean, source.summary.peak)


class RowPasses:
    """Passes over the rows of a source, as float64 and centred.

    A pass is a function of a piece of rows whose results are added with `+`. On threads the
    blocks are read here one by one and their pieces shared out. Elsewhere each part of the
    source is a job: it is read there if it can be, or sent; what all pieces share is sent once
    to each worker, and only sums come back. Rows that are not those of the first pass are
    refused: NaN at once, others because their columns sum to something else.

    Parameters
    ----------
    source
        The rows.
    engine
        Where the work is done, and how far it has come; by default here.
    centre
        What the first pass found, and is subtracted from every row; the summary of the source,
        where None.

    Examples
    --------
    >>> from unaligned.rows.source import ArrayRows
    >>> passes = RowPasses(ArrayRows(np.array([[1.0], [2.0], [6.0]])))
    >>> passes.reduce(lambda rows, start, shared: shared * len(rows), 10)
    30
    """

    def __init__(
        self, source: RowSource, engine: Engine | None = None, centre: Centre | None = None
    ) -> None:
        self.source, self.engine = source, engine or Threads(1)
        self.mean, self.peak = Centre.of(source) if centre is None else centre

    def blocks(self) -> Iterator[FloatArray]:
        """Yield all rows, block by block."""
        for block in self.source.blocks():
            yield block.astype(np.float64) - self.mean

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows, (len(rows), d)."""
        found: FloatArray = self.source.take(rows) - self.mean
        _require_finite(found.sum(axis=0), repr(self.source))
        return found

    def sample(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return random rows without replacement, in random order, (n_rows, d)."""
        size = min(n_rows, self.source.n_rows)
        return self.take(rng.choice(self.source.n_rows, size=size, replace=False))

    def reduce(self, function: Work[Sum], shared: Any, description: str = "reading") -> Sum:
        """Return the sum of `function(rows, start, shared)` over pieces that make up all rows."""
        checked = partial(_with_columns, function, repr(self.source))
        found: _Checked[Sum] = self.first(checked, shared, description)
        self._require_same(found.columns / self.source.n_rows)
        return found.result

    def first(self, function: Work[Sum], shared: Any, description: str = "reading") -> Sum:
        """Return what `reduce` does, of rows that nobody has read before."""
        task = self.engine.progress.task(description, self.source.n_rows, unit="rows")
        with task as advance:
            if not self.engine.remote:
                return over_blocks(self.blocks(), function, shared, advance)
            sizes: deque[int] = deque()
            known = function, shared, self.mean
            found: Sum = self.engine.reduce(
                _job,
                _noting(self.source.whole(self.source.jobs(self._rows_of_a_job())), sizes),
                add,
                shared=known,
                advance=lambda: advance(sizes.popleft()),
            )
            return found

    def _rows_of_a_job(self) -> int:
        """Return a block, or less where blocks are too few for all workers; whole pieces."""
        share = math.ceil(self.source.n_rows / (_JOBS * self.engine.n_workers))
        return min(self.source.step(None), math.ceil(share / PIECE_ROWS) * PIECE_ROWS)

    def _require_same(self, means: FloatArray) -> None:
        """Refuse centred rows whose columns have other means than 0, rounding aside."""
        column = int(np.abs(means).argmax())
        if abs(means[column]) > _ROUNDING * self.peak:
            before = self.mean[column]
            raise InputError(
                f"{self.source!r} gave other rows than before: the mean of column {column} is "
                f"{before + means[column]:.10g}, and was {before:.10g}. {SAME_ROWS}"
            )


class _Checked(NamedTuple, Generic[Sum]):
    """A sum over rows, and the sums of their columns, (d,)."""

    result: Sum
    columns: FloatArray

    def __add__(self, other: _Checked[Sum]) -> _Checked[Sum]:  # type: ignore[override]
        return _Checked(add(self.result, other.result), self.columns + other.columns)


def _with_columns(
    function: Work[Sum], label: str, rows: FloatArray, start: int, shared: Any
) -> _Checked[Sum]:
    """Return what a function gives of rows, with the sums of their columns."""
    columns: FloatArray = np.ones(rows.shape[0]) @ rows  # `sum` takes ten times as long
    _require_finite(columns, f"{label} after {start} rows")
    return _Checked(function(rows, start, shared), columns)


def _require_finite(sums: FloatArray, label: str) -> None:
    """Refuse rows with NaN or infinity, by the sums of their columns."""
    if not np.isfinite(sums).all():
        raise InputError(f"{label} gave NaN or infinity, and none before. {SAME_ROWS}")


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
    with Workers() as workers, limited_blas(1):
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
    return [slice(a, min(a + PIECE_ROWS, n)) for a in range(0, n, PIECE_ROWS)]


def _noting(jobs: Iterator[tuple[int, Any]], sizes: deque[int]) -> Iterator[Any]:
    """Yield jobs, noting the number of rows of each."""
    for n_rows, job in jobs:
        sizes.append(n_rows)
        yield job
