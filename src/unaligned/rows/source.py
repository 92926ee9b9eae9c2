"""Rows that are somewhere else: read block by block, as often as needed, never all at once.

A source is a sequence of `Part`s. What can be opened again elsewhere (a file, a Dask array)
gives parts that are read by whoever works on them, here or on a worker of an engine; what
cannot (memory, a generator) gives parts that carry their rows.
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

from .. import defaults
from .._check import FloatArray, IndexArray, shape_of
from ..errors import InputError, InputTypeError

SAME_ROWS = (
    "A source must give the same rows every time it is read: a generator must be made anew by a "
    "function, with its seed, and a file must not be written meanwhile."
)


class Part(NamedTuple):
    """Consecutive rows of a source, read when they are asked for.

    Examples
    --------
    >>> part = Part(4, 3, 2, 2, "points", list).carrying(np.zeros((3, 2)))
    >>> [(start, block.shape) for start, block in part.blocks()]
    [(4, (2, 2)), (6, (1, 2))]
    """

    start: int  # the place of the first among all rows
    n_rows: int
    n_features: int
    step: int  # the most rows of a block
    label: str  # the source, as errors call it
    read: Callable[[], Iterable[Any]]  # consecutive arrays, dense or sparse

    def blocks(self) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield the rows by dense blocks, each with the place of its first row.

        Blocks that are no tables of numbers, narrower or wider than all others, or of more or
        fewer rows than there were before, are refused.
        """
        start = self.start
        for rows in self.read():
            for a in range(0, rows.shape[0], self.step):
                block = dense(rows[a : a + self.step])
                self._require_table(block, start + a)
                yield start + a, block
            start += rows.shape[0]
        if start - self.start != self.n_rows:
            raise InputError(
                f"{self.label} gave {start - self.start} rows from row {self.start} on, and "
                f"{self.n_rows} before. {SAME_ROWS}"
            )

    def _require_table(self, block: npt.NDArray[Any], start: int) -> None:
        if block.ndim != 2 or block.shape[1] != self.n_features:
            raise InputError(
                f"{self.label} gave a block of shape {block.shape} after {start} rows; every "
                f"block must have {self.n_features} columns."
            )
        require_numeric(block.dtype, self.label)

    def carried(self) -> Part:
        """Return the part with its rows, as they are now."""
        return self.carrying(list(self.read()))

    def carrying(self, rows: Any) -> Part:
        """Return the part with these rows, an array or a list of them."""
        return self._replace(read=partial(_itself, rows if isinstance(rows, list) else [rows]))

    def mapped(self, function: Callable[[Any], Any], n_features: int) -> Part:
        """Return the part with every block changed by a function, once it is read."""
        return self._replace(read=partial(_mapped, function, self), n_features=n_features)


def require_numeric(dtype: np.dtype[Any], label: str) -> None:
    """Refuse what is not real numbers."""
    if dtype.kind in "biuf":
        return
    what = {
        "O": "Python objects",
        "U": "text",
        "S": "bytes",
        "c": "complex numbers",
        "M": "dates",
        "m": "time spans",
        "V": "records",
    }.get(dtype.kind, str(dtype))
    raise InputTypeError(
        f"{label} must hold real numbers; it holds {what} (dtype {dtype}). "
        "Convert it first, e.g. values.astype(float)."
    )


def dense(block: Any) -> npt.NDArray[Any]:
    """Return a block as an array, a sparse one with its zeros."""
    return block.toarray() if sparse.issparse(block) else np.asarray(block)


def _itself(rows: list[Any]) -> list[Any]:
    return rows


def _mapped(function: Callable[[Any], Any], part: Part) -> Iterator[Any]:
    return (function(block.astype(np.float64)) for _, block in part.blocks())


def is_large(n_bytes: int) -> bool:
    """Return whether rows of this size stay where they are and are read by blocks.

    The one rule for files, Dask arrays and lazy datasets; `Dataset.is_streamed` adds the number
    of rows from which on even rows in memory are processed by blocks.
    """
    return n_bytes > defaults.LAZY_BYTES


# A block in double precision: large enough for full speed, small beside any accumulator.
BLOCK_BYTES = 1 << 23
# Rows that are worked on together. Blocks of more rows end between pieces, so that these are the
# same however a source is cut.
PIECE_ROWS = 2048
# Of a block so many slices are read at the most where few of its rows are wanted.
_GAPS = 16


class RowSummary(NamedTuple):
    """What one pass over all rows tells: a hash, bad rows, mean, peak and the first row."""

    digest: str
    n_bad: int
    first_bad: int
    mean: FloatArray
    peak: float
    first: FloatArray


