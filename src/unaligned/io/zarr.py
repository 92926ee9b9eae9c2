"""Zarr: a folder of chunks, version 2 or 3.

A description can name a codec that runs code (pickle). Each array is opened by itself, after its
codecs were found to be harmless; what a store says about its arrays elsewhere is not asked.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FileError, required
from ..rows.files import first_line
from . import anndata as singlecell
from .base import Contents, Node, Request, Tree, array_bytes, plain_contents, type_name

_MANY_CHUNKS = 100_000
_CODECS = {
    *("blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma", "delta", "shuffle", "bitround"),
    *("fixedscaleoffset", "quantize", "packbits", "astype", "crc32", "crc32c", "adler32"),
    *("fletcher32", "vlen-utf8", "vlen-bytes", "bytes", "transpose", "sharding_indexed"),
}


def read_zarr(request: Request) -> Contents:
    """Return the arrays of a Zarr folder, version 2 or 3; one that is AnnData is read as that."""
    tree = _zarr_tree(request)
    if tree.attribute("", "encoding-type") == "anndata":
        return singlecell.contents(tree)
    return plain_contents(tree)


def _zarr_tree(request: Request) -> Tree:
    required("zarr", "formats", "Reading Zarr")
    nodes = {}
    for folder, inner, files in os.walk(request.path):
        inner.sort()
        name = Path(folder).relative_to(request.path).as_posix()
        key = "" if name == "." else name
        for file in {".zarray", "zarr.json"} & set(files):
            node = _zarr_node(request, key, Path(folder, file))
            if node is not None:
                nodes[key] = node
                inner.clear()  # chunks
    if not nodes:
        raise FileError("There is no Zarr array in it (no .zarray and no zarr.json of one).")
    return Tree(request, nodes, partial(_zarr_attribute, request.path))


def _zarr_node(request: Request, key: str, description: Path) -> Node | None:
    zarr = required("zarr", "formats", "Reading Zarr")
    told = _json(description)
    version = 2 if description.name == ".zarray" else 3
    if version == 3 and told.get("node_type") != "array":
        return None
    _require_harmless(told, key)
    opened = partial(_open_zarr, description.parent, version)
    try:
        array = zarr.open_array(store=description.parent, mode="r", zarr_format=version)
        shape, dtype = tuple(map(int, array.shape)), np.dtype(array.dtype)
        chunks = tuple(map(int, getattr(array, "shards", None) or array.chunks))
    except Exception as error:
        raise FileError(f"The array {key!r} is described wrongly: {first_line(error)}.") from error
    _require_chunks(request, description.parent, shape, chunks)
    return Node(
        shape,
        type_name(dtype),
        dtype.kind in "biuf",
        array_bytes(shape, dtype.itemsize),
        array_bytes(chunks, dtype.itemsize),
        opened,
    )


def _require_chunks(
    request: Request, folder: Path, shape: tuple[int, ...], chunks: tuple[int, ...]
) -> None:
    """Refuse an array of very many chunks that are not there: asking for each takes for ever."""
    wanted = math.prod(-(-side // max(1, part)) for side, part in zip(shape, chunks, strict=True))
    if wanted > _MANY_CHUNKS and request.options.max_bytes is None:
        there = sum(len(files) for _, _, files in os.walk(folder))
        if wanted > 10 * there:
            raise FileError(
                f"It says it has {wanted} chunks, and {there} files are there. If you trust it, "
                "set max_bytes to what it may take."
            )


@contextmanager
def _open_zarr(folder: Path, version: int) -> Iterator[Any]:
    zarr = required("zarr", "formats", "Reading Zarr")
    yield zarr.open_array(store=folder, mode="r", zarr_format=version)


def _require_harmless(told: dict[str, Any], key: str) -> None:
    """Refuse codecs that are not known: `pickle` runs whatever code the chunks hold."""
    found = list(_codec_names(told))
    for name in found:
        if name.removeprefix("numcodecs.") not in _CODECS:
            raise FileError(
                f"The array {key!r} uses the codec {name!r}, which is not among those known to "
                "be harmless. Write it again with a plain compressor, such as zstd."
            )


def _codec_names(told: Any) -> Iterator[str]:
    if not isinstance(told, dict):
        raise FileError("Its description is not what Zarr writes.")
    found = [told.get("compressor"), *(told.get("filters") or []), *(told.get("codecs") or [])]
    found += told.get("index_codecs") or []
    found += told.get("storage_transformers") or []
    for codec in found:
        if codec is None:
            continue
        name = codec if isinstance(codec, str) else str(codec.get("id") or codec.get("name"))
        yield name
        inner = {} if isinstance(codec, str) else codec.get("configuration") or {}
        if name == "sharding_indexed":
            yield from _codec_names(inner)


def _zarr_attribute(root: Path, key: str, name: str) -> Any:
    folder = root / key
    if (folder / ".zattrs").is_file():
        return _json(folder / ".zattrs").get(name)
    if (folder / "zarr.json").is_file():
        return dict(_json(folder / "zarr.json").get("attributes") or {}).get(name)
    return None


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file() or path.stat().st_size > 1 << 26:
        raise FileError(f"{path.name!r} of it is no plain file of a sensible size.")
    told = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(told, dict):
        raise FileError(f"{path.name!r} of it is not what Zarr writes.")
    return told
