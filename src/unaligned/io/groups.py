"""Groups of rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..rows.source import Part, RowSource

Mask = npt.NDArray[np.bool_]


def chosen(values: Any, mask: Mask) -> Any:
    """Return the rows that the mask marks, of an array, a sparse matrix or a source."""
    if isinstance(values, RowSource):
        return ChosenRows(values, mask)
    return values[np.flatnonzero(mask)]


class ChosenRows(RowSource):
    """Those rows of another source that a mask marks."""

    def __init__(self, source: RowSource, mask: npt.NDArray[np.bool_]) -> None:
        self.source, self.mask = source, mask
        self.n_rows, self.n_features = int(mask.sum()), source.n_features

    def parts(self, n_rows: int | None = None) -> Iterator[Part]:
        """Yield the parts of the source, each with its chosen rows."""
        start = 0
        for part in self.source.parts(n_rows):
            mask = self.mask[part.start : part.start + part.n_rows]
            kept = int(mask.sum())
            if kept:
                yield self.part(start, kept, part.step, partial(_kept, part, mask))
            start += kept

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64, from where they are in the source."""
        return self.source.take(np.flatnonzero(self.mask)[np.asarray(rows, dtype=np.int64)])


def _kept(part: Part, mask: npt.NDArray[np.bool_]) -> Iterator[Any]:
    for start, block in part.blocks():
        first = start - part.start
        yield block[mask[first : first + block.shape[0]]]
