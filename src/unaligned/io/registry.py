"""The registry of formats: which reader a path belongs to, and which options that reader has."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .. import _settings
from ..errors import FileError, InputError
from .arrays import read_npy, read_npz, read_safetensors, read_torch
from .base import Contents, ReadOptions, Request
from .columnar import read_feather, read_parquet
from .hdf5 import read_h5ad, read_hdf5
from .images import SUFFIXES as IMAGE_SUFFIXES
from .images import read_images
from .matrix_market import read_mtx
from .meshes import read_obj, read_off, read_ply, read_stl
from .tables import read_csv
from .zarr import read_zarr


@dataclass(frozen=True)
class Format:
    """One kind of file: how it is called, read, and which options it knows."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Request], Contents]
    options: tuple[str, ...] = ()
    is_folder: bool = False


_TABLE = ("columns", "drop_non_numeric")

FORMATS = (
    Format("NumPy .npy", (".npy",), read_npy, ("flatten", "lazy")),
    Format("NumPy .npz", (".npz",), read_npz, ("flatten",)),
    Format("CSV", (".csv", ".csv.gz"), read_csv, (*_TABLE, "header")),
    Format("TSV", (".tsv", ".tsv.gz"), read_csv, (*_TABLE, "header")),
    Format("Parquet", (".parquet", ".pq"), read_parquet, (*_TABLE, "lazy")),
    Format("Feather", (".feather", ".arrow"), read_feather, _TABLE),
    Format("AnnData .h5ad", (".h5ad",), read_h5ad, ("lazy",)),
    Format("HDF5", (".h5", ".hdf5"), read_hdf5, ("flatten", "lazy")),
    Format("Zarr", (".zarr",), read_zarr, ("flatten", "lazy"), is_folder=True),
    Format("Matrix Market", (".mtx", ".mtx.gz"), read_mtx),
    Format("PyTorch", (".pt", ".pth", ".th"), read_torch, ("flatten",)),
    Format("safetensors", (".safetensors",), read_safetensors, ("flatten", "lazy")),
    Format("PLY", (".ply",), read_ply),
    Format("OFF", (".off",), read_off),
    Format("OBJ", (".obj",), read_obj),
    Format("STL", (".stl",), read_stl),
)
IMAGES = Format("a folder of images", (), read_images, ("resize",), is_folder=True)
_EVERYWHERE = ("transpose", "max_bytes", "group_by")


def format_of(path: Path) -> Format:
    """Return the format that a path's suffix, or its being a folder, stands for."""
    by_suffix = {suffix: kind for kind in FORMATS for suffix in kind.suffixes}
    suffix = known_suffix(path)
    if suffix is not None:
        kind = by_suffix[suffix]
        if path.is_dir() == kind.is_folder:
            return kind
        what = "a folder" if path.is_dir() else "a file"
        raise FileError(f"{os.fspath(path)!r} is {what}, which a {suffix} is not.")
    if path.is_dir():
        return IMAGES
    if path.suffix.lower() in IMAGE_SUFFIXES:
        raise FileError(
            f"{os.fspath(path)!r} is one image, which is one row. Give the folder of images."
        )
    suffix = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
    raise FileError(
        f"{os.fspath(path)!r} has {suffix}, which is not one of those that are read: "
        f"{', '.join(by_suffix)}."
    )


def known_suffix(path: Path) -> str | None:
    """Return the longest suffix of the name that belongs to a format."""
    suffixes = [suffix for kind in FORMATS for suffix in kind.suffixes]
    found = [suffix for suffix in suffixes if path.name.lower().endswith(suffix)]
    return max(found, key=len, default=None)


def require_useful(kind: Format, settings: ReadOptions, path: Path) -> None:
    """Refuse options that this format does not have: they would do nothing."""
    for name, value in _settings.to_options(settings).items():
        unset = value == getattr(ReadOptions(), name)
        if not unset and name not in (*_EVERYWHERE, *kind.options):
            raise InputError(
                f"{os.fspath(path)!r} is read as {kind.name}, which has no option {name!r}. "
                "Leave it out."
            )
