"""A file that is a tree of arrays, whatever library reads it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import FileError
from ..stored import StoredRows
from .base import Contents, Item, Request


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
