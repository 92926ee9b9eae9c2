"""HDF5: `.h5`, `.hdf5`, and AnnData's `.h5ad`.

A file can point at others: external links, raw external storage, virtual datasets. Only arrays
that live in the file itself are opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import FileError, required
from . import anndata as singlecell
from .base import Contents, Node, Request, Tree, array_bytes, plain_contents, type_name


def read_hdf5(request: Request) -> Contents:
    """Return the arrays of an HDF5 file; labels are its 1-D arrays."""
    return plain_contents(_hdf5_tree(request))


def read_h5ad(request: Request) -> Contents:
    """Return X, layers, obsm and obsp of an AnnData file; labels are columns of obs."""
    return singlecell.contents(_hdf5_tree(request))


def _hdf5_tree(request: Request) -> Tree:
    h5py = required("h5py", "formats", "Reading HDF5")
    nodes: dict[str, Node] = {}

    def visit(name: str, found: Any) -> None:
        if isinstance(found, h5py.Dataset):
            nodes[name] = _hdf5_node(request.path, name, found)

    with h5py.File(request.path, "r") as file:
        file.visititems(visit)  # hard links only: no way out of this file
        foreign = [name for name in _foreign_links(file, h5py) if name not in nodes]
    if not nodes:
        where = f" but links elsewhere ({', '.join(foreign[:3])})" if foreign else ""
        raise FileError(f"There is no array in it{where}.")
    return Tree(request, nodes, partial(_hdf5_attribute, request.path))


def _foreign_links(file: Any, h5py: Any) -> list[str]:
    return [
        repr(name)
        for name in file
        if isinstance(file.get(name, getlink=True), (h5py.ExternalLink, h5py.SoftLink))
    ]


def _hdf5_node(path: Path, name: str, found: Any) -> Node:
    shape = tuple(int(side) for side in found.shape or ())
    dtype = found.dtype
    elsewhere = bool(found.external) or bool(found.is_virtual)
    called = type_name(dtype) + (" in another file" if elsewhere else "")
    return Node(
        shape,
        "nothing" if found.shape is None else called,
        dtype.kind in "biuf" and not elsewhere and found.shape is not None,
        array_bytes(shape, dtype.itemsize),
        array_bytes(tuple(found.chunks or ()), dtype.itemsize),
        partial(_open_hdf5, path, name),
    )


@contextmanager
def _open_hdf5(path: Path, name: str) -> Iterator[Any]:
    h5py = required("h5py", "formats", "Reading HDF5")
    with h5py.File(path, "r") as file:
        array = file[name]
        if array.external or array.is_virtual or array.shape is None:
            raise FileError(
                f"The array {name!r} keeps its values in another file, or has none; it is not "
                "opened. Copy the values into one file."
            )
        is_text = h5py.check_string_dtype(array.dtype) is not None
        if array.dtype.hasobject and not is_text:
            raise FileError(f"The array {name!r} holds {array.dtype}, not numbers or text.")
        yield array.asstr("utf-8", "replace") if is_text else array


def _hdf5_attribute(path: Path, key: str, name: str) -> Any:
    h5py = required("h5py", "formats", "Reading HDF5")
    with h5py.File(path, "r") as file:
        return file[key or "/"].attrs.get(name)
