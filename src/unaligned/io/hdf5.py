"""HDF5: `.h5`, `.hdf5`, and AnnData's `.h5ad`.

A file can refer to others: external links, raw external storage, virtual datasets. Only arrays
stored in the file itself are opened.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import FileError, required
from . import anndata
from .base import Contents, Node, Request, Tree, array_bytes, type_name


def read_hdf5(request: Request) -> Contents:
    """Return the arrays of an HDF5 file; labels are its one-dimensional arrays."""
    return _tree(request).contents()


def read_h5ad(request: Request) -> Contents:
    """Return X, layers, obsm, obsp and raw of an AnnData file; labels are columns of obs."""
    return anndata.contents(_tree(request))


@contextmanager
def _file(path: Path) -> Iterator[tuple[Any, Any]]:
    h5py = required("h5py", "formats", "Reading HDF5")
    with h5py.File(path, "r") as file:
        yield file, h5py


def _tree(request: Request) -> Tree:
    nodes: dict[str, Node] = {}
    with _file(request.path) as (file, h5py):

        def visit(name: str, found: Any) -> None:
            if isinstance(found, h5py.Dataset):
                nodes[name] = _node(request.path, name, found)

        file.visititems(visit)  # follows hard links only, which stay in this file
        if not nodes:
            links = {name: type(file.get(name, getlink=True)) for name in file}
            foreign = (h5py.ExternalLink, h5py.SoftLink)
            shown = [repr(name) for name, kind in links.items() if kind in foreign]
            where = f", only links ({', '.join(shown[:3])})" if shown else ""
            raise FileError(f"The file contains no array{where}.")
    return Tree(request, nodes, partial(_attribute, request.path))


def _node(path: Path, name: str, found: Any) -> Node:
    shape, dtype = tuple(int(side) for side in found.shape or ()), found.dtype
    elsewhere = bool(found.external) or bool(found.is_virtual)
    described = type_name(dtype) + (" in another file" if elsewhere else "")
    if found.shape is None:
        described = "nothing"
    numeric = dtype.kind in "biuf" and not elsewhere and found.shape is not None
    chunk_bytes = array_bytes(tuple(found.chunks or ()), dtype.itemsize)
    n_bytes = array_bytes(shape, dtype.itemsize)
    return Node(shape, described, numeric, n_bytes, chunk_bytes, partial(_open, path, name))


@contextmanager
def _open(path: Path, name: str) -> Iterator[Any]:
    with _file(path) as (file, h5py):
        array = file[name]
        if array.external or array.is_virtual or array.shape is None:
            raise FileError(
                f"The array {name!r} has no values, or stores them in another file, which is not "
                "opened. Copy the values into one file."
            )
        is_text = h5py.check_string_dtype(array.dtype) is not None
        if array.dtype.hasobject and not is_text:
            raise FileError(f"The array {name!r} contains {array.dtype}, not numbers or text.")
        yield array.asstr("utf-8", "replace") if is_text else array


def _attribute(path: Path, key: str, name: str) -> Any:
    with _file(path) as (file, _):
        return file[key or "/"].attrs.get(name)
