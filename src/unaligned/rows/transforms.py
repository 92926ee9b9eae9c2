"""Sources made from others: chosen rows, and rows with preprocessing applied by blocks."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..data.preprocess import FittedStep, apply_steps, is_fitted, require_components
from ..defaults import COVARIANCE_COLUMNS
from .dask import delayed
from .source import Chunk, RowSource


def choose_rows(values: Any, mask: npt.NDArray[np.bool_]) -> Any:
    """Return the rows where `mask` is True, of an array, a sparse matrix or a source."""
    return ChosenRows(values, mask) if isinstance(values, RowSource) else values[mask]


def choose_columns(values: Any, columns: npt.NDArray[np.intp]) -> Any:
    """Return these columns, in this order, of an array, a sparse matrix or a source."""
    if isinstance(values, RowSource):
        return MappedRows(values, partial(_columns_of, columns), columns.size)
    return values[:, columns]


def _columns_of(columns: npt.NDArray[np.intp], block: Any) -> Any:
    return block[:, columns]


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


class JoinedRows(RowSource):
    """The rows of several sources with the same columns, one source after the other."""

    def __init__(self, sources: Sequence[RowSource]) -> None:
        self.sources, self.is_portable = sources, all(source.is_portable for source in sources)
        self.n_rows = sum(source.n_rows for source in sources)
        self.n_features = sources[0].n_features

    def chunks(self, n_rows: int | None = None) -> Iterator[Chunk]:
        """Yield the chunks of all sources."""
        start = 0
        for source in self.sources:
            for chunk in source.chunks(n_rows):
                yield chunk._replace(start=start + chunk.start)
            start += source.n_rows

    def total(self, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the sum of `function(block)` over all blocks."""
        return reduce(add, (source.total(function) for source in self.sources))


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
        source = _mapped(source, fitted_to(source, step) if is_fitted(step) else step)
    return source


def fit_steps(
    source: RowSource, steps: tuple[str, ...], rows: str, *, centred: bool = True
) -> tuple[str, ...]:
    """Return the steps, with those that are fitted fitted to a source.

    `rows` names the source in their texts; `standardize` subtracts nothing if not `centred`.
    """
    done = []
    for step in steps:
        if is_fitted(step):
            found = fitted_to(source, step)
            offset = found.offset if centred or found.factor.ndim == 2 else 0.0 * found.offset
            step = FittedStep(f"{step}@{rows}", offset, found.factor)
        done.append(step)
        source = _mapped(source, step)
    return tuple(done)


def fitted_to(source: RowSource, step: str) -> FittedStep:
    """Return `standardize` or `pca:k` fitted to all rows of a source."""
    name, _, argument = step.partition(":")
    if name == "standardize":
        return FittedStep(step, *_mean_and_scale(source))
    return FittedStep(step, *_principal_axes(source, int(float(argument))))


def _mapped(source: RowSource, step: str) -> MappedRows:
    width = step.factor.shape[-1] if isinstance(step, FittedStep) else None
    return MappedRows(source, partial(apply_steps, steps=(step,)), width)


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
    """Return the mean, (d,), and the first principal axes, (d, k).

    Up to 4000 columns from their covariance: one pass, O(N d²) time, 8 d² bytes. Beyond, by five
    passes of a randomised subspace iteration (Halko, Martinsson and Tropp, 2011) on l = 2k + 10
    directions: O(N d l) time, 16 d l bytes.
    """
    require_components(n_components, source.shape)
    shift, (n, d) = _shift(source), source.shape
    basis: FloatArray | None = None
    if d > COVARIANCE_COLUMNS:
        width = min(2 * n_components + 10, d)
        basis = np.linalg.qr(np.random.default_rng(0).standard_normal((d, width)))[0]
        for _ in range(4):
            products = source.total(partial(_products, shift, basis))
            basis = np.linalg.qr(_covariance(products, n, basis))[0]
    products = source.total(partial(_products, shift, basis))
    mean, covariance = products[:, -1] / n, _covariance(products, n, basis)
    axes = np.linalg.eigh(covariance if basis is None else basis.T @ covariance)[1]
    axes = axes[:, ::-1][:, :n_components]
    axes = axes if basis is None else basis @ axes
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


def _products(shift: FloatArray, basis: FloatArray | None, rows: FloatArray) -> FloatArray:
    """Return XᵀX, or XᵀXQ of a basis Q, (d, l), beside the sums of columns: (d, l + 1)."""
    rows = rows - shift
    return np.column_stack([rows.T @ (rows if basis is None else rows @ basis), rows.sum(axis=0)])


def _covariance(products: FloatArray, n_rows: int, basis: FloatArray | None) -> FloatArray:
    """Return N times the covariance, (d, d), or its product with a basis, (d, l)."""
    sums = products[:, -1]
    across = sums if basis is None else sums @ basis
    return products[:, :-1] - np.outer(sums, across) / n_rows
