"""AnnData objects, and their layout in HDF5 or Zarr: matrices and the columns of `obs`."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _check
from ..data.values import to_values
from ..errors import DataWarning, FileError, InputError, warn
from ..rows.files import StoredRows, StoredSparse
from ..rows.source import RowSource
from .base import Contents, Item, Tree, text_of

_SPARSE = ("data", "indices", "indptr")


def object_contents(adata: Any) -> Contents:
    """Return the matrices of an AnnData object, which stay unread where it is backed."""
    matrices = {"X": adata.X, "raw/X": None if adata.raw is None else adata.raw.X}
    for group in ("layers", "obsm", "obsp"):
        matrices |= {f"{group}/{key}": value for key, value in getattr(adata, group).items()}
    items = {
        key: _object_item(adata, key, matrix)
        for key, matrix in matrices.items()
        if matrix is not None
    }
    tables = {"obs": adata.obs, "var": adata.var}
    labels, features = (partial(_object_column, table, tables[table]) for table in tables)
    return Contents(items, labels, "X" if "X" in items else None, features)


def _object_item(adata: Any, key: str, matrix: Any) -> Item:
    group = key.partition("/")[0]
    names = {"X": adata.var_names, "layers": adata.var_names}.get(group)
    if group == "raw":
        names = adata.raw.var_names
    elif group == "obsm":
        names = getattr(matrix, "columns", None)  # of a table
    dtype = getattr(matrix, "dtype", np.dtype(np.float64))
    return Item(
        tuple(map(int, matrix.shape)),
        str(dtype),
        lambda: to_values(matrix, key),
        columns=None if names is None else lambda: list(names),
        rows=lambda: list(adata.obs_names),
    )


def _object_column(table: str, frame: Any, name: str) -> npt.NDArray[Any]:
    require_column(table, name, list(map(str, frame.columns)))
    column = frame[name]
    return np.asarray(column.to_numpy(dtype=object) if hasattr(column, "array") else column)


def warn_of_counts(values: Any, key: str) -> None:
    """Warn if a matrix of cells looks like raw counts."""
    if (key == "X" or key.startswith("layers/")) and looks_like_counts(values):
        steps = ["normalize_total", "log1p", *["pca:50"] * (min(values.shape) > 100)]
        warn(
            f"{key} looks like raw counts (whole numbers, large sums of cells): a few large "
            f"cells dominate distances. Pass preprocess={steps}, "
            "or use_rep='X_pca' for an embedding.",
            DataWarning,
        )


def looks_like_counts(values: Any) -> bool:
    """Return whether the first 200 rows are whole numbers with large and unequal sums."""
    n_rows = min(200, values.shape[0])
    if isinstance(values, RowSource):
        some = values.take(np.arange(n_rows))
    else:
        some = values[:n_rows]
        some = some.toarray() if sparse.issparse(some) else np.asarray(some)
    if some.dtype.kind == "f" and not np.array_equal(some, np.floor(some)):
        return False
    sizes = some.sum(axis=1, dtype=np.float64)
    # Sums above 100 are library sizes; those of cell counts or scores are mostly smaller.
    return bool(some.min() >= 0 and np.median(sizes) > 100 and np.ptp(sizes) > 0)


def rows_kept(
    contents: Contents, item: Item, given: str | tuple[bool, ...] | None
) -> npt.NDArray[np.bool_] | None:
    """Return the rows that `mask_obs` keeps; None for all."""
    if given is None:
        return None
    found = contents.labels(given) if isinstance(given, str) else np.array(given)
    label = repr(given) if isinstance(given, str) else f"a list of {found.size}"
    if found.shape != item.shape[:1] or not all(
        isinstance(value, bool) for value in found.tolist()
    ):
        raise InputError(
            f"mask_obs={label} must be True or False for each of the {item.shape[0]} rows."
        )
    mask = found.astype(bool)
    if not mask.any():
        raise InputError(f"mask_obs={label} keeps no row.")
    return np.asarray(mask)


def columns_kept(
    contents: Contents, key: str, item: Item, wanted: str | tuple[str, ...]
) -> npt.NDArray[np.intp]:
    """Return the positions of the columns that `var_names` names."""
    if item.columns is None:
        raise InputError(f"var_names needs columns with names; those of {key} have none.")
    if isinstance(wanted, str):
        kept = contents.features(wanted)
        if kept.shape != item.shape[1:] or not all(isinstance(v, bool) for v in kept.tolist()):
            raise InputError(
                f"var_names={wanted!r} must be a column of var with True or False for each of the "
                f"{item.shape[1]} columns of {key}, or a list of names."
            )
        positions = np.flatnonzero(kept.astype(bool))
    else:
        names = item.columns()
        known = {text_of(name): i for i, name in enumerate([] if names is None else names)}
        missing = [name for name in wanted if name not in known]
        if missing:
            shown = ", ".join(map(repr, missing[:3])) + (", …" if len(missing) > 3 else "")
            near = _check.did_you_mean(missing[0], known)
            raise InputError(
                f"var_names: {len(missing)} of {len(wanted)} names are not columns of {key}: "
                f"{shown}.{near}"
            )
        positions = np.array([known[name] for name in wanted], dtype=np.intp)
    if not positions.size:
        raise InputError(f"var_names={wanted!r} keeps no column.")
    return positions


def contents(tree: Tree) -> Contents:
    """Return the matrices with one row per observation; X is the default."""
    items: dict[str, Item] = {}
    for key in tree.nodes:
        head, _, last = key.rpartition("/")
        if last in _SPARSE and _is_matrix(head):
            items[head] = items.get(head) or _sparse_item(tree, head)
        elif _is_matrix(key):
            items[key] = tree.item(key)
    if not items:
        raise FileError("The file has neither X nor layers or obsm; it is no AnnData file.")
    for key, item in items.items():
        # The axes of an embedding have no names.
        table = {"X": "var", "layers": "var", "raw": "raw/var"}.get(key.partition("/")[0])
        columns = item.columns if table is None else partial(_index, tree, table)
        items[key] = replace(item, columns=columns, rows=partial(_index, tree, "obs"))
    default = "X" if "X" in items else None
    return Contents(items, partial(_named, tree, "obs"), default, partial(_named, tree, "var"))


def _is_matrix(key: str) -> bool:
    parts = key.split("/")
    return key == "X" or (len(parts) == 2 and parts[0] in ("layers", "obsm", "obsp", "raw"))


def _index(tree: Tree, table: str) -> list[str] | None:
    """Return the names of the rows of `var` or `obs`, None where there are none."""
    columns = _columns(tree, table)
    name = "index" if table in tree.nodes else "_index"
    if columns and name not in columns:  # the attribute is read last, see `_is_csr`
        name = text_of(tree.attribute(table, "_index"))
    if name not in columns:
        return None
    return [text_of(label) for label in _column(tree, table, name).tolist()]


def _sparse_item(tree: Tree, key: str) -> Item:
    sides = tree.attribute(key, "shape")
    sides = tree.attribute(key, "h5sparse_shape") if sides is None else sides
    missing = [part for part in _SPARSE if f"{key}/{part}" not in tree.nodes]
    if sides is None or np.size(sides) != 2 or missing:
        raise FileError(
            f"The sparse matrix {key!r} is incomplete: it needs {', '.join(_SPARSE)} and a shape."
        )
    shape = (int(np.ravel(sides)[0]), int(np.ravel(sides)[1]))
    is_csr = _is_csr(tree, key, shape)
    n_bytes = sum(tree.nodes[f"{key}/{part}"].n_bytes for part in _SPARSE)
    data = tree.nodes[f"{key}/data"]
    lazy = is_csr and tree.request.is_lazy(shape, n_bytes)

    def read() -> Any:
        if not data.is_numeric:
            raise FileError(f"The matrix {key!r} contains {data.dtype}, not real numbers.")
        n_slices = shape[0 if is_csr else 1]
        _require_pointers(tree, key, shape, n_slices)
        opens = {part: tree.nodes[f"{key}/{part}"].open for part in _SPARSE}
        matrix = StoredSparse(key, shape, opens, is_csr)
        if lazy:
            return StoredRows(tree.request.path, partial(nullcontext, matrix), shape)
        tree.request.require_memory(2 * n_bytes, key)
        return matrix[0:n_slices].tocsr()

    return Item(shape, f"{data.dtype}, sparse", read, data.is_numeric, 0 if lazy else n_bytes)


def _is_csr(tree: Tree, key: str, shape: tuple[int, int]) -> bool:
    """Return whether a sparse matrix is CSR, which the number of pointers usually decides."""
    n_pointers = tree.nodes[f"{key}/indptr"].shape
    fits = [n_pointers == (side + 1,) for side in shape]
    if fits[0] != fits[1]:
        return fits[0]
    # Read only for a square matrix: libhdf5 loops forever over some damaged texts.
    named = tree.attribute(key, "encoding-type") or tree.attribute(key, "h5sparse_format") or ""
    kind = (named.decode() if isinstance(named, bytes) else str(named))[:3]
    if kind not in ("csr", "csc") or not fits[0]:
        raise FileError(
            f"The sparse matrix {key!r} is damaged: {n_pointers} pointers do not fit its shape "
            f"{shape}, or it is neither csr_matrix nor csc_matrix."
        )
    return kind == "csr"


def _require_pointers(tree: Tree, key: str, shape: tuple[int, int], n_slices: int) -> None:
    """Raise where the pointers of a sparse matrix do not fit its shape and its values."""
    pointers = tree.values(f"{key}/indptr")
    lengths = [tree.nodes[f"{key}/{part}"].shape for part in ("data", "indices")]
    fits = min(shape) >= 0 and pointers.shape == (n_slices + 1,) and pointers.dtype.kind in "iu"
    ascends = fits and pointers[0] == 0 and bool(np.all(pointers[1:] >= pointers[:-1]))
    if not ascends or not lengths[0] == lengths[1] == (int(pointers[-1]),):
        reason = f"data, indices and indptr do not fit its shape {shape}"
        raise FileError(f"The sparse matrix {key!r} is damaged: {reason}.")


def _named(tree: Tree, table: str, name: str) -> npt.NDArray[Any]:
    """Return a column of obs or var."""
    columns = [column for column in _columns(tree, table) if column != "_index"]
    require_column(table, name, columns)
    return _column(tree, table, name)


def require_column(table: str, name: str, columns: Sequence[str]) -> None:
    """Raise unless obs or var has this column."""
    if name not in columns:
        shown = ", ".join(map(repr, columns[:20])) + (", …" if len(columns) > 20 else "")
        raise FileError(
            f"{name!r} is not a column of {table}.{_check.did_you_mean(name, columns)} "
            f"Columns: {shown or 'none'}."
        )


def _column(tree: Tree, table: str, name: str) -> npt.NDArray[Any]:
    """Return a column as AnnData stores it: plain, categorical, nullable, or before 0.7."""
    key = f"{table}/{name}"
    if f"{key}/codes" in tree.nodes:
        return _decoded(tree.values(f"{key}/codes"), tree.values(f"{key}/categories"))
    if f"{key}/values" in tree.nodes:
        values = tree.values(f"{key}/values").astype(object)
        values[tree.values(f"{key}/mask").astype(bool)] = None
        return values
    if f"{table}/__categories/{name}" in tree.nodes:
        return _decoded(tree.values(key), tree.values(f"{table}/__categories/{name}"))
    if key in tree.nodes:
        return tree.values(key).ravel()
    return np.asarray(tree.values(table)[name])


def _columns(tree: Tree, table: str) -> list[str]:
    if table in tree.nodes:  # a table in one array, as AnnData wrote before 0.7
        with tree.nodes[table].open() as stored:
            return list(stored.dtype.names or ())
    inside = [key for key in tree.nodes if key.startswith(f"{table}/")]
    found = [key.removeprefix(f"{table}/").split("/")[0] for key in inside]
    return [name for name in dict.fromkeys(found) if name != "__categories"]


def _decoded(codes: npt.NDArray[Any], categories: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the category of each code; a negative code is a missing value."""
    if codes.dtype.kind not in "iu" or (codes.size and int(codes.max()) >= categories.size):
        raise FileError("The categories are damaged: a code has no category.")
    names = np.array([*categories.tolist(), None], dtype=object)
    return np.asarray(names[np.where(codes < 0, categories.size, codes).astype(np.int64)])
