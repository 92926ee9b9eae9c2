"""What readers share: the options, the request, and the contents of a file."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _check, defaults
from .._format import amount
from ..engine.memory import available_memory
from ..errors import FileError, InputError
from ..rows.files import StoredRows


@dataclass(frozen=True)
class ReadOptions:
    """How a file is read; each format has some of these options (see docs/files.md)."""

    columns: tuple[str | int, ...] | None = None  # of tables, by name or position, in this order
    header: bool | None = None  # of text tables; None detects it
    drop_non_numeric: bool = False
    transpose: bool = False
    flatten: bool = False  # one row for each index of the first axis
    resize: tuple[int, int] | None = None  # (width, height) of images in pixels
    lazy: bool | None = None  # read rows by blocks; None does so above 256 MiB
    max_bytes: int | None = None  # of memory; None is half of what is available
    group_by: str | tuple[str, ...] | None = None  # one column of labels, or several
    use_rep: str | None = None  # of AnnData: the entry of obsm, or "X"
    layer: str | None = None  # of AnnData
    var_names: str | tuple[str, ...] | None = None  # of AnnData, or a column of var with booleans
    mask_obs: str | tuple[bool, ...] | None = None  # of AnnData: a column of obs, or its values

    def __post_init__(self) -> None:
        self._check_annotation()
        for name in ("drop_non_numeric", "transpose", "flatten"):
            _check.flag(name, getattr(self, name))
        if self.transpose and (self.var_names or self.mask_obs):
            raise InputError("var_names and mask_obs cannot be combined with transpose=True.")
        for name in ("header", "lazy"):
            if getattr(self, name) is not None:
                _check.flag(name, getattr(self, name))
        _check.optional_int("max_bytes", self.max_bytes)
        if isinstance(self.group_by, Sequence) and not isinstance(self.group_by, str):
            object.__setattr__(self, "group_by", tuple(self.group_by))
        if not all(isinstance(column, str) for column in self.label_columns):
            found = _check.shape_of(self.group_by)
            raise InputError(f"group_by must be the name of a column, or several, not {found}.")
        if len({*self.label_columns}) < len(self.label_columns):
            raise InputError(f"group_by={self.group_by!r} names a column twice.")
        if self.group_by is not None and self.transpose:
            raise InputError("group_by groups rows and cannot be combined with transpose=True.")
        if self.columns is not None:
            columns = self.columns
            if isinstance(columns, Iterable):
                columns = (columns,) if isinstance(columns, str) else tuple(columns)
            else:
                columns = (columns,)
            if not columns or not all(isinstance(column, (str, int)) for column in columns):
                rule = "must be names or positions of columns, at least one"
                raise InputError(f"columns={self.columns!r} {rule}.")
            object.__setattr__(self, "columns", columns)
        if self.resize is not None:
            sides = tuple(self.resize) if isinstance(self.resize, Iterable) else (self.resize,) * 2
            if len(sides) != 2:
                raise InputError(f"resize={self.resize!r} must be (width, height) in pixels.")
            checked = tuple(_check.positive_int("resize", side) for side in sides)
            object.__setattr__(self, "resize", checked)

    def _check_annotation(self) -> None:
        """Check the options of AnnData, and turn lists and arrays into tuples."""
        for name in ("use_rep", "layer"):
            if not isinstance(getattr(self, name), str | None):
                other = _check.shape_of(getattr(self, name))
                raise InputError(f"{name} must be the name of a matrix, not {other}.")
        if self.use_rep is not None and self.layer is not None:
            raise InputError(
                f"use_rep={self.use_rep!r} and layer={self.layer!r} are two matrices. Give one."
            )
        for name, kind in (("var_names", str), ("mask_obs", bool)):
            given = getattr(self, name)
            if given is None or isinstance(given, str):
                continue
            found = tuple(np.asarray(given).tolist()) if np.ndim(given) == 1 else ()
            if not found or not all(isinstance(value, kind) for value in found):
                what = {"var_names": "names of genes", "mask_obs": "True or False for each cell"}
                raise InputError(f"{name} must be a column, or a list: {what[name]}.")
            object.__setattr__(self, name, found)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of `group_by`."""
        if self.group_by is None:
            return ()
        return self.group_by if isinstance(self.group_by, tuple) else (self.group_by,)

    @property
    def key(self) -> str | None:
        """The matrix of AnnData that `use_rep` or `layer` names."""
        if self.layer is not None:
            return f"layers/{self.layer}"
        return self.use_rep if self.use_rep in (None, "X") else f"obsm/{self.use_rep}"


