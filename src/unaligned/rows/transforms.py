"""Preprocessing of rows that are read by blocks: what a step must know is learnt in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..data.preprocess import apply_steps, is_fitted, require_components
from .dask import lazily
from .source import ArrayRows, Part, RowSource


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


# Up to so many features PCA takes its axes from the covariance, 8 d² bytes; beyond, the rows
# are read into memory.
_MOST_FEATURES = 2000


def prepared_rows(source: RowSource, steps: tuple[str, ...]) -> RowSource:
    """Return the rows with the steps done block by block, one pass for each that must learn.

    Examples
    --------
    >>> source = ArrayRows(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> prepared_rows(source, ("standardize",)).read()
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    for step in steps:
        name, _, argument = step.partition(":")
        if not is_fitted(step):
            source = MappedRows(source, partial(apply_steps, steps=(step,)))
        elif name == "standardize":
            source = MappedRows(source, partial(_standardized, *_scale(source)))
        elif source.n_features <= _MOST_FEATURES:
            mean, axes = _axes(source, int(float(argument)))
            source = MappedRows(source, partial(_scores, mean, axes), axes.shape[1])
        else:
            source = ArrayRows(apply_steps(source.read(), (step,)))
    return source


def _scale(source: RowSource) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the deviation of every column, (d,) each; 1 for constant columns."""
    centre = _centre(source)
    sums, squares = source.total(partial(_squares, centre)) / source.n_rows
    variance = squares - sums**2
    # What rounding makes of a constant column, as scikit-learn has it.
    noise = np.finfo(np.float64).eps * source.n_rows
    constant = variance <= noise * variance + (noise * (centre + sums)) ** 2
    return centre + sums, np.where(constant, 1.0, np.sqrt(np.maximum(variance, 0.0)))


def _axes(source: RowSource, n_components: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean, (d,), and the first principal axes, (d, k): O(N d²) time, 8 d² bytes."""
    require_components(n_components, source.shape)
    centre = _centre(source)
    products = source.total(partial(_products, centre))
    shift = products[-1] / source.n_rows
    _, vectors = np.linalg.eigh(products[:-1] - source.n_rows * np.outer(shift, shift))
    axes = vectors[:, ::-1][:, :n_components]
    # Signs as scikit-learn has them: the largest entry of an axis is positive.
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0)
    return centre + shift, np.ascontiguousarray(axes * np.sign(largest))


def _centre(source: RowSource) -> FloatArray:
    """Return a mean of the first rows: near enough to that of all for squares to keep digits."""
    mean: FloatArray = source.take(np.arange(min(256, source.n_rows))).mean(axis=0)
    return mean


def _squares(centre: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the sums of the columns and of their squares, (2, d)."""
    rows = rows - centre
    return np.stack([rows.sum(axis=0), np.einsum("ij,ij->j", rows, rows)])


def _products(centre: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the products of the columns with each other, and their sums, (d + 1, d)."""
    rows = rows - centre
    return np.vstack([rows.T @ rows, rows.sum(axis=0)])


def _standardized(mean: FloatArray, scale: FloatArray, rows: FloatArray) -> FloatArray:
    return (rows - mean) / scale


def _scores(mean: FloatArray, axes: FloatArray, rows: FloatArray) -> FloatArray:
    scores: FloatArray = (rows - mean) @ axes
    return scores
