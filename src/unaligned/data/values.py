"""Values of a dataset: conversion of array-likes to a 2-D array, and validation."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._check import FloatArray, IndexArray, reject_anndata, require_numeric, shape_of
from ..errors import InputError, InputTypeError, MissingDataWarning, counted, warn
from ..rows.files import as_source
from ..rows.source import ArrayRows, RowSource
from ..rows.transforms import choose_rows
from .facts import Names, column_names, row_names
from .preprocess import Values

TORCH_REMEDY = (
    "For a model and a DataLoader use ua.torch.activations(model, loader), whose layers can be "
    "compared; for the inputs themselves, torch.cat([batch[0] for batch in loader]).flatten(1)."
)


def to_values(data: Any, label: str) -> Values:
    """Return `data` as a 2-D numeric ndarray, memmap or CSR array, copied only if necessary.

    An HDF5, Zarr or Dask array becomes a `RowSource`.
    """
    values = _to_array(data, label)
    if isinstance(values, RowSource):
        return values
    require_numeric(values.dtype, label)
    if values.ndim != 2:
        remedy = "Pass rows of features."
        if values.ndim == 1:
            remedy = "Use values.reshape(-1, 1) for one feature, values.reshape(1, -1) for a row."
        elif values.ndim > 2:
            remedy = (
                "Flatten each sample to one row, values.reshape(len(values), -1), or average over "
                "positions, such as values.mean(axis=(2, 3)) for channels in the second axis."
            )
        raise InputError(
            f"{label} must be two-dimensional, rows × features; its shape is {values.shape}. "
            f"{remedy}"
        )
    if 0 in values.shape:
        raise InputError(
            f"{label} is empty: its shape is {tuple(values.shape)}. It needs rows and columns."
        )
    if isinstance(values, np.ndarray):
        values = values.view()
        values.flags.writeable = False
    return values


def _to_array(data: Any, label: str) -> Values:
    if isinstance(data, RowSource):
        return data
    if isinstance(data, np.ma.MaskedArray):
        if not np.ma.is_masked(data):
            return np.asarray(data)
        require_numeric(data.dtype, label)
        return np.ma.filled(data.astype(np.float64), np.nan)  # integers have no NaN
    if isinstance(data, np.ndarray):
        return data if isinstance(data, np.memmap) else np.asarray(data)
    if sparse.issparse(data):
        return _canonical_csr(data)
    # Base classes too: a subclass (a GeoDataFrame, a custom tensor) is read as its base.
    for base in type(data).__mro__:
        module = base.__module__.partition(".")[0]
        if module in _BY_MODULE:
            return _BY_MODULE[module](data, label)
    if isinstance(data, (str, bytes)) or data is None:
        raise InputTypeError(
            f"{label} must be array-like (rows × features), not {data!r}. "
            "Read files with unaligned.load(path)."
        )
    return _from_sequence(data, label)


def feature_names_of(data: Any) -> Names:
    """Return the names of a table's columns if all are text, as scikit-learn does."""
    if isinstance(data, RowSource):
        return data.feature_names
    if not is_from(data, "pandas", "polars", "pyarrow", "dask"):
        return None
    if hasattr(data, "collect_schema"):
        return column_names(data.collect_schema().names())  # .columns of a LazyFrame warns
    return column_names(getattr(data, "column_names", getattr(data, "columns", ())))


def sample_names_of(data: Any) -> Names:
    """Return the names of a pandas table's rows if all are text."""
    return row_names(getattr(data, "index", ())) if is_from(data, "pandas") else None


def is_from(data: Any, *packages: str) -> bool:
    """Return whether the class of `data`, or a base of it, is defined in one of these packages."""
    if type(data) is np.ndarray:  # the usual case; `mro` would slow small distances
        return False
    return any(base.__module__.partition(".")[0] in packages for base in type(data).__mro__)


def _canonical_csr(data: Any) -> Values:
    """Return CSR with sorted indices, without duplicates or stored zeros.

    Preprocessing works on stored entries, so each must be the whole value at its position.
    """
    csr = sparse.csr_array(data)
    if not csr.has_canonical_format or not np.all(csr.data):
        csr = csr.copy()
        csr.sum_duplicates()
        csr.eliminate_zeros()
    return csr


