"""A file that is a tree of arrays, whatever library reads it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _check
from .._format import amount
from ..engine.memory import available_memory
from ..errors import FileError, InputError
from ..rows.files import StoredRows
from ..rows.source import is_large

_LARGE = 1 << 28
_BOMB_RATIO = 200  # real data that unpacks to more than 256 MiB does not shrink more than this


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read; each format has some of these.

    Parameters
    ----------
    columns
        Tables: only these columns, by name or position, in this order.
    header
        Text tables: whether the first line names the columns; None finds out.
    drop_non_numeric
        Tables: leave out columns that hold no numbers, instead of refusing them.
    transpose
        Take columns as samples, such as for genes × cells.
    flatten
        Arrays: take an array of more than two dimensions as one row per first index.
    resize
        Images: (width, height) that all are brought to.
    lazy
        Read rows by blocks whenever needed; None does so above 256 MiB.
    max_bytes
        The most that the file may take in memory; None is half of what is available, and
        refuses files that unpack to more than 256 MiB and 200 times their size.
    group_by
        A column or label array; `load_all` makes one dataset of each of its values.
    """

    columns: tuple[str | int, ...] | None = None
    header: bool | None = None
    drop_non_numeric: bool = False
    transpose: bool = False
    flatten: bool = False
    resize: tuple[int, int] | None = None
    lazy: bool | None = None
    max_bytes: int | None = None
    group_by: str | None = None

    def __post_init__(self) -> None:
        for name in ("drop_non_numeric", "transpose", "flatten"):
            _check.flag(name, getattr(self, name))
        for name in ("header", "lazy"):
            if getattr(self, name) is not None:
                _check.flag(name, getattr(self, name))
        if self.max_bytes is not None:
            _check.positive_int("max_bytes", self.max_bytes)
        if self.group_by is not None and not isinstance(self.group_by, str):
            raise InputError(f"group_by={self.group_by!r} must be the name of a column.")
        if self.group_by is not None and self.transpose:
            raise InputError("group_by names groups of rows, and transpose=True has none of them.")
        self._set_columns()
        self._set_resize()

    def _set_columns(self) -> None:
        if self.columns is None:
            return
        columns = (self.columns,) if isinstance(self.columns, (str, int)) else tuple(self.columns)
        if not columns or not all(isinstance(c, (str, int)) for c in columns):
            raise InputError(
                f"columns={self.columns!r} must be names or positions of columns, at least one."
            )
        object.__setattr__(self, "columns", columns)

    def _set_resize(self) -> None:
        if self.resize is None:
            return
        size = (self.resize, self.resize) if isinstance(self.resize, int) else tuple(self.resize)
        if len(size) != 2:
            raise InputError(f"resize={self.resize!r} must be (width, height) in pixels.")
        object.__setattr__(
            self, "resize", tuple(_check.positive_int("resize", side) for side in size)
        )


@dataclass(frozen=True)
class Request:
    """A file and how it is to be read."""

    path: Path
    options: ReadOptions
    size: int  # bytes on disk

    def afford(self, n_bytes: int, what: str = "") -> None:
        """Refuse what would not fit into memory, and what cannot be honest."""
        limit = self.options.max_bytes
        label = f"{os.fspath(self.path)!r}{f' ({what})' if what else ''}"
        if n_bytes > (available_memory() // 2 if limit is None else limit):
            allowed = "half of the memory available" if limit is None else f"max_bytes={limit}"
            raise FileError(
                f"{label} would take {amount(n_bytes)} of memory, more than {allowed}. "
                "Take fewer columns or rows, or raise max_bytes."
            )
        self.believe(n_bytes, what)

    def believe(self, n_bytes: int, what: str = "") -> None:
        """Refuse what unpacks to far more than is on disk, as a zip bomb does."""
        if self.options.max_bytes is None and n_bytes > max(_LARGE, _BOMB_RATIO * self.size):
            label = f"{os.fspath(self.path)!r}{f' ({what})' if what else ''}"
            raise FileError(
                f"{label} says it holds {amount(n_bytes)}, and has {amount(self.size)} on disk: "
                "this looks like a decompression bomb. If you trust it, set "
                "max_bytes to what it may take."
            )

    def is_lazy(self, n_bytes: int) -> bool:
        """Return whether rows of this many bytes are to be read by blocks."""
        return is_large(n_bytes) if self.options.lazy is None else self.options.lazy


Names = Callable[[], Iterable[Any] | None]


def _unnamed() -> None:
    return None


@dataclass(frozen=True)
class Item:
    """One array of a file: what it is, how to read it, and the names of its columns and rows."""

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], Any]
    is_numeric: bool = True
    n_bytes: int = 0  # what reading it brings into memory
    columns: Names = _unnamed
    rows: Names = _unnamed

    def __str__(self) -> str:
        return f"{' × '.join(map(str, self.shape)) or 'one value'} {self.dtype}"


