"""Rows of points that are read by blocks, as often as needed, never all at once.

A source yields its rows by chunks. Chunks of a file are read by whoever processes them, here or
on a worker of an engine; chunks of an array in memory or of a generator carry their rows.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._check import FloatArray, IndexArray, require_numeric, shape_of
from ..errors import InputError, InputTypeError

# Bytes of a block in double precision: large enough for full speed, small beside any accumulator.
BLOCK_BYTES = 1 << 23
# Rows that a thread processes at a time. Larger blocks end between tiles, so that the tiles are
# the same whatever the chunks of a source are.
TILE_ROWS = 2048
# Rows that a pass keeps as a sample, of up to so many columns (400 kB).
SAMPLE_ROWS, SAMPLE_COLUMNS = 256, 200

SAME_ROWS = (
    "A source must return the same rows each time it is read: seed a random generator inside the "
    "function, and do not write to the file meanwhile."
)


def sample_positions(n_rows: int) -> IndexArray:
    """Return up to 256 positions over all rows, ascending, without a period of their own."""
    places = np.arange(SAMPLE_ROWS) * 0.6180339887498949 % 1.0  # of Weyl's sequence, golden ratio
    return np.unique((places * n_rows).astype(np.int64))


def dense(block: Any) -> npt.NDArray[Any]:
    """Return a block as a dense array."""
    return block.toarray() if sparse.issparse(block) else np.asarray(block)


def require_rows(shape: tuple[int, ...]) -> None:
    """Raise if a shape is not (rows, features), or is empty."""
    if len(shape) != 2 or 0 in shape:
        raise InputError(
            f"A source must be two-dimensional, rows × features, and not empty; got shape {shape}."
        )


class Chunk(NamedTuple):
    """Consecutive rows of a source, read on demand.

    Attributes
    ----------
    start
        The position of the first row in the source.
    n_rows, n_features
        Its shape.
    block_rows
        The most rows of a block.
    label
        The name of the source in messages.
    read
        Returns consecutive arrays, dense or sparse.
    """

    start: int
    n_rows: int
    n_features: int
    block_rows: int
    label: str
    read: Callable[[], Iterable[Any]]

    def blocks(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield the rows by dense blocks, each with the position of its first row.

        Yields
        ------
        start : int
            The position of the first row in the source.
        block : ndarray
            Shape (rows, n_features), dense.
        """
        start = self.start
        for rows in self.read():
            for first in range(0, rows.shape[0], self.block_rows):
                block = dense(rows[first : first + self.block_rows])
                if block.ndim != 2 or block.shape[1] != self.n_features:
                    raise InputError(
                        f"{self.label} returned a block of shape {block.shape} after "
                        f"{start + first} rows; every block must have {self.n_features} columns."
                    )
                require_numeric(block.dtype, self.label)
                yield start + first, block
            start += rows.shape[0]
        if start - self.start != self.n_rows:
            raise InputError(
                f"{self.label} returned {start - self.start} rows from row {self.start} on, but "
                f"{self.n_rows} before. {SAME_ROWS}"
            )

    def with_rows(self, *arrays: Any) -> Chunk:
        """Return the chunk with its rows in memory, as consecutive arrays.

        Parameters
        ----------
        *arrays
            Consecutive rows.

        Returns
        -------
        Chunk
            Of the same place in the source.
        """
        return self._replace(read=partial(list, arrays))

    def mapped(self, function: Callable[[Any], Any], n_features: int) -> Chunk:
        """Return the chunk with a function applied to every block that is read.

        Parameters
        ----------
        function
            Takes a float64 block, (rows, d), and returns (rows, n_features).
        n_features
            The number of columns of its results.

        Returns
        -------
        Chunk
            Of the same place in the source.
        """
        return self._replace(read=partial(_mapped_blocks, function, self), n_features=n_features)


def _mapped_blocks(function: Callable[[Any], Any], chunk: Chunk) -> Iterator[Any]:
    return (function(block.astype(np.float64)) for _, block in chunk.blocks())


class RowSummary(NamedTuple):
    """Statistics of all rows, from one pass over them.

    Attributes
    ----------
    digest
        A hash of the shape and the values.
    bad
        The positions of rows with NaN or infinity.
    mean
        Of the other rows, (n_features,).
    peak
        The largest magnitude in the other rows.
    sample
        Some of the other rows, 256 or fewer; none beyond 200 columns.
    """

    digest: str
    bad: IndexArray
    mean: FloatArray
    peak: float
    sample: FloatArray


