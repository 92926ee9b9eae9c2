"""Rows of a Dask array, which stays where it is: chunks are worked out, and worked on, there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..errors import InputError
from .source import ArrayRows, Part, RowSource, RowSummary, is_large


class DaskRows(RowSource):
    """Rows of a Dask array, computed chunk by chunk."""

    def __init__(self, array: Any) -> None:
        if array.ndim != 2 or any(np.isnan(size) or size == 0 for size in array.shape):
            raise InputError(
                f"A Dask array must be rows × features of known size; shape {array.shape} "
                "arrived. Call array.compute_chunk_sizes() first."
            )
        filled = tuple(size for size in array.chunks[0] if size)
        self.array = array.rechunk({0: filled, 1: -1})
        self.n_rows, self.n_features = (int(size) for size in array.shape)

    def parts(self, n_rows: int | None = None) -> Iterator[Part]:
        """Yield a part per chunk."""
        starts = np.concatenate([[0], np.cumsum(self.array.chunks[0])])
        for i, (start, stop) in enumerate(pairwise(starts.tolist())):
            chunk = self.array.blocks[i]
            yield self.part(start, stop - start, n_rows, partial(_computed, chunk))

    def jobs(self, n_rows: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield parts whose chunk is worked out by the cluster, where its data is."""
        for part, chunk in zip(self.parts(n_rows), self._chunks(), strict=True):
            yield part.n_rows, lazily(Part.carrying, part.carrying([]), chunk)

    def total(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the sum of `function(chunk)` over all chunks, worked out where they are."""
        parts = [lazily(_of_chunk, function, chunk) for chunk in self._chunks()]
        while len(parts) > 1:  # a tree: no worker has to hold them all
            parts = [lazily(sum, parts[a : a + 8]) for a in range(0, len(parts), 8)]
        found: FloatArray = parts[0].compute()
        return found

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64; nothing else is brought here."""
        wanted, places = np.unique(np.asarray(rows), return_inverse=True)
        return np.asarray(self.array[wanted].compute(), dtype=np.float64)[places]

    @cached_property
    def summary(self) -> RowSummary:
        """One pass over all rows, where they are.

        An array that is small enough to be brought here has the digest of the same rows in
        memory; a larger one a digest of its chunks' digests.
        """
        if not is_large(8 * self.n_rows * self.n_features):
            return super().summary
        found = lazily(list, [lazily(_summary_of, chunk) for chunk in self._chunks()]).compute()
        return _joined(found, self.array.chunks[0])

    def _chunks(self) -> list[Any]:
        return [chunk.item() for chunk in self.array.to_delayed()]


def lazily(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what Dask calls delayed: the result, to be worked out where its arguments are."""
    from dask.delayed import delayed

    return delayed(function, pure=False)(*arguments)


def _of_chunk(function: Callable[[FloatArray], FloatArray], chunk: Any) -> FloatArray:
    return function(np.asarray(chunk, dtype=np.float64))


def _computed(chunk: Any) -> list[npt.NDArray[Any]]:
    return [np.asarray(chunk.compute())]


def _summary_of(rows: Any) -> RowSummary:
    """Return the summary of rows in memory. Runs on a worker."""
    return ArrayRows(np.asarray(rows)).summary


def _joined(parts: Sequence[RowSummary], sizes: Sequence[int]) -> RowSummary:
    """Return the summary of all rows from those of consecutive parts."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    bad = [a + part.first_bad for a, part in zip(starts, parts, strict=False) if part.n_bad]
    counts = [size - part.n_bad for size, part in zip(sizes, parts, strict=True)]
    means = np.array([part.mean for part in parts])
    return RowSummary(
        hashlib.blake2b("".join(p.digest for p in parts).encode(), digest_size=16).hexdigest(),
        sum(part.n_bad for part in parts),
        int(bad[0]) if bad else -1,
        np.average(means, axis=0, weights=np.maximum(counts, 1e-300)),
        max(part.peak for part in parts),
        next(part.first for part in parts if part.first.size),
    )
