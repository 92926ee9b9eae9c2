"""Zarr: a folder of chunks, version 2 or 3.

The metadata of an array can name a codec that runs code (pickle). Each array is opened by itself
once its codecs are known to be safe; consolidated metadata is not used.
"""

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
from . import anndata
from .base import Contents, Node, Request, Tree, array_bytes, type_name

_SAFE_CODECS = {
    *("blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma", "delta", "shuffle", "bitround"),
    *("fixedscaleoffset", "quantize", "packbits", "astype", "crc32", "crc32c", "adler32"),
    *("fletcher32", "vlen-utf8", "vlen-bytes", "bytes", "transpose", "sharding_indexed"),
}


def read_zarr(request: Request) -> Contents:
    """Return the arrays of a Zarr folder; one in AnnData's layout is read as such."""
    required("zarr", "formats", "Reading Zarr")
    nodes = {}
    for folder, inner, files in os.walk(request.path):
        inner.sort()
        name = Path(folder).relative_to(request.path).as_posix()
        key = "" if name == "." else name
        for file in {".zarray", "zarr.json"} & set(files):
            node = _node(request, key, Path(folder, file))
            if node is not None:
                nodes[key] = node
                inner.clear()  # its chunks
    if not nodes:
        raise FileError("The folder contains no Zarr array (no .zarray and no zarr.json of one).")
    tree = Tree(request, nodes, partial(_attribute, request.path))
    is_anndata = tree.attribute("", "encoding-type") == "anndata"
    return anndata.contents(tree) if is_anndata else tree.contents()


def _node(request: Request, key: str, description: Path) -> Node | None:
    metadata = _json(description)
    version = 2 if description.name == ".zarray" else 3
    if version == 3 and metadata.get("node_type") != "array":
        return None
    for codec in _codec_names(metadata):
        if codec.removeprefix("numcodecs.") not in _SAFE_CODECS:
            raise FileError(
                f"The array {key!r} uses the codec {codec!r}, which is not known to be safe. "
                "Write it again with a plain compressor, such as zstd."
            )
    try:
        with _open(description.parent, version) as array:
            shape, dtype = tuple(map(int, array.shape)), np.dtype(array.dtype)
            chunks = tuple(map(int, getattr(array, "shards", None) or array.chunks))
    except Exception as error:
        raise FileError(f"The array {key!r} has wrong metadata: {first_line(error)}.") from error
    # Looking for very many chunks that do not exist would not end.
    wanted = math.prod(-(-side // max(1, part)) for side, part in zip(shape, chunks, strict=True))
    if wanted > 100_000 and request.options.max_bytes is None:
        existing = sum(len(files) for _, _, files in os.walk(description.parent))
        if wanted > 10 * existing:
            raise FileError(
                f"The array claims to have {wanted} chunks, and {existing} files exist. If you "
                "trust it, set max_bytes to the memory it may use."
            )
    n_bytes, chunk_bytes = (array_bytes(sides, dtype.itemsize) for sides in (shape, chunks))
    read = partial(_open, description.parent, version)
    return Node(shape, type_name(dtype), dtype.kind in "biuf", n_bytes, chunk_bytes, read)


@contextmanager
def _open(folder: Path, version: int) -> Iterator[Any]:
    zarr = required("zarr", "formats", "Reading Zarr")
    yield zarr.open_array(store=folder, mode="r", zarr_format=version)


def _codec_names(metadata: Any) -> Iterator[str]:
    if not isinstance(metadata, dict):
        raise FileError("The metadata are not what Zarr writes.")
    lists = ("filters", "codecs", "index_codecs", "storage_transformers")
    found = [metadata.get("compressor")] + [c for k in lists for c in metadata.get(k) or []]
    for codec in found:
        if codec is None:
            continue
        name = codec if isinstance(codec, str) else str(codec.get("id") or codec.get("name"))
        yield name
        if name == "sharding_indexed" and not isinstance(codec, str):
            yield from _codec_names(codec.get("configuration") or {})


def _attribute(root: Path, key: str, name: str) -> Any:
    version2, version3 = root / key / ".zattrs", root / key / "zarr.json"
    if version2.is_file():
        return _json(version2).get(name)
    found = _json(version3).get("attributes") if version3.is_file() else None
    return dict(found or {}).get(name)


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file() or path.stat().st_size > 1 << 26:  # 64 MiB
        raise FileError(f"{path.name!r} is not a plain file, or larger than metadata can be.")
    metadata = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(metadata, dict):
        raise FileError(f"{path.name!r} is not what Zarr writes.")
    return metadata
