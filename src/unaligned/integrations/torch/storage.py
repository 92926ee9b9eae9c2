"""Rows of activations that arrive by batches: in memory, in a temporary file, or sampled."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...data.dataset import Dataset
from ...errors import InputError
from ...rows.files import NpyRows

Block = npt.NDArray[Any]


class Storage:
    """The memory that the rows of all layers share; the largest ones move to files."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.members: list[Rows] = []

    def enforce(self) -> None:
        """Move the largest members to files until the others fit."""
        while sum(member.n_bytes for member in self.members) > self.max_bytes:
            max(self.members, key=lambda member: member.n_bytes).move_to_file()


class Rows:
    """All rows of one layer, in memory or in a `.npy` file."""

    def __init__(self, name: str, storage: Storage) -> None:
        self.name, self.n_batches, self.n_bytes = name, 0, 0
        self._blocks: list[Block] = []
        self._n_rows, self._storage = 0, storage
        self._path: Path | None = None
        storage.members.append(self)

    def add(self, block: Block) -> None:
        """Append a block of rows, (rows, features)."""
        if self.n_batches == 0:
            self._n_features, self._dtype = block.shape[1], block.dtype
        _require_width(self.name, block, self._n_features)
        block = block.astype(self._dtype, copy=False)
        self.n_batches += 1
        self._n_rows += len(block)
        if self._path is not None:
            self._append([block])
            return
        self._blocks.append(block)
        self.n_bytes += block.nbytes
        self._storage.enforce()

    def move_to_file(self) -> None:
        """Write the rows to a temporary file, which those that follow are appended to."""
        folder = tempfile.mkdtemp(prefix="unaligned-activations-")
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._path = Path(folder) / "rows.npy"
        self._write_header("wb")
        self._append(self._blocks)
        self._blocks, self.n_bytes = [], 0

    def _write_header(self, mode: str) -> None:
        """Write the header; NumPy pads it, so that its size does not depend on the rows."""
        shape = {"descr": self._dtype.str, "fortran_order": False}
        with self._path.open(mode) as file:  # type: ignore[union-attr]
            whole = {**shape, "shape": (self._n_rows, self._n_features)}
            np.lib.format.write_array_header_1_0(file, whole)

    def _append(self, blocks: list[Block]) -> None:
        with self._path.open("ab") as file:  # type: ignore[union-attr]
            for block in blocks:
                file.write(block.data)

    def dataset(self, metadata: Mapping[str, Any]) -> Dataset:
        """Return the rows as a dataset; those of a file are read by blocks."""
        if self._path is None:
            values = np.concatenate(self._blocks)
            self._blocks = []
            return Dataset(values, name=self.name, metadata=metadata, shared_unit=True)
        self._write_header("r+b")
        source = NpyRows(self._path)
        self._remove.detach()  # the file is deleted with the last dataset that reads it
        weakref.finalize(source, shutil.rmtree, self._path.parent, ignore_errors=True)
        return Dataset.from_source(source, name=self.name, metadata=metadata, shared_unit=True)


class Sample:
    """A uniform random sample of the rows of one layer, of a fixed size, in their order."""

    def __init__(self, name: str, size: int, seed: int) -> None:
        self.name, self.n_batches, self._size = name, 0, size
        self._rng = np.random.default_rng(seed)
        self._kept: Block | None = None
        self._keys = np.empty(0)

    def add(self, block: Block) -> None:
        """Keep the rows with the smallest of random keys."""
        if self._kept is None:
            self._kept = block[:0]
        _require_width(self.name, block, self._kept.shape[1])
        self.n_batches += 1
        keys = np.concatenate([self._keys, self._rng.random(len(block))])
        chosen = np.arange(len(keys))
        if len(keys) > self._size:
            chosen = np.sort(np.argpartition(keys, self._size)[: self._size])
        old = chosen[chosen < len(self._kept)]
        new = chosen[len(old) :] - len(self._kept)
        self._kept = np.concatenate([self._kept[old], block[new]])
        self._keys = keys[chosen]

    def dataset(self, metadata: Mapping[str, Any]) -> Dataset:
        """Return the sampled rows as a dataset."""
        return Dataset(self._kept, name=self.name, metadata=metadata, shared_unit=True)


def _require_width(name: str, block: Block, n_features: int) -> None:
    if block.shape[1] != n_features:
        raise InputError(
            f"The module {name!r} returned rows of {block.shape[1]} features after rows of "
            f"{n_features}: the batches have different sizes. Use pool='mean' or 'positions', or "
            "pad the batches."
        )
