"""Anything array-like to a 2-D numeric ndarray, memmap or CSR array."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._check import shape_of
from ..errors import InputError, InputTypeError, counted
from ..rows.dask import DaskRows
from ..rows.files import as_source, refuse_anndata
from ..rows.source import ArrayRows, RowSource, require_numeric
from .facts import Names, column_names, row_names
from .preprocess import Values


def to_values(data: Any, label: str) -> Values:
    """Return `data` as a 2-D numeric ndarray, memmap or CSR array without a needless copy.

    What lives elsewhere (an HDF5 or Zarr dataset, a Dask array) becomes a `RowSource`.

    Examples
    --------
    >>> to_values([[1, 2], [3, 4]], "the dataset").dtype.kind
    'i'
    """
    values = _to_array(data, label)
    if isinstance(values, RowSource):
        return values
    require_numeric(values.dtype, label)
    if values.ndim != 2:
        remedy = (
            "Use values.reshape(-1, 1) for one feature, or values.reshape(1, -1) for one row."
            if values.ndim == 1
            else "Flatten each sample to one row: values.reshape(len(values), -1)."
            if values.ndim > 2
            else "Pass rows of features."
        )
        raise InputError(
            f"{label} must be two-dimensional, rows × features; shape {values.shape} arrived. "
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
    # The bases too: a subclass (a GeoDataFrame, somebody's tensor) is read as what it is.
    for base in type(data).__mro__:
        module = base.__module__.partition(".")[0]
        if module in _BY_MODULE:
            return _BY_MODULE[module](data, label)
    if isinstance(data, (str, bytes)) or data is None:
        raise InputTypeError(
            f"{label} must be array-like (rows × features); {data!r} arrived. "
            "Files are read with unaligned.load(path)."
        )
    return _from_sequence(data, label)


def feature_names_of(data: Any) -> Names:
    """Return the names of a table's columns where all are text, as scikit-learn takes them.

    Examples
    --------
    >>> import pandas as pd
    >>> feature_names_of(pd.DataFrame({"x": [1.0], "y": [2.0]}))
    ('x', 'y')
    """
    if isinstance(data, RowSource):
        return data.feature_names
    if not _is_of(data, "pandas", "polars", "pyarrow", "dask"):
        return None
    if hasattr(data, "collect_schema"):
        names = data.collect_schema().names()  # a polars LazyFrame warns about .columns
    else:
        names = getattr(data, "column_names", getattr(data, "columns", ()))
    return column_names(names)


def sample_names_of(data: Any) -> Names:
    """Return the names of a pandas table's rows where they are text; numbers only count rows.

    Examples
    --------
    >>> import pandas as pd
    >>> sample_names_of(pd.DataFrame({"x": [1.0, 2.0]}, index=["ann", "bob"]))
    ('ann', 'bob')
    """
    return row_names(getattr(data, "index", ())) if _is_of(data, "pandas") else None


def _is_of(data: Any, *packages: str) -> bool:
    """Return whether this is of one of these packages, or made of it, without importing them."""
    if type(data) is np.ndarray:  # most are, and small distances wait for this
        return False
    return any(base.__module__.partition(".")[0] in packages for base in type(data).__mro__)


def _canonical_csr(data: Any) -> Values:
    """Return CSR with sorted indices, no duplicates and no stored zeros, without a needless copy.

    Preprocessing works on the stored entries, so each must be the whole value at its place.
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
    if array.dtype == object and array.ndim == 0:
        raise InputTypeError(
            f"{label} must be array-like (rows × features), not {shape_of(data)}."
        )
    return array


def _from_pandas(data: Any, label: str) -> npt.NDArray[Any]:
    if data.ndim == 1:
        return np.asarray(data.to_numpy())
    bad = [
        str(name)
        for name, dtype in data.dtypes.items()
        if getattr(dtype, "kind", "O") not in "biuf"
    ]
    _refuse_columns(bad, label)
    # Nullable and mixed columns (bool beside float) would come out as Python objects.
    plain = len(set(data.dtypes)) == 1 and isinstance(data.dtypes.iloc[0], np.dtype)
    return np.asarray(
        data.to_numpy() if plain else data.to_numpy(dtype=np.float64, na_value=np.nan)
    )


