"""AnnData's layout within HDF5 or Zarr: matrices (dense or sparse) and the columns of `obs`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _check
from ..errors import FileError
from ..rows.files import StoredRows, StoredSparse
from .base import Contents, Item, Tree
from .groups import text_of

_PARTS = ("layers", "obsm", "obsp", "raw")
_SPARSE = ("data", "indices", "indptr")


def contents(tree: Tree) -> Contents:
    """Return the matrices with one row per observation; X is meant where no part is named."""
    items: dict[str, Item] = {}
    for key in tree.nodes:
        head, _, last = key.rpartition("/")
        if last in _SPARSE and _is_matrix(head):
            items[head] = items.get(head) or _sparse_item(tree, head)
        elif _is_matrix(key):
            items[key] = tree.item(key)
    if not items:
        raise FileError(
            "There is neither X nor anything in layers or obsm; is it an AnnData file?"
        )
    named = {key: _named(tree, key, item) for key, item in items.items()}
    return Contents(named, partial(_labels, tree), "X" if "X" in items else None)


def _named(tree: Tree, key: str, item: Item) -> Item:
    """Return a matrix with the names of its columns; the axes of an embedding have none."""
    described_in = {"X": "var", "layers": "var", "raw": "raw/var"}
    table = described_in.get(key.partition("/")[0])
    columns = item.columns if table is None else partial(_index, tree, table)
    return replace(item, columns=columns, rows=partial(_index, tree, "obs"))


def _index(tree: Tree, table: str) -> list[str] | None:
    """Return the names that the rows of `var` or `obs` have, None where there are none."""
    columns = _columns(tree, table)
    name = "index" if table in tree.nodes else "_index"
    if columns and name not in columns:  # asked last, see `_compression`
        name = text_of(tree.attribute(table, "_index"))
    if name not in columns:
        return None
    return [text_of(label) for label in _column(tree, table, name).tolist()]


def _is_matrix(key: str) -> bool:
    parts = key.split("/")
    return key == "X" or (len(parts) == 2 and parts[0] in _PARTS)


def _sparse_item(tree: Tree, key: str) -> Item:
    sides = tree.attribute(key, "shape")
    sides = tree.attribute(key, "h5sparse_shape") if sides is None else sides
    missing = [part for part in _SPARSE if f"{key}/{part}" not in tree.nodes]
    if sides is None or np.size(sides) != 2 or missing:
        raise FileError(
            f"The sparse matrix {key!r} is not complete: it needs {', '.join(_SPARSE)} and a "
            "shape."
        )
    shape = (int(np.ravel(sides)[0]), int(np.ravel(sides)[1]))
    kind = _compression(tree, key, shape)
    matrix = StoredSparse(key, shape, partial(_open_part, tree, key), kind == "csr")
    n_bytes = sum(tree.nodes[f"{key}/{part}"].n_bytes for part in _SPARSE)
    dtype = tree.nodes[f"{key}/data"].dtype
    numeric = tree.nodes[f"{key}/data"].is_numeric

    def read() -> Any:
        if not numeric:
            raise FileError(f"The matrix {key!r} holds {dtype}; real numbers are needed.")
        n_slices = _require_consistent(tree, key, kind, shape)
        if kind == "csr" and 0 not in shape and tree.request.is_lazy(n_bytes):
            return StoredRows(tree.request.path, partial(nullcontext, matrix), shape)
        tree.request.afford(2 * n_bytes, key)
        return matrix[0:n_slices].tocsr()

    in_memory = 0 if kind == "csr" and tree.request.is_lazy(n_bytes) else n_bytes
    return Item(shape, f"{dtype}, sparse", read, numeric, in_memory)


def _compression(tree: Tree, key: str, shape: tuple[int, int]) -> str:
    """Return csr or csc, whichever the number of pointers fits.

    The file is asked only where both fit: libhdf5 loops for ever over some damaged texts.
    """
    n_pointers = tree.nodes[f"{key}/indptr"].shape
    fitting = [
        kind for kind, side in zip(("csr", "csc"), shape, strict=True) if n_pointers == (side + 1,)
    ]
    if len(fitting) == 1:
        return fitting[0]
    told = tree.attribute(key, "encoding-type") or tree.attribute(key, "h5sparse_format") or ""
    kind = (told.decode() if isinstance(told, bytes) else str(told))[:3]
    if kind not in ("csr", "csc") or not fitting:
        raise FileError(
            f"The sparse matrix {key!r} is damaged: {n_pointers} pointers do not fit its shape "
            f"{shape}, or it is neither csr_matrix nor csc_matrix."
        )
    return kind


def _require_consistent(tree: Tree, key: str, kind: str, shape: tuple[int, int]) -> int:
    """Return the number of rows (of CSC, columns); raise where the pointers lead astray."""
    pointers = tree.values(f"{key}/indptr")
    along = shape[0 if kind == "csr" else 1]
    lengths = [tree.nodes[f"{key}/{part}"].shape for part in ("data", "indices")]
    good = (
        min(shape) >= 0
        and pointers.shape == (along + 1,)
        and pointers.dtype.kind in "iu"
        and pointers[0] == 0
        and bool(np.all(pointers[1:] >= pointers[:-1]))
        and lengths[0] == lengths[1] == (int(pointers[-1]),)
    )
    if not good:
        raise FileError(
            f"The sparse matrix {key!r} is damaged: data, indices and indptr do not fit its "
            f"shape {shape}."
        )
    return along


def _open_part(tree: Tree, key: str, part: str) -> AbstractContextManager[Any]:
    return tree.nodes[f"{key}/{part}"].opened()


def _labels(tree: Tree, name: str) -> npt.NDArray[Any]:
    """Return a column of obs, refusing one that is not there."""
    columns = [column for column in _columns(tree, "obs") if column != "_index"]
    if name not in columns:
        raise FileError(
            f"group_by={name!r} is not a column of obs.{_check.did_you_mean(name, columns)} "
            f"Columns: {', '.join(map(repr, columns)) or 'none'}."
        )
    return _column(tree, "obs", name)


def _column(tree: Tree, table: str, name: str) -> npt.NDArray[Any]:
    """Return a column as AnnData stores it: plain, categorical, nullable, or old style."""
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
        with tree.nodes[table].opened() as stored:
            return list(stored.dtype.names or ())
    inside = f"{table}/"
    found = [
        key.removeprefix(inside).split("/")[0] for key in tree.nodes if key.startswith(inside)
    ]
    return [name for name in dict.fromkeys(found) if name != "__categories"]


def _decoded(codes: npt.NDArray[Any], categories: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the category of each code; a negative code is a missing value."""
    if codes.dtype.kind not in "iu" or (codes.size and int(codes.max()) >= categories.size):
        raise FileError("Its categories are damaged: a code has no category.")
    names = np.array([*categories.tolist(), None], dtype=object)
    return np.asarray(names[np.where(codes < 0, categories.size, codes).astype(np.int64)])