def _from_sequence(data: Any, label: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise InputError(
            f"{label} cannot be read as a table of numbers ({error}). "
            "All rows need the same length."
        ) from None
    except TypeError as error:  # of the `__array__` of, for example, an xarray.Dataset
        message = f"{label} must be array-like (rows × features), not {shape_of(data)} ({error})."
        raise InputTypeError(message) from error
    if array.dtype == object and array.ndim == 0:
        raise InputTypeError(
            f"{label} must be array-like (rows × features), not {shape_of(data)}."
        )
    return array


def _from_pandas(data: Any, label: str) -> npt.NDArray[Any]:
    if data.ndim == 1:
        return np.asarray(data.to_numpy())
    kinds = [(name, getattr(dtype, "kind", "O")) for name, dtype in data.dtypes.items()]
    _reject_columns([str(name) for name, kind in kinds if kind not in "biuf"], label)
    # Nullable and mixed columns (bool beside float) would become Python objects.
    plain = len(set(data.dtypes)) == 1 and isinstance(data.dtypes.iloc[0], np.dtype)
    return np.asarray(
        data.to_numpy() if plain else data.to_numpy(dtype=np.float64, na_value=np.nan)
    )


def _from_polars(data: Any, label: str) -> npt.NDArray[Any]:
    if hasattr(data, "collect"):
        data = data.collect()
    if not hasattr(data, "columns"):
        return np.asarray(data.to_numpy())
    types = zip(data.columns, data.dtypes, strict=True)
    bad = [name for name, t in types if not (t.is_numeric() or str(t) == "Boolean")]
    _reject_columns(bad, label)
    return _stacked([data[name].to_numpy() for name in data.columns], label)


def _from_arrow(data: Any, label: str) -> npt.NDArray[Any]:
    import pyarrow.types as types

    if not hasattr(data, "column_names"):
        return np.asarray(data.to_numpy(zero_copy_only=False))
    numeric = (types.is_integer, types.is_floating, types.is_boolean)
    bad = [field.name for field in data.schema if not any(test(field.type) for test in numeric)]
    _reject_columns(bad, label)
    return _stacked([column.to_numpy(zero_copy_only=False) for column in data.columns], label)


def _stacked(columns: list[npt.NDArray[Any]], label: str) -> npt.NDArray[Any]:
    if not columns:
        raise InputError(f"{label} is empty: it has no columns.")
    return np.column_stack([c.astype(np.float64) if c.dtype == object else c for c in columns])


def _reject_columns(bad: list[str], label: str) -> None:
    if bad:
        shown = ", ".join(repr(name) for name in bad[:5]) + (", …" if len(bad) > 5 else "")
        raise InputTypeError(
            f"{label} has {counted(len(bad), 'column')} without numbers: {shown}. "
            "Drop or encode first."
        )


def _from_torch(data: Any, label: str) -> npt.NDArray[Any]:
    import torch

    if not isinstance(data, torch.Tensor) or data.is_meta:
        raise InputTypeError(
            f"{label} must be a tensor with values, not torch's {type(data).__name__}. "
            f"{TORCH_REMEDY}"
        )
    if data.is_nested:
        raise InputTypeError(
            f"{label} must be one table, not a nested tensor. Pass one of values.unbind(), or all "
            "of them as datasets: ua.compare(list(values.unbind()))."
        )
    tensor = data.detach().cpu()
    if getattr(tensor, "is_quantized", False):  # deprecated in torch
        tensor = tensor.dequantize()
    if tensor.is_sparse or tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize < 4:
        tensor = tensor.float()  # NumPy has no bfloat16
    return np.asarray(tensor.resolve_conj().resolve_neg().numpy())


def _from_stored(data: Any, label: str) -> Any:
    """Return the rows of an HDF5, Zarr or Dask array, unread if it is 2-D."""
    if hasattr(data, "dtype") and len(data.shape) == 2:
        require_numeric(np.dtype(data.dtype), label)
        return as_source(data)
    if hasattr(data, "compute"):
        return np.asarray(data.compute())
    return _from_sequence(data[()] if hasattr(data, "dtype") else data, label)


def _from_anndata(data: Any, label: str) -> Any:
    reject_anndata(data, label)
    return ArrayRows(data)  # a sparse matrix of a backed h5ad


def _from_networkx(data: Any, label: str) -> Values:
    """Return the adjacency matrix, nodes in the order of the graph, edges by their `weight`."""
    import networkx

    if len(data) == 0:
        raise InputError(f"{label} is empty: the graph has no nodes.")
    return _canonical_csr(networkx.to_scipy_sparse_array(data, dtype=np.float64))


_BY_MODULE = {
    "pandas": _from_pandas,
    "polars": _from_polars,
    "pyarrow": _from_arrow,
    "torch": _from_torch,
    "anndata": _from_anndata,
    "mudata": _from_anndata,
    "networkx": _from_networkx,
    "h5py": _from_stored,
    "zarr": _from_stored,
    "dask": _from_stored,
}


def drop_missing(values: Values, kind: str, label: str, nan_policy: str) -> tuple[Values, int]:
    """Return values without rows that contain NaN or infinity, and the number dropped.

    Raises unless these are points and the policy is `omit`.
    """
    bad = values.summary.bad if isinstance(values, RowSource) else rows_not_finite(values)
    n_rows = values.shape[0]
    if not bad.size:
        return values, 0
    if nan_policy == "raise" or kind != "points":
        remedy = "Fill them, or remove those rows and columns."
        if kind == "points":
            remedy = "Fill them, or drop those rows with nan_policy='omit'."
        raise InputError(
            f"{label} has NaN or infinite values in {bad.size} of {n_rows} rows "
            f"(first in row {bad[0]}). {remedy}"
        )
    if bad.size == n_rows:
        raise InputError(
            f"{label} has NaN or infinite values in every row. Drop the columns that have no "
            "values, or fill them."
        )
    message = f"dropped {bad.size} of {n_rows} rows with NaN or infinity."
    warn(message, MissingDataWarning, label=label, severity=bad.size / n_rows)
    mask = np.ones(n_rows, dtype=bool)
    mask[bad] = False
    return choose_rows(values, mask), bad.size


def rows_not_finite(values: Values) -> IndexArray:
    """Return the positions of rows with NaN or infinity."""
    bad = [np.empty(0, dtype=np.int64)]
    if values.dtype.kind != "f":
        return bad[0]
    if sparse.issparse(values):
        row_of = np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))
        return np.unique(row_of[~np.isfinite(values.data)])
    # Not by a sum of squares: spinning BLAS threads would slow what follows.
    if values.nbytes <= 1 << 23 and np.isfinite(values).all():
        return bad[0]  # the usual case; blocks take longer than some distances
    start = 0
    for block in ArrayRows(values).blocks():
        finite = np.isfinite(block)
        if not finite.all():
            bad.append(start + np.flatnonzero(~finite.all(axis=1)))
        start += block.shape[0]
    return np.concatenate(bad)