def _from_polars(data: Any, label: str) -> npt.NDArray[Any]:
    if hasattr(data, "collect"):
        data = data.collect()
    if not hasattr(data, "columns"):
        return np.asarray(data.to_numpy())
    numeric_or_bool = [dtype.is_numeric() or str(dtype) == "Boolean" for dtype in data.dtypes]
    bad = [c for c, good in zip(data.columns, numeric_or_bool, strict=True) if not good]
    _refuse_columns(bad, label)
    return _columns([data[name].to_numpy() for name in data.columns], label)


def _from_arrow(data: Any, label: str) -> npt.NDArray[Any]:
    import pyarrow.types as types

    def numeric(kind: Any) -> bool:
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    if not hasattr(data, "column_names"):
        return np.asarray(data.to_numpy(zero_copy_only=False))
    _refuse_columns([f.name for f in data.schema if not numeric(f.type)], label)
    columns = [
        np.asarray(column.to_numpy(zero_copy_only=False) if hasattr(column, "type") else column)
        for column in data.columns
    ]
    return _columns(columns, label)


def _from_torch(data: Any, label: str) -> npt.NDArray[Any]:
    import torch

    if not isinstance(data, torch.Tensor) or data.is_meta:
        raise InputTypeError(
            f"{label} must be a tensor with values, not torch's {type(data).__name__}. Give the "
            "activations of a network, rows being samples; for a DataLoader, "
            "Dataset.from_source(lambda: (batch.numpy() for batch in loader))."
        )
    tensor = data.detach().cpu()
    if tensor.is_sparse or tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize < 4:
        tensor = tensor.float()  # NumPy has no bfloat16
    return np.asarray(tensor.resolve_conj().numpy())


def _from_stored(data: Any, label: str) -> Any:
    """Return rows of an HDF5 or Zarr array, unread; one that is not 2-D is read for its error."""
    if not hasattr(data, "dtype") or len(getattr(data, "shape", ())) != 2:
        return _from_sequence(data[()] if hasattr(data, "dtype") else data, label)
    require_numeric(np.dtype(data.dtype), label)
    return as_source(data)


def _from_dask(data: Any, label: str) -> Any:
    if getattr(data, "ndim", 0) != 2 or not hasattr(data, "rechunk"):
        return np.asarray(data.compute() if hasattr(data, "compute") else data)
    require_numeric(np.dtype(data.dtype), label)
    return DaskRows(data)


def _from_anndata(data: Any, label: str) -> Any:
    refuse_anndata(data, label)
    return ArrayRows(data)  # a sparse matrix of a backed h5ad


def _from_networkx(data: Any, label: str) -> Values:
    """Return the adjacency matrix, nodes in the graph's own order, edges by their `weight`."""
    import networkx

    if len(data) == 0:
        raise InputError(f"{label} is empty: the graph has no nodes.")
    return _canonical_csr(networkx.to_scipy_sparse_array(data, dtype=np.float64))


def is_network(data: Any) -> bool:
    """Return whether this is a networkx graph, without importing networkx."""
    return _is_of(data, "networkx")


def _columns(columns: list[npt.NDArray[Any]], label: str) -> npt.NDArray[Any]:
    if not columns:
        raise InputError(f"{label} is empty: it has no columns.")
    return np.column_stack([c.astype(np.float64) if c.dtype == object else c for c in columns])


def _refuse_columns(bad: list[str], label: str) -> None:
    if bad:
        shown = ", ".join(repr(name) for name in bad[:5]) + (", …" if len(bad) > 5 else "")
        raise InputTypeError(
            f"{label} has {counted(len(bad), 'column')} without numbers: {shown}. "
            "Drop or encode first."
        )


_BY_MODULE = {
    "pandas": _from_pandas,
    "polars": _from_polars,
    "pyarrow": _from_arrow,
    "torch": _from_torch,
    "anndata": _from_anndata,
    "networkx": _from_networkx,
    "h5py": _from_stored,
    "zarr": _from_stored,
    "dask": _from_dask,
}