class RowSource(ABC):
    """Rows of points, (n_rows, n_features), that can be read any number of times.

    Subclasses implement `chunks`; everything else is a pass over blocks, one in memory at a time.
    """

    n_rows: int
    n_features: int
    feature_names: tuple[str, ...] | None = None
    is_portable: bool = True  # whether other processes can read the chunks

    @abstractmethod
    def chunks(self, n_rows: int | None = None) -> Iterator[Chunk]:
        """Yield all rows by chunks with blocks of at most `n_rows`; None is about 8 MiB.

        Parameters
        ----------
        n_rows
            The most rows of a block.

        Yields
        ------
        Chunk
            Consecutive rows, unread; the same ones at every call.
        """

    def jobs(self, n_rows: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield each chunk in the form that is sent to a worker, with its number of rows.

        Parameters
        ----------
        n_rows
            As for `chunks`.

        Yields
        ------
        n_rows : int
            The number of rows of the chunk.
        job : Chunk
            With its rows, where workers cannot read them.
        """
        for chunk in self.chunks(n_rows):
            yield chunk.n_rows, chunk if self.is_portable else chunk.with_rows(*chunk.read())

    def complete(self, jobs: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """Yield the jobs; raise at the end if they had more or fewer rows than the source.

        Parameters
        ----------
        jobs
            Pairs of a number of rows and anything.

        Yields
        ------
        n_rows, job
            The same pairs.
        """
        seen = 0
        for n_rows, job in jobs:
            seen += n_rows
            yield n_rows, job
        if seen != self.n_rows:
            raise InputError(
                f"{self!r} returned {seen} rows, but {self.n_rows} before. {SAME_ROWS}"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """(n_rows, n_features)."""
        return self.n_rows, self.n_features

    def block_rows(self, n_rows: int | None) -> int:
        """Return the number of rows of a block; for None, those of 8 MiB, in whole tiles.

        Parameters
        ----------
        n_rows
            What was asked for, or None.

        Returns
        -------
        int
            `n_rows` where it is given, else 256 or more.
        """
        if n_rows:
            return n_rows
        row_bytes = 8 * max(1, self.n_features)
        # Wide rows: up to 64 MiB, because fewer than 256 rows make slow products.
        fewest = min(4096, max(256, 8 * BLOCK_BYTES // row_bytes))
        rows = max(fewest, BLOCK_BYTES // row_bytes)
        return rows if rows < TILE_ROWS else rows // TILE_ROWS * TILE_ROWS

    def chunk(self, start: int, size: int, n_rows: int | None, read: Callable[[], Any]) -> Chunk:
        """Return a chunk of `size` rows from `start` on, with blocks of at most `n_rows`.

        Parameters
        ----------
        start
            The position of its first row.
        size
            Its number of rows.
        n_rows
            As for `chunks`.
        read
            Returns consecutive arrays, dense or sparse.

        Returns
        -------
        Chunk
            Its rows are read on demand.
        """
        return Chunk(start, size, self.n_features, self.block_rows(n_rows), repr(self), read)

    def blocks(self, n_rows: int | None = None) -> Iterator[npt.NDArray[Any]]:
        """Yield all rows by dense numeric blocks of at most `n_rows`; None is about 8 MiB.

        Parameters
        ----------
        n_rows
            The most rows of a block.

        Yields
        ------
        ndarray
            Shape (rows, n_features), dense.
        """
        for _, chunk in self.complete((chunk.n_rows, chunk) for chunk in self.chunks(n_rows)):
            yield from (block for _, block in chunk.blocks())

    @cached_property
    def summary(self) -> RowSummary:
        """One pass over all rows, done once: O(n_rows n_features) time, one block of memory."""
        digest = hashlib.blake2b(f"points:{self.shape}".encode(), digest_size=16)
        sums, peak, seen = np.zeros(self.n_features), 0.0, 0
        bad, sample = [np.empty(0, dtype=np.int64)], [np.empty((0, self.n_features))]
        chosen = sample_positions(self.n_rows if self.n_features <= SAMPLE_COLUMNS else 0)
        for block in self.blocks():
            values = np.ascontiguousarray(block, dtype=np.float64) + 0.0  # no -0.0
            digest.update(values.data)
            rows = values[chosen[(chosen >= seen) & (chosen < seen + len(values))] - seen]
            sample.append(rows[np.isfinite(rows).all(axis=1)])
            not_finite = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if not_finite.size:
                values = np.delete(values, not_finite, axis=0)
            bad.append(seen + not_finite)
            sums += values.sum(axis=0)
            peak = max(peak, float(np.abs(values).max(initial=0.0)))
            seen += block.shape[0]
        positions = np.concatenate(bad)
        mean = sums / max(seen - positions.size, 1)
        return RowSummary(digest.hexdigest(), positions, mean, peak, np.concatenate(sample))

    def total(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the sum of `function(block)` over all blocks.

        Parameters
        ----------
        function
            Takes a float64 block; its results have one shape.

        Returns
        -------
        ndarray
            Of that shape.
        """
        return reduce(add, (function(block.astype(np.float64)) for block in self.blocks()))

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64, in the given order; chunks without any are not read.

        Parameters
        ----------
        rows
            Positions from 0, in any order.

        Returns
        -------
        ndarray
            Shape (len(rows), n_features).
        """
        wanted = np.asarray(rows, dtype=np.int64)
        order = np.argsort(wanted, kind="stable")
        ordered = wanted[order]
        out = np.empty((wanted.size, self.n_features))
        for start, block in self._blocks_with(ordered):
            a, b = np.searchsorted(ordered, [start, start + block.shape[0]])
            out[order[a:b]] = block[ordered[a:b] - start]
        return out

    def _blocks_with(self, ordered: IndexArray) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield the blocks of the chunks that contain these rows."""
        position = 0
        for _, chunk in self.complete((chunk.n_rows, chunk) for chunk in self.chunks()):
            stop = int(np.searchsorted(ordered, chunk.start + chunk.n_rows))
            if stop > position:
                yield from chunk.blocks()
            if stop == ordered.size:
                return
            position = stop

    def read(self) -> FloatArray:
        """Return all rows as one float64 array.

        Returns
        -------
        ndarray
            Shape (n_rows, n_features), in memory.
        """
        out = np.empty(self.shape)
        seen = 0
        for block in self.blocks():
            out[seen : seen + block.shape[0]] = block
            seen += block.shape[0]
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_rows} × {self.n_features})"


