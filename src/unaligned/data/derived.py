"""Rows of another source, some left out or all changed, still read block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from .chunks import lazily
from .parts import Part
from .sources import RowSource


class FiniteRows(RowSource):
    """The rows of another source without those that hold NaN or infinity."""

    def __init__(self, source: RowSource) -> None:
        self.source = source
        self.n_rows, self.n_features = source.n_rows - source.summary.n_bad, source.n_features

    def parts(self, n_rows: int | None = None) -> Iterator[Part]:
        """Yield parts that carry their rows: where one begins is known only when it is read."""
        start = 0
        for block in self.source.blocks(n_rows):
            rows = block[np.isfinite(block).all(axis=1)]
            if rows.shape[0] == 0:
                continue
            yield self.part(start, rows.shape[0], n_rows, list).carrying(rows)
            start += rows.shape[0]


class MappedRows(RowSource):
    """The rows of another source, each block changed by a function that keeps their number."""

    def __init__(
        self,
        source: RowSource,
        function: Callable[[Any], Any],
        n_features: int | None = None,
    ) -> None:
        self.source, self.function = source, function
        self.n_rows = source.n_rows
        self.n_features = source.n_features if n_features is None else n_features

    def parts(self, n_rows: int | None = None) -> Iterator[Part]:
        """Yield the parts of the source, with the function to be applied to them."""
        for part in self.source.parts(n_rows):
            yield part.mapped(self.function, self.n_features)

    def jobs(self, n_rows: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield what the source does, with the function to be applied to it."""
        for size, job in self.source.jobs(n_rows):
            if hasattr(job, "__dask_graph__"):
                yield size, lazily(Part.mapped, job, self.function, self.n_features)
            else:
                yield size, job.mapped(self.function, self.n_features)

    def total(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the sum of a function of the changed blocks."""
        return self.source.total(partial(_after, self.function, function))

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64; rows are changed one by one."""
        return np.asarray(self.function(self.source.take(rows)), dtype=np.float64)


def _after(
    first: Callable[[Any], Any], second: Callable[[FloatArray], FloatArray], rows: FloatArray
) -> FloatArray:
    return second(first(rows))
