"""The registry of formats; the file, the part and the dataset names that a path means."""

import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from .. import _check
from .._format import printable_line
from ..errors import FileError, InputError
from .base import Contents, ReadOptions, Request

PathLike: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True)
class Format:
    """One kind of file: its name, its suffixes, its reader and the options that it has."""

    name: str
    suffixes: tuple[str, ...]
    reader: str  # "module.function" of this package; the module is imported on first use
    options: tuple[str, ...] = ()
    is_folder: bool = False

    def read(self, request: Request) -> Contents:
        """Return the contents of a file of this format."""
        known = ("transpose", "max_bytes", "group_by", *self.options)
        for name, value in _check.to_options(request.options).items():
            if name not in known and value != getattr(ReadOptions(), name):
                shown = repr(os.fspath(request.path))
                raise InputError(f"{shown} is read as {self.name}, which has no option {name!r}.")
        module, _, function = self.reader.partition(".")
        read: Callable[[Request], Contents]
        read = getattr(import_module(f".{module}", __package__), function)
        return read(request)


_TABLE = ("columns", "drop_non_numeric")
_CELLS = ("use_rep", "layer", "var_names", "mask_obs")

FORMATS = (
    Format("NumPy .npy", (".npy",), "arrays.read_npy", ("flatten", "lazy")),
    Format("NumPy .npz", (".npz",), "arrays.read_npz", ("flatten",)),
    Format("CSV", (".csv", ".csv.gz"), "tables.read_csv", (*_TABLE, "header")),
    Format("TSV", (".tsv", ".tsv.gz"), "tables.read_csv", (*_TABLE, "header")),
    Format("Parquet", (".parquet", ".pq"), "tables.read_parquet", (*_TABLE, "lazy")),
    Format("Feather", (".feather", ".arrow"), "tables.read_feather", _TABLE),
    Format("AnnData .h5ad", (".h5ad",), "hdf5.read_h5ad", (*_CELLS, "lazy")),
    Format("HDF5", (".h5", ".hdf5"), "hdf5.read_hdf5", ("flatten", "lazy")),
    Format("Zarr", (".zarr",), "zarr.read_zarr", (*_CELLS, "flatten", "lazy"), is_folder=True),
    Format("Matrix Market", (".mtx", ".mtx.gz"), "matrix_market.read_mtx"),
    Format("PyTorch", (".pt", ".pth", ".th"), "arrays.read_torch", ("flatten",)),
    Format("safetensors", (".safetensors",), "arrays.read_safetensors", ("flatten", "lazy")),
    Format("PLY", (".ply",), "meshes.read_ply"),
    Format("OFF", (".off",), "meshes.read_off"),
    Format("OBJ", (".obj",), "meshes.read_obj"),
    Format("STL", (".stl",), "meshes.read_stl"),
)
IMAGES = Format(
    "a folder of images",
    (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm"),
    "images.read_images",
    ("resize",),
    is_folder=True,
)
_BY_SUFFIX = {suffix: kind for kind in FORMATS for suffix in kind.suffixes}
SUPPORTED = f"Supported: {', '.join(_BY_SUFFIX)}."


def format_of(path: Path) -> Format:
    """Return the format of a path, by its suffix or because it is a folder."""
    name, suffix = repr(os.fspath(path)), known_suffix(path)
    if suffix is not None:
        kind = _BY_SUFFIX[suffix]
        if path.is_dir() == kind.is_folder:
            return kind
        forms = ("a folder", "a file") if path.is_dir() else ("a file", "a folder")
        raise FileError(f"{name} is {forms[0]}, but a {suffix} is {forms[1]}.")
    if path.is_dir():
        return IMAGES
    if path.suffix.lower() in IMAGES.suffixes:
        raise FileError(f"{name} is one image, which is one row. Give the folder of images.")
    what = f"the suffix {path.suffix!r}, which is not supported" if path.suffix else "no suffix"
    raise FileError(f"{name} has {what}. {SUPPORTED}")


def known_suffix(path: Path) -> str | None:
    """Return the longest suffix of the name that belongs to a format."""
    found = [suffix for suffix in _BY_SUFFIX if path.name.lower().endswith(suffix)]
    return max(found, key=len, default=None)


class Place(NamedTuple):
    """A file, and the part of it named after a colon."""

    path: Path
    key: str | None


def locate(path: PathLike) -> Place:
    """Split `file.npz:key` at the colon, unless a file of the whole name exists."""
    _check.file_path("path", path)
    text = os.fspath(path)
    colons = [i for i, letter in enumerate(text) if letter == ":" and i > 1]  # not of a drive
    if os.path.lexists(text) or not colons:
        return Place(Path(text), None)
    if "://" in text:
        raise FileError(f"{text!r} is a URL, which is not read. Download it, and give the file.")
    # The longest beginning that exists: folders and keys may contain colons.
    there = (i for i in reversed(colons) if os.path.lexists(text[:i]))
    named = (i for i in colons if known_suffix(Path(text[:i])))  # of a file that is missing
    cut = next(itertools.chain(there, named), None)
    return Place(Path(text[:cut]), None if cut is None else text[cut + 1 :])


def stem(path: Path) -> str:
    """Return the file's name without its suffixes, `day.1` for `data/day.1.csv.gz`."""
    name = path.name or path.resolve().name
    name = name[:-3] if name.lower().endswith(".gz") else name
    return Path(name).stem or name


def name_of(path: PathLike) -> str:
    """Return the name of the dataset read from this path: `cells`, or `cells:counts`."""
    place = locate(path)
    return joined(stem(place.path), place.key)


def joined(*parts: str | None) -> str:
    """Return the parts of a name that exist, separated by colons, without control characters."""
    return printable_line(":".join(part for part in parts if part))


def names_of(paths: Sequence[Any]) -> list[str]:
    """Return a name for each path; equal names are replaced by the whole paths."""
    short = [name_of(path) for path in paths]
    pairs = zip(short, paths, strict=True)
    return unique(name if short.count(name) == 1 else joined(str(path)) for name, path in pairs)


def unique(names: Iterable[str]) -> list[str]:
    """Return the names, repeated ones with a number: `a`, `a (2)`."""
    found: dict[str, None] = {}
    for name in names:
        own, number = name, 2
        while name in found:
            name, number = f"{own} ({number})", number + 1
        found[name] = None
    return list(found)