class RowSource(ABC):
    """Rows of points, (n_rows, n_features), that can be read from the start again and again.

    Subclasses say how to read; everything else is a pass over blocks. Only one block is in
    memory at a time.

    Examples
    --------
    >>> source = ArrayRows(np.arange(6.0).reshape(3, 2))
    >>> [block.shape for block in source.blocks(2)]
    [(2, 2), (1, 2)]
    """

    n_rows: int
    n_features: int
    feature_names: tuple[str, ...] | None = None  # where what it reads has names

    @abstractmethod
    def parts(self, n_rows: int | None = None) -> Iterator[Part]:
        """Yield all rows by parts with blocks of at most `n_rows` (8 MiB where None)."""

    def jobs(self, n_rows: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield each part, with its number of rows, as it is sent to where work is done."""
        return ((part.n_rows, part) for part in self.parts(n_rows))

    def whole(self, jobs: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        """Yield the jobs, or parts, and refuse in the end more or fewer rows than before."""
        seen = 0
        for n_rows, job in jobs:
            seen += n_rows
            yield n_rows, job
        if seen != self.n_rows:
            raise InputError(f"{self!r} gave {seen} rows, and {self.n_rows} before. {SAME_ROWS}")

    @property
    def shape(self) -> tuple[int, int]:
        """(n_rows, n_features)."""
        return self.n_rows, self.n_features

    def step(self, n_rows: int | None) -> int:
        """Return the rows of a block: these, or what 8 MiB hold, and not too few."""
        row_bytes = 8 * max(1, self.n_features)
        fewest = min(4096, max(256, 8 * BLOCK_BYTES // row_bytes))
        rows = n_rows or max(fewest, BLOCK_BYTES // row_bytes)
        return rows if n_rows or rows < PIECE_ROWS else rows // PIECE_ROWS * PIECE_ROWS

    def part(self, start: int, size: int, n_rows: int | None, read: Callable[[], Any]) -> Part:
        """Return so many rows from a place on, with blocks of at most `n_rows`."""
        return Part(start, size, self.n_features, self.step(n_rows), repr(self), read)

    def blocks(self, n_rows: int | None = None) -> Iterator[npt.NDArray[Any]]:
        """Yield all rows in blocks of at most `n_rows` (8 MiB where None), dense and numeric."""
        parts = self.whole((part.n_rows, part) for part in self.parts(n_rows))
        yield from (block for _, part in parts for _, block in part.blocks())

    @cached_property
    def summary(self) -> RowSummary:
        """One pass over all rows, done once: O(n_rows n_features) time, one block of memory."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"points:{self.shape}".encode())
        sums, peak, n_bad, first_bad, seen = np.zeros(self.n_features), 0.0, 0, -1, 0
        first = np.empty((0, self.n_features))
        for block in self.blocks():
            values = np.ascontiguousarray(block, dtype=np.float64) + 0.0  # no -0.0
            digest.update(values.data)
            first = first if first.size else values[:1].copy()
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if bad.size:
                first_bad = seen + int(bad[0]) if first_bad < 0 else first_bad
                values = np.delete(values, bad, axis=0)
            sums += values.sum(axis=0)
            peak = max(peak, float(np.abs(values).max(initial=0.0)))
            n_bad, seen = n_bad + bad.size, seen + block.shape[0]
        mean = sums / max(seen - n_bad, 1)
        return RowSummary(digest.hexdigest(), int(n_bad), first_bad, mean, peak, first)

    def total(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the sum of `function(block)` over all blocks, worked out where the rows are."""
        return reduce(add, (function(block.astype(np.float64)) for block in self.blocks()))

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64, in the order asked for; no part without any is read."""
        wanted = np.asarray(rows, dtype=np.int64)
        order = np.argsort(wanted, kind="stable")
        ordered = wanted[order]
        out = np.empty((wanted.size, self.n_features))
        for start, block in self._around(ordered):
            a, b = np.searchsorted(ordered, [start, start + block.shape[0]])
            out[order[a:b]] = block[ordered[a:b] - start]
        return out

    def _around(self, ordered: IndexArray) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield blocks that hold these rows, each with the place of its first row."""
        place = 0
        for _, part in self.whole((part.n_rows, part) for part in self.parts()):
            stop = int(np.searchsorted(ordered, part.start + part.n_rows))
            if stop > place:
                yield from part.blocks()
            if stop == ordered.size:
                return
            place = stop

    def read(self) -> FloatArray:
        """Return all rows as one float64 array."""
        out = np.empty(self.shape)
        seen = 0
        for block in self.blocks():
            out[seen : seen + block.shape[0]] = block
            seen += block.shape[0]
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_rows} × {self.n_features})"


class SlicedRows(RowSource):
    """Rows that can be read from any place; a subclass that can be pickled is opened anywhere."""

    @abstractmethod
    def between(self, start: int, stop: int) -> Any:
        """Return these rows, dense or sparse."""

    def parts(self, n_rows: int | None = None) -> Iterator[Part]:
        """Yield parts of one block each."""
        step = self.step(n_rows)
        for start in range(0, self.n_rows, step):
            stop = min(start + step, self.n_rows)
            yield self.part(start, stop - start, n_rows, partial(self._slice, start, stop))

    def _around(self, ordered: IndexArray) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield what lies between these rows, but for wide gaps and never more than a block."""
        step = self.step(None)
        apart = (np.diff(ordered) > step // _GAPS) | (np.diff(ordered // step) > 0)
        for some in np.split(ordered, np.flatnonzero(apart) + 1) if ordered.size else ():
            start, stop = int(some[0]), int(some[-1]) + 1
            part = self.part(start, stop - start, None, partial(self._slice, start, stop))
            yield from part.blocks()

    def _slice(self, start: int, stop: int) -> list[Any]:
        return [self.between(start, stop)]


class ArrayRows(SlicedRows):
    """Rows of anything with a shape and slices: ndarray, memmap, CSR, Zarr."""

    def __init__(self, array: Any) -> None:
        require_rows(tuple(array.shape))
        self.array = array
        self.n_rows, self.n_features = (int(size) for size in array.shape)

    def between(self, start: int, stop: int) -> Any:
        """Return these rows."""
        return self.array[start:stop]

    def jobs(self, n_rows: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield parts that carry their rows; a Zarr array in a folder is opened there again."""
        if hasattr(getattr(self.array, "store", None), "root"):
            return super().jobs(n_rows)
        return ((part.n_rows, part.carried()) for part in self.parts(n_rows))

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64; at once where the array is in memory."""
        if isinstance(self.array, np.ndarray) or sparse.issparse(self.array):
            return np.asarray(dense(self.array[np.asarray(rows)]), dtype=np.float64)
        return super().take(rows)


class GeneratedRows(RowSource):
    """Rows of a function that, each time it is called, yields the same blocks from the start.

    Examples
    --------
    >>> source = GeneratedRows(lambda: (np.full((2, 3), i) for i in range(4)))
    >>> source.shape
    (8, 3)
    """

    def __init__(self, factory: Callable[[], Iterable[Any]]) -> None:
        self.factory = factory
        shapes: list[tuple[int, ...]] = []
        for rows in self._given():
            if not shapes:
                self._first = np.atleast_1d(rows)[:1].copy()
            shapes.append(rows.shape)
        if not shapes or len(shapes[0]) != 2 or 0 in shapes[0]:
            raise InputError(
                f"{factory!r} must return an iterator of blocks, rows × features; "
                f"{'none' if not shapes else f'a block of shape {shapes[0]}'} arrived."
            )
        require_numeric(self._first.dtype, f"a block of {factory!r}")
        self.n_rows, self.n_features = sum(shape[0] for shape in shapes), shapes[0][1]

    def parts(self, n_rows: int | None = None) -> Iterator[Part]:
        """Yield parts of one block each; they must begin as they did before."""
        start, step = 0, self.step(n_rows)
        for rows in self._given():
            if start == 0 and rows[:1].tobytes() != self._first.tobytes():
                raise InputError(
                    f"{self!r} gave {rows[0]} as its first row, and {self._first[0]} before. The "
                    "function must give the same rows at every call: seed its generator inside."
                )
            for block in (rows[a : a + step] for a in range(0, rows.shape[0], step)):
                yield self.part(start, block.shape[0], n_rows, list).carrying(block)
                start += block.shape[0]

    def _given(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the blocks that are not empty."""
        given = self.factory()
        if not isinstance(given, Iterable):
            raise InputTypeError(
                f"{self.factory!r} must return an iterator of blocks, rows × features; "
                f"{shape_of(given)} arrived."
            )
        return (rows for rows in map(dense, given) if rows.shape[:1] != (0,))


def require_rows(shape: tuple[int, ...]) -> None:
    """Refuse what is not rows × features, or empty."""
    if len(shape) != 2 or 0 in shape:
        raise InputError(
            f"A source of rows must be two-dimensional, rows × features, and not empty; shape "
            f"{shape} arrived."
        )
