"""Rows of files, read by blocks; a worker that is sent a source opens the file itself."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import errors
from .._check import reject_anndata, shape_of
from ..data.facts import column_names
from ..errors import FileError, InputError, InputTypeError, required
from .dask import DaskRows
from .source import ArrayRows, Chunk, GeneratedRows, RowSource, SlicedRows, require_rows


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn any error inside into one that names the file; `what` is the expected format."""
    label = repr(os.fspath(path))
    try:
        yield
    except (errors.UnalignedError, errors.UnalignedWarning) as error:
        if not isinstance(error, InputError) or label in str(error):
            raise
        raise type(error)(f"{label}: {error}") from error
    except MemoryError as error:
        raise FileError(f"{label} needs more memory than is available.") from error
    except BaseException as error:  # libraries raise anything on malformed input
        # Panics of Rust (safetensors) are not Exceptions; Ctrl-C and exit must pass.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if isinstance(error, OSError) and error.strerror:
            raise FileError(f"Cannot read {label}: {error.strerror}.") from error
        raise FileError(
            f"{label} cannot be read as {what} ({first_line(error)}). The file is damaged, or its "
            "suffix is wrong."
        ) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error message, at most 200 characters, without a full stop."""
    lines = str(error).strip().splitlines()
    text = lines[0].strip().rstrip(".") if lines else ""
    return (text if len(text) < 200 else f"{text[:200]}…") or type(error).__name__


class StoredRows(SlicedRows):
    """Rows of an array in a file that is opened for each block and closed after it.

    No handle stays open, so that datasets can be sent to other processes.
    """

    def __init__(
        self, path: Path, opened: Callable[[], AbstractContextManager[Any]], shape: tuple[int, ...]
    ) -> None:
        self.path, self.opened = path, opened
        self.n_rows, self.n_features = (int(size) for size in shape)

    def between(self, start: int, stop: int) -> Any:
        """Return rows `start` to `stop`."""
        with reading(self.path, "the format it had when it was opened"), self.opened() as array:
            return array[start:stop]


class NpyRows(SlicedRows):
    """Rows of a `.npy` file, read block by block (not mapped into memory)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        with reading(Path(path), ".npy"), self.path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
            shape, fortran, self.dtype = read_header(file)
            self._offset = file.tell()
        if len(shape) != 2 or fortran or self.dtype.kind not in "biuf" or 0 in shape:
            raise FileError(
                f"{os.fspath(path)!r} must hold rows × features of real numbers in C order; it "
                f"holds shape {shape}, dtype {self.dtype}, {'Fortran' if fortran else 'C'} order. "
                "Write it again with numpy.save(path, numpy.ascontiguousarray(values))."
            )
        self.n_rows, self.n_features = (int(size) for size in shape)

    def between(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return rows `start` to `stop`."""
        shape = (stop - start, self.n_features)
        offset = self._offset + start * self.n_features * self.dtype.itemsize
        with reading(self.path, ".npy"):
            values = np.fromfile(self.path, self.dtype, count=shape[0] * shape[1], offset=offset)
            if values.size < shape[0] * shape[1]:
                raise FileError("The file ends early: it is shorter than its header says.")
        return values.reshape(shape)


class ParquetRows(RowSource):
    """Rows of a Parquet file, all of its columns or those named, read by row groups."""

    def __init__(self, path: str | os.PathLike[str], columns: list[str] | None = None) -> None:
        self.path, self.columns = Path(path).absolute(), columns
        with reading(Path(path), "Parquet"), self._open() as file:
            self.n_rows = int(file.metadata.num_rows)
            names = columns or file.schema_arrow.names
            self.n_features = len(names)
            self.feature_names = column_names(names) if columns is None else None
            groups = range(file.metadata.num_row_groups)
            self._sizes = [int(file.metadata.row_group(i).num_rows) for i in groups]

    def chunks(self, n_rows: int | None = None) -> Iterator[Chunk]:
        """Yield one chunk for each row group."""
        start, step = 0, self.block_rows(n_rows)
        for group, size in enumerate(self._sizes):
            if size:
                yield self.chunk(start, size, n_rows, partial(self._row_group, group, step))
            start += size

    def _row_group(self, group: int, step: int) -> Iterator[Any]:
        from ..data.values import to_values  # which imports this module

        with reading(self.path, "Parquet"), self._open() as file:
            for batch in file.iter_batches(step, row_groups=[group], columns=self.columns):
                # `columns` are read in the order of the file.
                yield to_values(batch.select(self.columns) if self.columns else batch, repr(self))

    def _open(self) -> Any:
        parquet = required("pyarrow.parquet", "formats", "Reading .parquet")
        self.path.stat()  # raises FileNotFoundError, with a shorter message than pyarrow's
        return parquet.ParquetFile(self.path)


@dataclass(frozen=True)
class StoredSparse:
    """A CSR (or CSC) matrix in HDF5 or Zarr, read by slices of rows (or columns).

    Indices are checked before SciPy uses them: it would read outside of its arrays.
    """

    name: str  # in error messages, such as `X`
    shape: tuple[int, int]
    # Functions that open its `data`, `indices` and `indptr`.
    arrays: Mapping[str, Callable[[], AbstractContextManager[Any]]]
    is_csr: bool = True

    def __getitem__(self, rows: slice) -> Any:
        """Return consecutive rows (of CSC, columns) as a sparse array."""
        pointers = self._between("indptr", rows.start, rows.stop + 1).astype(np.int64)
        start, stop = int(pointers[0]), int(pointers[-1])
        data, indices = (self._between(name, start, stop) for name in ("data", "indices"))
        n, n_across = rows.stop - rows.start, self.shape[1 if self.is_csr else 0]
        if indices.dtype.kind not in "iu" or (
            indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < n_across
        ):
            raise FileError(f"The sparse matrix {self.name!r} has indices outside of its shape.")
        csr = data, indices.astype(np.int64), pointers - start
        if self.is_csr:
            return sparse.csr_array(csr, shape=(n, n_across))
        return sparse.csc_array(csr, shape=(n_across, n))

    def _between(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        with self.arrays[name]() as stored:
            return np.asarray(stored[start:stop])


class HDF5Rows(SlicedRows):
    """Rows of an `h5py.Dataset`, or of the `h5py.Group` of a CSR matrix as AnnData writes it.

    The file is closed by whoever opened it; a worker opens it again.
    """

    def __init__(self, place: Any) -> None:
        self.place = self.values = place
        is_group = hasattr(place, "keys")
        if is_group and place.attrs.get("encoding-type") != "csr_matrix":
            raise InputError(
                f"{place.name!r} of {place.file.filename!r} is neither an array nor a CSR matrix, "
                "so it cannot be read by blocks. Choose one such as file['obsm/X_pca'], or write "
                "a CSC matrix as CSR."
            )
        shape = tuple(place.attrs["shape"] if is_group else place.shape)
        require_rows(shape)
        self.n_rows, self.n_features = (int(size) for size in shape)
        if is_group:
            arrays = {name: partial(nullcontext, place[name]) for name in place}
            self.values = StoredSparse(place.name, self.shape, arrays)

    def between(self, start: int, stop: int) -> Any:
        """Return rows `start` to `stop`."""
        return self.values[start:stop]

    def __getstate__(self) -> tuple[str, str]:
        return os.path.abspath(self.place.file.filename), self.place.name

    def __setstate__(self, place: tuple[str, str]) -> None:
        h5py = required("h5py", "formats", "Reading HDF5")
        self.__init__(h5py.File(place[0], "r")[place[1]])  # type: ignore[misc]


def as_source(data: Any) -> RowSource:
    """Return a source of the rows of `data`: an array-like, a path, or a function of blocks."""
    if isinstance(data, RowSource):
        return data
    if isinstance(data, (str, os.PathLike)):
        suffix = Path(data).suffix.lower()
        if suffix in (".npy", ".parquet"):
            return NpyRows(data) if suffix == ".npy" else ParquetRows(data)
        raise InputError(
            f"source={os.fspath(data)!r}: only .npy, .parquet and .h5ad files are read by blocks. "
            "Open others first, e.g. h5py.File(path)['obsm/X_pca'] or zarr.open(path)."
        )
    package = type(data).__module__.partition(".")[0]
    if package in ("dask", "h5py"):
        return DaskRows(data) if package == "dask" else HDF5Rows(data)
    reject_anndata(data, "source")
    if hasattr(data, "shape") and hasattr(data, "__getitem__"):
        return ArrayRows(data)
    if callable(data):
        return GeneratedRows(data)
    raise InputTypeError(
        f"source must be an array, a path (.npy, .parquet, .h5ad), or a function that returns an "
        f"iterator of row blocks, not {shape_of(data)}."
    )