class SlicedRows(RowSource):
    """Rows that can be read from any position; subclasses implement `between`."""

    @abstractmethod
    def between(self, start: int, stop: int) -> Any:
        """Return rows `start` to `stop`, dense or sparse."""

    def chunks(self, n_rows: int | None = None) -> Iterator[Chunk]:
        """Yield chunks of one block each."""
        step = self.block_rows(n_rows)
        for start in range(0, self.n_rows, step):
            yield self._slice(start, min(start + step, self.n_rows), n_rows)

    def _slice(self, start: int, stop: int, n_rows: int | None = None) -> Chunk:
        return self.chunk(start, stop - start, n_rows, partial(_sliced, self, start, stop))

    def _blocks_with(self, ordered: IndexArray) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield the slices around these rows, split at wide gaps and at the ends of blocks."""
        step = self.block_rows(None)
        # A gap of a 16th of a block: at most 16 reads per block instead of one.
        apart = (np.diff(ordered) > step // 16) | (np.diff(ordered // step) > 0)
        for group in np.split(ordered, np.flatnonzero(apart) + 1) if ordered.size else ():
            yield from self._slice(int(group[0]), int(group[-1]) + 1).blocks()


def _sliced(source: SlicedRows, start: int, stop: int) -> list[Any]:
    return [source.between(start, stop)]


class ArrayRows(SlicedRows):
    """Rows of anything with a shape and slices: ndarray, memmap, CSR, Zarr."""

    def __init__(self, array: Any) -> None:
        require_rows(tuple(array.shape))
        self.array = array
        self.n_rows, self.n_features = (int(size) for size in array.shape)
        # A Zarr array in a folder is opened again by the worker; anything else is sent.
        self.is_portable = hasattr(getattr(array, "store", None), "root")

    def between(self, start: int, stop: int) -> Any:
        """Return rows `start` to `stop`."""
        return self.array[start:stop]

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64, in the given order."""
        if isinstance(self.array, np.ndarray) or sparse.issparse(self.array):
            return np.asarray(dense(self.array[np.asarray(rows)]), dtype=np.float64)
        return super().take(rows)


class GeneratedRows(RowSource):
    """Rows of a function that returns an iterator over the same blocks at every call."""

    def __init__(self, factory: Callable[[], Iterable[Any]]) -> None:
        self.factory = factory
        shapes: list[tuple[int, ...]] = []
        for rows in self._generate():
            if not shapes:
                self._first = np.atleast_1d(rows)[:1].copy()
            shapes.append(rows.shape)
        if not shapes or len(shapes[0]) != 2 or 0 in shapes[0]:
            raise InputError(
                f"{factory!r} must return an iterator of blocks, rows × features; it returned "
                f"{f'a block of shape {shapes[0]}' if shapes else 'no blocks'}."
            )
        require_numeric(self._first.dtype, f"a block of {factory!r}")
        self.n_rows, self.n_features = sum(shape[0] for shape in shapes), shapes[0][1]

    def chunks(self, n_rows: int | None = None) -> Iterator[Chunk]:
        """Yield chunks of one block each, with their rows in memory."""
        start, step = 0, self.block_rows(n_rows)
        for rows in self._generate():
            if start == 0 and rows[:1].tobytes() != self._first.tobytes():
                raise InputError(
                    f"{self!r} returned {rows[0]} as its first row, but {self._first[0]} before. "
                    f"{SAME_ROWS}"
                )
            for block in (rows[a : a + step] for a in range(0, rows.shape[0], step)):
                yield self.chunk(start, block.shape[0], n_rows, list).with_rows(block)
                start += block.shape[0]

    def _generate(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the blocks that are not empty."""
        blocks = self.factory()
        if not isinstance(blocks, Iterable):
            raise InputTypeError(
                f"{self.factory!r} must return an iterator of blocks, rows × features, not "
                f"{shape_of(blocks)}."
            )
        return (rows for rows in map(dense, blocks) if rows.shape[:1] != (0,))
