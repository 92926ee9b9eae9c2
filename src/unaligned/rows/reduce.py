"""Map-reduce over rows: a sum of function values over tiles, here or on an engine's workers."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..data.values import centre_of
from ..engine import Engine, Threads, limited_blas
from ..engine.threads import Workers
from ..errors import InputError
from .source import SAME_ROWS, TILE_ROWS, Chunk, RowSource
from .transforms import MappedRows

Sum = TypeVar("Sum")
# A function of a tile of rows, the position of its first row, and a value shared by all tiles.
Work: TypeAlias = Callable[[FloatArray, int, Any], Sum]


class RowPasses:
    """Passes over the rows of a source, as float64 and centred.

    A pass sums a function over tiles of rows. On threads, blocks are read one by one and their
    tiles shared out. On an engine elsewhere each chunk is a job: it is read there if possible,
    else sent; the shared value is sent once to each worker, and only sums come back. A pass
    raises if the rows are not those of the first one: if they contain NaN, or the means of their
    columns differ. The median of some rows is subtracted (see `centre_of`).
    """

    def __init__(self, source: RowSource, engine: Engine | None = None) -> None:
        self.source, self.engine = source, engine or Threads(1)
        if isinstance(source, MappedRows):  # on the engine: no digest is needed
            self.centre = np.zeros(source.n_features)
            sums, self.peak = self._reduce(_moments, None, "mean")
            self.mean = sums / source.n_rows
            del self.centre
        else:
            self.mean, self.peak = source.summary.mean, source.summary.peak

    @cached_property
    def centre(self) -> FloatArray:
        """What is subtracted from all rows, (d,)."""
        some = np.linspace(0, self.source.n_rows - 1, 100).astype(np.int64)
        return centre_of(self.source.take(some), self.peak)

    def blocks(self) -> Iterator[FloatArray]:
        """Yield all rows, block by block."""
        for block in self.source.blocks():
            yield block.astype(np.float64) - self.centre

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows, (len(rows), d)."""
        taken = self.source.take(rows)
        _require_finite(taken.sum(axis=0), repr(self.source))
        if "centre" not in vars(self) and len(taken) >= 100:  # no need to read others
            self.centre = centre_of(taken[:100], self.peak)
        return taken - self.centre

    def sample(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return random rows without replacement, in random order, (n_rows, d)."""
        size = min(n_rows, self.source.n_rows)
        return self.take(rng.choice(self.source.n_rows, size=size, replace=False))

    def reduce(self, function: Work[Sum], shared: Any, description: str = "reading") -> Sum:
        """Return the sum of `function(rows, start, shared)` over tiles of all rows."""
        checked = partial(_with_column_sums, function, repr(self.source))
        value: Sum
        value, column_sums = self._reduce(checked, shared, description)
        moved = column_sums / self.source.n_rows + self.centre - self.mean
        column = int(np.abs(moved).argmax())
        if abs(moved[column]) > 1e-10 * self.peak:  # rounding is far below that
            before = self.mean[column]
            raise InputError(
                f"{self.source!r} returned other rows than before: the mean of column {column} "
                f"is {before + moved[column]:.10g}, but was {before:.10g}. {SAME_ROWS}"
            )
        return value

    def _reduce(self, function: Work[Sum], shared: Any, description: str) -> Sum:
        with self.engine.progress.task(description, self.source.n_rows, unit="rows") as advance:
            if not self.engine.remote:
                return over_blocks(self.blocks(), function, shared, advance)
            # A block per job, or less where there would be fewer than four jobs per worker.
            share = math.ceil(self.source.n_rows / (4 * self.engine.n_workers))
            rows = min(self.source.block_rows(None), math.ceil(share / TILE_ROWS) * TILE_ROWS)
            sizes: deque[int] = deque()
            result: Sum = self.engine.reduce(
                _job,
                _recorded(self.source.complete(self.source.jobs(rows)), sizes),
                add,
                shared=(function, shared, self.centre),
                advance=lambda: advance(sizes.popleft()),
            )
            return result


class _Moments(NamedTuple):
    """The sum of rows, (d,), and their largest magnitude."""

    sums: FloatArray
    peak: float

    def __add__(self, other: _Moments) -> _Moments:  # type: ignore[override]
        return _Moments(self.sums + other.sums, max(self.peak, other.peak))


def _moments(rows: FloatArray, _start: int, _shared: None) -> _Moments:
    return _Moments(rows.sum(axis=0), float(np.abs(rows).max()))


class _Checked(NamedTuple):
    """The sum of a function over rows, and the sums of their columns, (d,)."""

    value: Any
    column_sums: FloatArray

    def __add__(self, other: _Checked) -> _Checked:  # type: ignore[override]
        return _Checked(add(self.value, other.value), self.column_sums + other.column_sums)


def _with_column_sums(
    function: Work[Any], label: str, rows: FloatArray, start: int, shared: Any
) -> _Checked:
    column_sums: FloatArray = np.ones(rows.shape[0]) @ rows  # ten times as fast as `sum`
    _require_finite(column_sums, f"{label} after {start} rows")
    return _Checked(function(rows, start, shared), column_sums)


def _require_finite(column_sums: FloatArray, label: str) -> None:
    if not np.isfinite(column_sums).all():
        raise InputError(f"{label} returned NaN or infinity, but none before. {SAME_ROWS}")


def over_blocks(
    blocks: Iterable[FloatArray],
    function: Work[Sum],
    shared: Any,
    advance: Callable[[int], object] | None = None,
) -> Sum:
    """Return the sum of `function(rows, start, shared)` over blocks, their tiles on threads.

    Memory: one block, and one result per thread besides the sum.
    """
    total: list[Sum] = []
    lock, start = threading.Lock(), 0
    with Workers() as workers, limited_blas(1):
        for block in blocks:

            def task(rows: slice, block: FloatArray = block, start: int = start) -> None:
                result = function(block[rows], start + rows.start, shared)
                with lock:
                    total[:] = [add(total[0], result) if total else result]
                if advance is not None:
                    advance(rows.stop - rows.start)

            workers.each(_tiles(block, start), task)
            start += block.shape[0]
    return total[0]


def numbers_from(seed: int, first: int, count: int) -> FloatArray:
    """Return numbers `first` to `first + count` of one random stream, uniform on [0, 1).

    The numbers of a row are the same however the rows are divided into blocks and tiles.
    """
    return np.random.Generator(np.random.PCG64(seed).advance(first)).random(count)


def _job(common: tuple[Work[Sum], Any, FloatArray], job: Any) -> Sum:
    """Return the sum over the tiles of one chunk, on a worker."""
    function, shared, centre = common
    if hasattr(job, "__dask_graph__"):  # workers that are not Dask's compute a chunk themselves
        from dask.local import get_sync

        # Given by name, old versions of Dask warn where a client is active.
        job = job.compute(scheduler=get_sync)
    chunk: Chunk = job
    total: list[Sum] = []
    for start, rows in chunk.blocks():
        points = rows.astype(np.float64) - centre
        for tile in _tiles(points, start):
            result = function(points[tile], start + tile.start, shared)
            total[:] = [add(total[0], result) if total else result]
    return total[0]


def _tiles(block: FloatArray, start: int) -> list[slice]:
    """Return tiles that end at multiples of their size, whatever the blocks.

    Sums in single precision within a tile depend on its rows, and sources would agree less.
    """
    n = block.shape[0]
    ends = range(TILE_ROWS - start % TILE_ROWS, n, TILE_ROWS)
    return [slice(a, b) for a, b in pairwise([0, *ends, n]) if a < b]


def _recorded(jobs: Iterator[tuple[int, Any]], sizes: deque[int]) -> Iterator[Any]:
    """Yield the jobs, recording the number of rows of each."""
    for n_rows, job in jobs:
        sizes.append(n_rows)
        yield job