def _no_labels(name: str) -> npt.NDArray[Any]:
    raise FileError(f"group_by={name!r}: this format has no labels to group rows by.")


@dataclass(frozen=True)
class Contents:
    """The arrays of a file by key (one without a key has the key ""), and its labels."""

    items: Mapping[str, Item]
    labels: Callable[[str], npt.NDArray[Any]] = _no_labels
    default: str | None = None

    @staticmethod
    def single(
        values: Any,
        labels: npt.NDArray[Any] | None = None,
        *,
        columns: Names = _unnamed,
        rows: Names = _unnamed,
    ) -> Contents:
        """Return the contents of a file that is one array, read already."""
        dtype = str(getattr(values, "dtype", ""))
        item = Item(tuple(values.shape), dtype, lambda: values, columns=columns, rows=rows)
        return Contents({"": item}, _no_labels if labels is None else lambda name: labels, "")

    def select(self, key: str | None) -> tuple[str, Item]:
        """Return the array asked for; without a key, the only one there is."""
        if key is not None:
            found = key.strip("/") if key not in self.items else key
            if found in self.items and found:
                return found, self.items[found]
            if set(self.items) == {""}:
                raise FileError(f"The part {key!r} was asked for, and this format has no parts.")
            near = _check.did_you_mean(key, self.items)
            raise FileError(f"There is no {key!r} in it.{near} It holds {self.listing()}.")
        if self.default is not None and self.default in self.items:
            return self.default, self.items[self.default]
        tables = self.tables()
        larger = any(item.is_numeric and len(item.shape) > 2 for item in self.items.values())
        if (len(tables) == 1 and not larger) or len(self.items) == 1:
            key = next(iter(tables or self.items))
            return key, self.items[key]
        if not self.items:
            raise FileError("There is no array in it.")
        raise FileError(
            f"It holds several arrays; say which one after a colon, or use load_all for all. "
            f"It holds {self.listing()}."
        )

    def tables(self) -> dict[str, Item]:
        """Return the arrays that could be datasets: numeric, rows × features, not empty."""
        return {
            key: item
            for key, item in self.items.items()
            if item.is_numeric and len(item.shape) == 2 and 0 not in item.shape
        }

    def listing(self) -> str:
        """Return what is in it, in a line."""
        if not self.items:
            return "no arrays"
        shown = [f"{key!r} ({item})" for key, item in list(self.items.items())[:20]]
        more = len(self.items) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")


def type_name(dtype: np.dtype[Any]) -> str:
    """Return how messages call a type: `float32`, or `text`."""
    return "text" if dtype.kind in "SUTO" else str(dtype)


def array_bytes(shape: tuple[int, ...], itemsize: int) -> int:
    """Return the bytes of an array in whole numbers that do not overflow."""
    return math.prod(int(side) for side in shape) * itemsize


@dataclass(frozen=True)
class Node:
    """One array of a tree."""

    shape: tuple[int, ...]
    dtype: str
    is_numeric: bool
    n_bytes: int
    chunk_bytes: int
    opened: Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Tree:
    """The arrays of a file by key, how to open one, and the attributes of its groups."""

    request: Request
    nodes: dict[str, Node]
    attribute: Callable[[str, str], Any]  # of a key: None where there is none

    def values(self, key: str) -> npt.NDArray[Any]:
        """Return one array, read whole."""
        node = self.nodes[key]
        self.request.afford(node.n_bytes, key)
        with node.opened() as array:
            return np.asarray(array[()])

    def item(self, key: str) -> Item:
        """Return an array as something that can be loaded."""
        node = self.nodes[key]

        def read() -> Any:
            self.request.believe(node.n_bytes, key)
            self.request.afford(node.chunk_bytes, f"one chunk of {key!r}")
            if not node.is_numeric:
                raise FileError(
                    f"The array {key!r} holds {node.dtype}; real numbers in this very file are "
                    "needed."
                )
            table = len(node.shape) == 2 and 0 not in node.shape
            if table and self.request.is_lazy(node.n_bytes):
                return StoredRows(self.request.path, node.opened, node.shape)
            return self.values(key)

        in_memory = 0 if self.request.is_lazy(node.n_bytes) else node.n_bytes
        return Item(node.shape, node.dtype, read, node.is_numeric, in_memory)


def plain_contents(tree: Tree) -> Contents:
    """Return all arrays of a tree; labels are its 1-D arrays."""

    def labels(name: str) -> npt.NDArray[Any]:
        if name.strip("/") not in tree.nodes:
            flat = [key for key, node in tree.nodes.items() if len(node.shape) == 1]
            raise FileError(
                f"group_by={name!r} is not in it. One-dimensional arrays here: "
                f"{', '.join(map(repr, flat)) or 'none'}."
            )
        return tree.values(name.strip("/")).ravel()

    return Contents({key: tree.item(key) for key in tree.nodes}, labels)