def require_symmetric(values: Values, kind: str, label: str) -> Values:
    """Return a symmetric matrix, (A + Aᵀ)/2 if A is symmetric up to rounding only.

    Raises unless it is square, symmetric, and of the sign of its kind.
    """
    if kind == "distances" and sparse.issparse(values):
        raise InputTypeError(
            f"{label} of kind 'distances' is a {shape_of(values)}; an entry that is not stored "
            "would be a distance of 0. Pass a dense matrix, or kind='affinity' or 'graph' for "
            "sparse weights."
        )
    if values.shape[0] != values.shape[1]:
        raise InputError(
            f"{label} of kind {kind!r} must be square; its shape is {tuple(values.shape)}. "
            "For rows of features use kind='points'."
        )
    precision = np.finfo(values.dtype).eps if values.dtype.kind == "f" else 0.0
    tolerance = max(1e-8, 16.0 * float(precision))  # single precision is not symmetric to 1e-8
    given, values = values, values.astype(np.float64, copy=False)
    largest = float(abs(values).max())
    asymmetry = float(abs(values - values.T).max())
    if asymmetry > tolerance * largest:
        raise InputError(
            f"{label} of kind {kind!r} must be symmetric; entries differ from their mirror by up "
            f"to {asymmetry:g}. Symmetrise it, e.g. (A + A.T) / 2."
        )
    if kind != "spd" and values.min() < 0:
        raise InputError(
            f"{label} of kind {kind!r} must not be negative; the smallest entry is "
            f"{float(values.min()):g}."
        )
    diagonal: FloatArray = np.abs(np.asarray(values.diagonal(), dtype=np.float64))
    if kind == "distances" and diagonal.max() > tolerance * largest:
        raise InputError(
            f"{label} of kind 'distances' must have a zero diagonal; the largest entry there is "
            f"{diagonal.max():g}. For similarities use kind='affinity'."
        )
    if asymmetry == 0.0:
        return given
    # Else what reads one triangle (LAPACK) or both depends on the order of rows.
    values = 0.5 * values + 0.5 * values.T
    return to_values(values, label)


def centre_of(rows: FloatArray, peak: FloatArray | float) -> FloatArray:
    """Return the median of rows, (d,), on the grid of values as large as `peak`.

    Unlike the mean, the median lies among the rows when some are far away. On that grid,
    subtracting it from those far away does not round their differences either.
    """
    grid = np.spacing(peak)
    return np.asarray(np.round(np.median(rows, axis=0) / grid) * grid)


def matrix_kind(dataset: Any) -> str | None:
    """Return the kind that the points of a Dataset seem to be, `graph` or `distances`, or None.

    Both are square, symmetric and non-negative with a zero diagonal. Other entries of 0 are
    missing edges; without any it is a distance matrix. Preprocessed and lazy points are not
    examined. O(N²) time for such a matrix, O(N) for nearly all others.
    """
    values, n = dataset.values, dataset.n_samples
    if dataset.kind != "points" or dataset.preprocess or dataset.is_lazy:
        return None
    if n < 3 or n != dataset.n_features or values.diagonal().any():
        return None
    first = abs(values[[0]] - values[:, [0]].T.astype(np.float64))
    if first.max() > 1e-8 * values[[0]].max() or values.min() < 0:
        return None
    values = values.astype(np.float64, copy=False)  # differences of unsigned integers wrap
    largest = float(values.max())
    if largest == 0 or float(abs(values - values.T).max()) > 1e-8 * largest:
        return None
    n_edges = values.nnz if sparse.issparse(values) else int(np.count_nonzero(values))
    return "distances" if n_edges == n * (n - 1) else "graph"
