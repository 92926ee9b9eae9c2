"""Sources made from others: chosen rows, and rows with preprocessing applied by blocks."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..data.preprocess import apply_steps, is_fitted, require_components
from .dask import delayed
from .source import ArrayRows, Chunk, RowSource


def choose_rows(values: Any, mask: npt.NDArray[np.bool_]) -> Any:
    """Return the rows where `mask` is True, of an array, a sparse matrix or a source."""
    return ChosenRows(values, mask) if isinstance(values, RowSource) else values[mask]


class ChosenRows(RowSource):
    """The rows of another source where a mask is True."""

    def __init__(self, source: RowSource, mask: npt.NDArray[np.bool_]) -> None:
        self.source, self.mask, self.is_portable = source, mask, source.is_portable
        self.n_rows, self.n_features = int(mask.sum()), source.n_features

    def chunks(self, n_rows: int | None = None) -> Iterator[Chunk]:
        """Yield the chunks of the source, each with its chosen rows."""
        start = 0
        for chunk in self.source.chunks(n_rows):
            mask = self.mask[chunk.start : chunk.start + chunk.n_rows]
            size = int(mask.sum())
            if size:
                yield self.chunk(start, size, chunk.block_rows, partial(_chosen, chunk, mask))
            start += size

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64, in the given order."""
        return self.source.take(np.flatnonzero(self.mask)[np.asarray(rows, dtype=np.int64)])


def _chosen(chunk: Chunk, mask: npt.NDArray[np.bool_]) -> Iterator[Any]:
    for start, block in chunk.blocks():
        first = start - chunk.start
        yield block[mask[first : first + block.shape[0]]]


class MappedRows(RowSource):
    """The rows of another source with a function applied to every block, row by row."""

    def __init__(
        self, source: RowSource, function: Callable[[Any], Any], n_features: int | None = None
    ) -> None:
        self.source, self.function = source, function
        self.n_rows, self.n_features = source.n_rows, n_features or source.n_features

    def chunks(self, n_rows: int | None = None) -> Iterator[Chunk]:
        """Yield the chunks of the source, with the function applied when they are read."""
        for chunk in self.source.chunks(n_rows):
            yield chunk.mapped(self.function, self.n_features)

    def jobs(self, n_rows: int | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the jobs of the source, with the function applied on the worker."""
        for size, job in self.source.jobs(n_rows):
            if hasattr(job, "__dask_graph__"):
                yield size, delayed(Chunk.mapped, job, self.function, self.n_features)
            else:
                yield size, job.mapped(self.function, self.n_features)

    def total(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the sum of `function(block)` over all blocks."""
        return self.source.total(partial(_composed, self.function, function))

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these rows as float64, in the given order."""
        return np.asarray(self.function(self.source.take(rows)), dtype=np.float64)


def _composed(first: Callable[..., Any], second: Callable[..., Any], rows: FloatArray) -> Any:
    return second(first(rows))


def preprocessed_rows(source: RowSource, steps: tuple[str, ...]) -> RowSource:
    """Return the rows with steps applied by blocks; a fitted step takes one pass first."""
    for step in steps:
        name, _, argument = step.partition(":")
        if not is_fitted(step):
            source = MappedRows(source, partial(apply_steps, steps=(step,)))
        elif name == "standardize":
            source = MappedRows(source, partial(_standardized, *_mean_and_scale(source)))
        elif source.n_features <= 2000:  # the covariance takes 8 d² bytes, here 32 MB
            mean, axes = _principal_axes(source, int(float(argument)))
            source = MappedRows(source, partial(_scores, mean, axes), axes.shape[1])
        else:
            source = ArrayRows(apply_steps(source.read(), (step,)))
    return source


def _mean_and_scale(source: RowSource) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the standard deviation of each column; 1 for constant columns."""
    shift = _shift(source)
    sums, squares = source.total(partial(_squares, shift)) / source.n_rows
    variance = squares - sums**2
    # The rounding error of a constant column, as in scikit-learn.
    noise = np.finfo(np.float64).eps * source.n_rows
    constant = variance <= noise * variance + (noise * (shift + sums)) ** 2
    return shift + sums, np.where(constant, 1.0, np.sqrt(np.maximum(variance, 0.0)))


def _principal_axes(source: RowSource, n_components: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean, (d,), and the first principal axes, (d, k): O(N d²) time, 8 d² bytes."""
    require_components(n_components, source.shape)
    shift = _shift(source)
    products = source.total(partial(_products, shift))
    mean = products[-1] / source.n_rows
    _, vectors = np.linalg.eigh(products[:-1] - source.n_rows * np.outer(mean, mean))
    axes = vectors[:, ::-1][:, :n_components]
    # Signs as in scikit-learn: the entry of largest magnitude of an axis is positive.
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0)
    return shift + mean, np.ascontiguousarray(axes * np.sign(largest))


def _shift(source: RowSource) -> FloatArray:
    """Return the mean of the first rows, subtracted from all to avoid cancellation in squares."""
    return np.asarray(source.take(np.arange(min(256, source.n_rows))).mean(axis=0))


def _squares(shift: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the sums of the columns and of their squares, (2, d)."""
    rows = rows - shift
    return np.stack([rows.sum(axis=0), np.einsum("ij,ij->j", rows, rows)])


def _products(shift: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the Gram matrix of the columns, and their sums as last row, (d + 1, d)."""
    rows = rows - shift
    return np.vstack([rows.T @ rows, rows.sum(axis=0)])


def _standardized(mean: FloatArray, scale: FloatArray, rows: FloatArray) -> FloatArray:
    return (rows - mean) / scale


def _scores(mean: FloatArray, axes: FloatArray, rows: FloatArray) -> FloatArray:
    return np.asarray((rows - mean) @ axes)
