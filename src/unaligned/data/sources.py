"""Rows that are somewhere else: read block by block, as often as needed, never all at once."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._check import FloatArray, shape_of
from ..errors import FileError, InputError, InputTypeError, MissingExtraError

# A block in double precision: large enough for full speed, small beside any accumulator.
BLOCK_BYTES = 1 << 23


class RowSummary(NamedTuple):
    """What one pass over all rows tells: a hash, rows that are not finite, mean and peak."""

    digest: str
    n_bad: int
    first_bad: int
    mean: FloatArray
    peak: float


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

    @abstractmethod
    def _read(self, n_rows: int) -> Iterator[Any]:
        """Yield consecutive blocks of about `n_rows` rows, dense or sparse, from the start."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n_rows, n_features)."""
        return self.n_rows, self.n_features

    def blocks(self, n_rows: int | None = None) -> Iterator[npt.NDArray[Any]]:
        """Yield all rows in blocks of at most `n_rows` (8 MiB where None), dense and numeric."""
        row_bytes = 8 * max(1, self.n_features)
        fewest = min(4096, max(256, 8 * BLOCK_BYTES // row_bytes))
        size = n_rows or max(fewest, BLOCK_BYTES // row_bytes)
        seen = 0
        for part in self._read(size):
            for start in range(0, part.shape[0], size):
                block = _dense(part[start : start + size])
                if block.ndim != 2 or block.shape[1] != self.n_features:
                    raise InputError(
                        f"{self!r} gave a block of shape {block.shape} after {seen} rows; every "
                        f"block must have {self.n_features} columns."
                    )
                seen += block.shape[0]
                yield block
        if seen != self.n_rows:
            raise InputError(
                f"{self!r} gave {seen} rows, and {self.n_rows} before. A source must give the "
                "same rows every time it is read: a generator must be made anew by a function."
            )

    @cached_property
    def summary(self) -> RowSummary:
        """One pass over all rows, done once: O(n_rows n_features) time, one block of memory."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"points:{self.shape}".encode())
        sums, peak, n_bad, first_bad, seen = np.zeros(self.n_features), 0.0, 0, -1, 0
        for block in self.blocks():
            values = np.ascontiguousarray(block, dtype=np.float64) + 0.0  # no -0.0
            digest.update(values.data)
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if bad.size:
                first_bad = seen + int(bad[0]) if first_bad < 0 else first_bad
                values = np.delete(values, bad, axis=0)
            sums += values.sum(axis=0)
            peak = max(peak, float(np.abs(values).max(initial=0.0)))
            n_bad, seen = n_bad + bad.size, seen + block.shape[0]
        mean = sums / max(seen - n_bad, 1)
        return RowSummary(digest.hexdigest(), int(n_bad), first_bad, mean, peak)

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64, in the order asked for; one pass over the source."""
        wanted = np.asarray(rows, dtype=np.int64)
        order = np.argsort(wanted, kind="stable")
        out = np.empty((wanted.size, self.n_features))
        seen, place = 0, 0
        for block in self.blocks():
            stop = int(np.searchsorted(wanted[order], seen + block.shape[0]))
            chosen = order[place:stop]
            out[chosen] = block[wanted[chosen] - seen]
            seen, place = seen + block.shape[0], stop
        return out

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


class ArrayRows(RowSource):
    """Rows of anything with a shape and slices: ndarray, memmap, CSR, HDF5, Zarr, backed h5ad."""

    def __init__(self, array: Any) -> None:
        if len(array.shape) != 2 or 0 in array.shape:
            raise InputError(
                f"A source of rows must be two-dimensional, rows × features, and not empty; "
                f"shape {tuple(array.shape)} arrived."
            )
        self.array = array
        self.n_rows, self.n_features = (int(size) for size in array.shape)

    def _read(self, n_rows: int) -> Iterator[Any]:
        for start in range(0, self.n_rows, n_rows):
            yield self.array[start : start + n_rows]

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64; at once where the array is in memory."""
        if isinstance(self.array, np.ndarray) or sparse.issparse(self.array):
            return np.asarray(_dense(self.array[np.asarray(rows)]), dtype=np.float64)
        return super().take(rows)


class NpyRows(RowSource):
    """Rows of a `.npy` file, read block by block into one buffer (not mapped into memory)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            with self.path.open("rb") as file:
                version = np.lib.format.read_magic(file)
                read = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
                shape, fortran, self.dtype = read(file)
                self._offset = file.tell()
        except (OSError, ValueError, AttributeError) as error:
            raise FileError(f"{os.fspath(path)!r} cannot be read as .npy: {error}.") from error
        if len(shape) != 2 or fortran or self.dtype.kind not in "biuf" or 0 in shape:
            raise FileError(
                f"{os.fspath(path)!r} must hold rows × features of real numbers in C order; it "
                f"holds shape {shape}, dtype {self.dtype}, {'Fortran' if fortran else 'C'} order. "
                "Write it again with numpy.save(path, numpy.ascontiguousarray(values))."
            )
        self.n_rows, self.n_features = (int(size) for size in shape)

    def _read(self, n_rows: int) -> Iterator[Any]:
        with self.path.open("rb", buffering=0) as file:
            file.seek(self._offset)
            for start in range(0, self.n_rows, n_rows):
                size = min(n_rows, self.n_rows - start)
                block = np.empty((size, self.n_features), dtype=self.dtype)
                _fill(file, block, self.path)
                yield block


class ParquetRows(RowSource):
    """Rows of a Parquet file, all of its columns (or those named), read by batches."""

    def __init__(self, path: str | os.PathLike[str], columns: list[str] | None = None) -> None:
        parquet = required("pyarrow.parquet", "formats")
        self.path, self.columns = Path(path), columns
        with parquet.ParquetFile(self.path) as file:
            self.n_rows = int(file.metadata.num_rows)
            self.n_features = len(columns or file.schema_arrow.names)

    def _read(self, n_rows: int) -> Iterator[Any]:
        from .convert import to_values

        parquet = required("pyarrow.parquet", "formats")
        with parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(batch_size=n_rows, columns=self.columns):
                # The file's order otherwise, whatever order was asked for.
                yield to_values(batch.select(self.columns) if self.columns else batch, repr(self))


class DaskRows(RowSource):
    """Rows of a Dask array, computed chunk by chunk."""

    def __init__(self, array: Any) -> None:
        if array.ndim != 2 or any(np.isnan(size) or size == 0 for size in array.shape):
            raise InputError(
                f"A Dask array must be rows × features of known size; shape {array.shape} "
                "arrived. Call array.compute_chunk_sizes() first."
            )
        self.array = array.rechunk({1: -1})
        self.n_rows, self.n_features = (int(size) for size in array.shape)

    def _read(self, n_rows: int) -> Iterator[Any]:
        for start in range(self.array.numblocks[0]):
            yield np.asarray(self.array.blocks[start].compute())


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
        shapes = [np.shape(block) for block in factory()]
        if not shapes or len(shapes[0]) != 2 or 0 in shapes[0]:
            raise InputError(
                f"{factory!r} must return an iterator of blocks, rows × features; "
                f"{'none' if not shapes else f'a block of shape {shapes[0]}'} arrived."
            )
        self.n_rows, self.n_features = sum(int(shape[0]) for shape in shapes), int(shapes[0][1])

    def _read(self, n_rows: int) -> Iterator[Any]:
        yield from map(_dense, self.factory())


class FiniteRows(RowSource):
    """The rows of another source without those that hold NaN or infinity."""

    def __init__(self, source: RowSource) -> None:
        self.source = source
        self.n_rows, self.n_features = source.n_rows - source.summary.n_bad, source.n_features

    def _read(self, n_rows: int) -> Iterator[Any]:
        for block in self.source.blocks(n_rows):
            yield block[np.isfinite(block).all(axis=1)]


class MappedRows(RowSource):
    """The rows of another source, each block changed by a function that keeps their number."""

    def __init__(self, source: RowSource, function: Callable[[Any], Any]) -> None:
        self.source, self.function = source, function
        self.n_rows, self.n_features = source.shape

    def _read(self, n_rows: int) -> Iterator[Any]:
        for block in self.source.blocks(n_rows):
            yield self.function(block.astype(np.float64))


def as_source(data: Any) -> RowSource:
    """Return a source of the rows of `data`: an array-like, a path, or a function of blocks.

    Examples
    --------
    >>> as_source(np.zeros((4, 2)))
    ArrayRows(4 × 2)
    """
    if isinstance(data, RowSource):
        return data
    if isinstance(data, (str, os.PathLike)):
        return _from_path(Path(data))
    if type(data).__module__.partition(".")[0] == "dask":
        return DaskRows(data)
    if hasattr(data, "shape") and hasattr(data, "__getitem__"):
        return ArrayRows(data)
    if callable(data):
        return GeneratedRows(data)
    raise InputTypeError(
        f"source must be an array, a path (.npy, .parquet), or a function that returns an "
        f"iterator of row blocks, not {shape_of(data)}."
    )


def _from_path(path: Path) -> RowSource:
    readers: dict[str, Callable[[Path], RowSource]] = {".npy": NpyRows, ".parquet": ParquetRows}
    if path.suffix not in readers:
        raise InputError(
            f"source={os.fspath(path)!r}: only {' and '.join(readers)} files are read by blocks. "
            "Open others first, e.g. h5py.File(path)['X'] or zarr.open(path)."
        )
    return readers[path.suffix](path)


def _fill(file: Any, block: npt.NDArray[Any], path: Path) -> None:
    """Read the bytes of a block; a file may give fewer at a time than asked for."""
    view = block.data.cast("B")
    while view.nbytes:
        count = file.readinto(view)
        if not count:
            raise FileError(f"{os.fspath(path)!r} ends early: it is shorter than its header says.")
        view = view[count:]


def _dense(block: Any) -> npt.NDArray[Any]:
    return block.toarray() if sparse.issparse(block) else np.asarray(block)


def required(module: str, extra: str) -> Any:
    """Return an optional module, or say which extra brings it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(package, extra, "Reading this file") from error