@dataclass(frozen=True)
class Request:
    """A file, and how to read it."""

    path: Path
    options: ReadOptions
    size: int  # bytes on disk

    def require_memory(self, n_bytes: int, part: str = "") -> None:
        """Raise where `n_bytes` do not fit into memory or cannot be what the file contains."""
        limit = self.options.max_bytes
        if n_bytes > (available_memory() // 2 if limit is None else limit):
            allowed = "half of the available memory" if limit is None else f"max_bytes={limit}"
            raise FileError(
                f"{self._label(part)} needs {amount(n_bytes)} of memory, more than {allowed}. "
                "Take fewer columns or rows, or raise max_bytes."
            )
        self.require_plausible(n_bytes, part)

    def require_plausible(self, n_bytes: int, part: str = "") -> None:
        """Raise where a file claims far more than it has on disk, as a decompression bomb does."""
        if self.options.max_bytes is None and is_bomb(n_bytes, self.size):
            raise FileError(
                f"{self._label(part)} claims to contain {amount(n_bytes)} and has "
                f"{amount(self.size)} on disk, as a decompression bomb does. If you trust it, set "
                "max_bytes to the memory it may use."
            )

    def _label(self, part: str) -> str:
        return repr(os.fspath(self.path)) + (f" ({part})" if part else "")

    def is_lazy(self, shape: tuple[int, ...], n_bytes: int) -> bool:
        """Return whether an array is read by blocks of rows."""
        wanted = n_bytes > defaults.LAZY_BYTES if self.options.lazy is None else self.options.lazy
        return wanted and len(shape) == 2 and 0 not in shape


Names = Callable[[], Iterable[Any] | None] | None


@dataclass(frozen=True)
class Item:
    """One array of a file: its shape and type, a function that reads it, names of its axes."""

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], Any]
    is_numeric: bool = True
    n_bytes: int = 0  # memory needed to read it; 0 where it is read by blocks
    columns: Names = None
    rows: Names = None

    def __str__(self) -> str:
        return f"{' × '.join(map(str, self.shape)) or 'one value'} {self.dtype}"


def _no_labels(name: str) -> npt.NDArray[Any]:
    raise FileError(f"group_by={name!r}: this format has no labels to group rows by.")


def _no_features(name: str) -> npt.NDArray[Any]:
    raise FileError(f"var_names={name!r}: only AnnData has columns that describe features.")


@dataclass(frozen=True)
class Contents:
    """The arrays of a file by key ("" in a file of one array), and its labels."""

    items: Mapping[str, Item]
    labels: Callable[[str], npt.NDArray[Any]] = _no_labels
    default: str | None = None
    features: Callable[[str], npt.NDArray[Any]] = _no_features  # a column of var

    @property
    def is_annotated(self) -> bool:
        """Whether these are the matrices of AnnData."""
        return self.features is not _no_features

    @staticmethod
    def single(
        values: Any,
        labels: Mapping[str, Any] | None = None,
        *,
        columns: Names = None,
        rows: Names = None,
    ) -> Contents:
        """Return the contents of a file with one array, already in memory."""
        shape, dtype = tuple(values.shape), str(values.dtype)
        item = Item(shape, dtype, lambda: values, columns=columns, rows=rows)
        return Contents({"": item}, labels.__getitem__ if labels else _no_labels, "")

    def select(self, key: str | None) -> tuple[str, Item]:
        """Return the array of this key; without one, the only or the default array."""
        if key is not None:
            found = key if key in self.items else key.strip("/")
            if found in self.items and found:
                return found, self.items[found]
            if set(self.items) == {""}:
                raise FileError(f"This format has no parts, and {key!r} was asked for.")
            near, arrays = _check.did_you_mean(key, self.items), listing(self.items)
            raise FileError(f"There is no {key!r} in the file.{near} Arrays: {arrays}.")
        if self.default is not None and self.default in self.items:
            return self.default, self.items[self.default]
        if not self.items:
            raise FileError("The file contains no array.")
        tables = self.tables()
        larger = any(item.is_numeric and len(item.shape) > 2 for item in self.items.values())
        if (len(tables) == 1 and not larger) or len(self.items) == 1:
            key = next(iter(tables or self.items))
            return key, self.items[key]
        raise FileError(
            "The file contains several arrays; name one after a colon, or use load_all for all. "
            f"Arrays: {listing(self.items)}."
        )

    def tables(self) -> dict[str, Item]:
        """Return the arrays that can be datasets: numeric, two-dimensional, not empty."""
        return {
            key: item
            for key, item in self.items.items()
            if item.is_numeric and len(item.shape) == 2 and 0 not in item.shape
        }


