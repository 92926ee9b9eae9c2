"""Rows of a Dask array: its chunks are computed, and processed, where the array is."""

import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import defaults
from .._check import FloatArray
from ..errors import InputError
from .source import SAMPLE_ROWS, ArrayRows, Chunk, RowSource, RowSummary


class DaskRows(RowSource):
    """Rows of a Dask array, computed chunk by chunk."""

    is_portable = False

    def __init__(self, array: Any) -> None:
        if array.ndim != 2 or any(np.isnan(size) or size == 0 for size in array.shape):
            raise InputError(
                f"A Dask array must be rows × features of known size; its shape is {array.shape}. "
                "Call array.compute_chunk_sizes() first."
            )
        sizes = tuple(size for size in array.chunks[0] if size)
        self.array = array.rechunk({0: sizes, 1: -1})
        self.n_rows, self.n_features = (int(size) for size in array.shape)

    def chunks(self, n_rows: int | None = None) -> Iterator[Chunk]:
        """Yield one chunk for each chunk of the array."""
        starts = np.concatenate([[0], np.cumsum(self.array.chunks[0])])
        for i, (start, stop) in enumerate(pairwise(starts.tolist())):
            read = partial(_computed, self.array.blocks[i])
            yield self.chunk(start, stop - start, n_rows, read)

    def jobs(self, n_rows: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield delayed chunks, which the cluster computes where the data is."""
        for chunk, rows in zip(self.chunks(n_rows), self._delayed_chunks(), strict=True):
            yield chunk.n_rows, delayed(Chunk.with_rows, chunk.with_rows(), rows)

    def total(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the sum of `function(chunk)` over all chunks, computed where they are."""
        sums = [delayed(_applied, function, chunk) for chunk in self._delayed_chunks()]
        while len(sums) > 1:  # a tree, so that no worker has to hold all of them
            sums = [delayed(sum, sums[a : a + 8]) for a in range(0, len(sums), 8)]
        return np.asarray(sums[0].compute())

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64, in the given order."""
        wanted, positions = np.unique(np.asarray(rows), return_inverse=True)
        return np.asarray(self.array[wanted].compute(), dtype=np.float64)[positions]

    @cached_property
    def summary(self) -> RowSummary:
        """One pass over all rows, where they are.

        The digest of an array of up to 256 MiB is that of the same rows in memory; that of a
        larger one is a hash of the digests of its chunks.
        """
        if 8 * self.n_rows * self.n_features <= defaults.LAZY_BYTES:
            return super().summary
        delayed_chunks = self._delayed_chunks()
        n_sampled = -(-SAMPLE_ROWS // len(delayed_chunks))
        delayed_summaries = [delayed(_summary, chunk, n_sampled) for chunk in delayed_chunks]
        chunks: list[RowSummary] = delayed(list, delayed_summaries).compute()
        sizes = self.array.chunks[0]
        starts = np.cumsum([0, *sizes[:-1]])
        counts = [size - chunk.bad.size for size, chunk in zip(sizes, chunks, strict=True)]
        digests = "".join(chunk.digest for chunk in chunks)
        return RowSummary(
            hashlib.blake2b(digests.encode(), digest_size=16).hexdigest(),
            np.concatenate([start + c.bad for start, c in zip(starts, chunks, strict=True)]),
            # A chunk without finite rows has mean 0 and counts for nothing.
            np.average([c.mean for c in chunks], axis=0, weights=np.maximum(counts, 1e-300)),
            max(chunk.peak for chunk in chunks),
            np.concatenate([chunk.sample for chunk in chunks]),
        )

    def _delayed_chunks(self) -> list[Any]:
        return [chunk.item() for chunk in self.array.to_delayed()]


def delayed(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function as a Dask delayed object, computed where its inputs are."""
    from dask.delayed import delayed as delayed_function

    return delayed_function(function, pure=False)(*arguments)


def _applied(function: Callable[[FloatArray], FloatArray], chunk: Any) -> FloatArray:
    return function(np.asarray(chunk, dtype=np.float64))


def _computed(chunk: Any) -> list[npt.NDArray[Any]]:
    return [np.asarray(chunk.compute())]


def _summary(rows: Any, n_sampled: int) -> RowSummary:
    found = ArrayRows(np.asarray(rows)).summary
    return found._replace(sample=found.sample[:: max(1, len(found.sample) // n_sampled)])