def listing(items: Mapping[str, Item]) -> str:
    """Return the arrays of a file for a message, at most 20 of them."""
    shown = [f"{key!r} ({item})" for key, item in list(items.items())[:20]]
    more = len(items) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def flat_labels(items: Mapping[str, Item], name: str) -> npt.NDArray[Any]:
    """Return an array of a file that has one label per row."""
    key = name if name in items else name.strip("/")
    flat = [key for key, item in items.items() if math.prod(item.shape) in item.shape]
    if key not in flat:
        found = items.get(key, "missing")
        raise FileError(
            f"group_by={name!r} must be an array with one label per row; it is {found}. "
            f"One-dimensional arrays here: {', '.join(map(repr, flat)) or 'none'}."
        )
    return np.asarray(items[key].read()).ravel()


@dataclass(frozen=True)
class Node:
    """One array of a tree of arrays."""

    shape: tuple[int, ...]
    dtype: str
    is_numeric: bool
    n_bytes: int
    chunk_bytes: int
    open: Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Tree:
    """The arrays of an HDF5 or Zarr file by key, and the attributes of its groups."""

    request: Request
    nodes: dict[str, Node]
    attribute: Callable[[str, str], Any]  # of a key, by name; None where it is missing

    def values(self, key: str) -> npt.NDArray[Any]:
        """Return one array, read into memory."""
        node = self.nodes[key]
        self.request.require_memory(node.n_bytes, key)
        with node.open() as array:
            return np.asarray(array[()])

    def item(self, key: str) -> Item:
        """Return one array of numbers as an item that can be loaded."""
        node = self.nodes[key]
        lazy = node.is_numeric and self.request.is_lazy(node.shape, node.n_bytes)

        def read() -> Any:
            self.request.require_plausible(node.n_bytes, key)
            self.request.require_memory(node.chunk_bytes, f"one chunk of {key!r}")
            if lazy:
                return StoredRows(self.request.path, node.open, node.shape)
            return self.values(key)

        return Item(node.shape, node.dtype, read, node.is_numeric, 0 if lazy else node.n_bytes)

    def contents(self) -> Contents:
        """Return all arrays; labels are the one-dimensional ones."""
        items = {key: self.item(key) for key in self.nodes}
        return Contents(items, lambda name: flat_labels(items, name))


def disk_size(path: Path) -> int:
    """Return the bytes of a plain file or a whole folder; raise for everything else."""
    name = os.fspath(path)
    if "\0" in name:
        raise FileError(f"path={name!r} contains a NUL character.")
    try:
        status = path.stat()
    except FileNotFoundError:
        what = "a broken link" if path.is_symlink() else "no such file or folder"
        raise FileError(f"Cannot read {name!r}: {what}.") from None
    except OSError as error:
        raise FileError(f"Cannot read {name!r}: {error.strerror}.") from error
    if stat.S_ISDIR(status.st_mode):
        inside = (os.path.join(at, file) for at, _, files in os.walk(path) for file in files)
        return sum(os.path.getsize(file) for file in inside if os.path.isfile(file))
    if not stat.S_ISREG(status.st_mode):
        what = "a pipe, socket or device, which cannot be read twice"
        raise FileError(f"{name!r} is {what}. Save it to a file first.")
    if not status.st_size:
        raise FileError(f"{name!r} is empty (0 bytes). Write it again, or leave it out.")
    return status.st_size


def is_bomb(n_bytes: int, size: int) -> bool:
    """Return whether a file of `size` bytes claims far more than can be in it."""
    # Real data above 256 MiB (1 << 28 bytes) is not compressed by more than a factor of 200.
    return n_bytes > max(1 << 28, 200 * size)


def array_bytes(shape: tuple[int, ...], itemsize: int) -> int:
    """Return the bytes of an array, in Python integers that do not overflow."""
    return math.prod(int(side) for side in shape) * itemsize


def type_name(dtype: np.dtype[Any]) -> str:
    """Return how messages call a type: `float32`, or `text`."""
    return "text" if dtype.kind in "SUTO" else str(dtype)


def text_of(label: Any) -> str:
    """Return a label, or the name of a row, as text; a missing one is empty."""
    if isinstance(label, bytes):
        return label.decode("utf-8", "replace")
    if label is None or label != label:
        return ""
    if isinstance(label, float) and label.is_integer():
        return str(int(label))  # integers become floats where a value is missing
    return str(label)


def natural_key(name: str) -> list[tuple[int, float, str]]:
    """Return a key that sorts D2 before D10."""
    parts = re.findall(r"\d+(?:\.\d+)?|\D+", name)
    return [(0, float(part), "") if part[0].isdecimal() else (1, 0.0, part) for part in parts]
