"""The Gaussian affinity of points that are read by blocks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..data.sources import RowSource
from ..engine import Engine, Threads
from .bandwidth import Scale, checked_scale
from .base import PSDOperator
from .points import few_features, padded, require_representable, squared_norms
from .sampling import reference_count, sampled_median


class CrossKernel:
    r"""Affinities of given points with any others, :math:`\exp(-\|y_j - x_i\|^2 / \sigma^2)`.

    O(r n d) time for r given and n other points, nothing but the result in memory. One thread:
    the caller splits rows over threads.

    Examples
    --------
    >>> kernel = CrossKernel(np.array([[0.0], [1.0]]), 1.0)
    >>> kernel.fill(np.array([[0.0]]), np.empty((2, 1))).round(6)
    array([[1.      ],
           [0.367879]])
    """

    def __init__(self, points: FloatArray, sigma_squared: float) -> None:
        self.points = points
        self._rate = 1.0 / sigma_squared
        self._few = few_features(points.shape[1])
        self._padded = padded(points) if self._few else points
        self._norms = np.zeros(points.shape[0]) if self._few else squared_norms(points)

    def fill(self, others: FloatArray, out: FloatArray) -> FloatArray:
        """Fill `out`, (r, n), with the affinities of the given points with n others."""
        from . import kernels

        if self._few:
            columns = np.ascontiguousarray(padded(others).T)
            kernels.products_from_points(self._padded, columns, 0, out)
            norms = np.zeros(others.shape[0])
        else:
            np.matmul(self._padded, others.T, out=out)
            norms = squared_norms(others)
        kernels.gaussian_from_products(out, self._norms, norms, self._rate)
        return out


class StreamedAffinity(PSDOperator):
    """The Gaussian affinity, Eq. 1 [eq:affkern], of points that are read by blocks.

    `landmarks` needs a sample and passes over the blocks, and those are cheap. Rows and
    products are there too; a product reads the source once per block, O(N² d) in all.

    Parameters
    ----------
    source
        The rows, float64 or to be made so, finite.
    scale
        σ² and its standard error.
    engine
        Where blocks of rows are worked on, and how far that has come; by default here.

    Examples
    --------
    >>> from unaligned.data.sources import ArrayRows
    >>> K = StreamedAffinity(ArrayRows(np.array([[0.0], [1.0]])), Scale(1.0))
    >>> K.rows([0]).round(6)
    array([[1.      , 0.367879]])
    """

    def __init__(self, source: RowSource, scale: Scale, engine: Engine | None = None) -> None:
        super().__init__(source.n_rows)
        self.source, self.engine = source, engine or Threads(1)
        self.sigma_squared, self.sigma_squared_error = scale
        self.storage = "streamed"

    def blocks(self) -> Iterator[FloatArray]:
        """Yield all points, centred, block by block."""
        return centred_blocks(self.source)

    def take(self, rows: npt.ArrayLike) -> FloatArray:
        """Return these points, centred, (len(rows), d)."""
        return self.source.take(rows) - self.source.summary.mean

    def sample(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return random points, centred, (n_rows, d)."""
        return self.take(rng.permutation(self.n_samples)[:n_rows])

    def kernel(self, points: FloatArray) -> CrossKernel:
        """Return the affinities of these points with any others."""
        return CrossKernel(points, self._scale)

    @cached_property
    def _scale(self) -> float:
        assert self.sigma_squared is not None  # set above
        return self.sigma_squared

    def diagonal(self) -> FloatArray:
        """Return N ones."""
        return np.ones(self.n_samples)

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N), in O(len(index) N d)."""
        kernel = self.kernel(self.take(index))
        parts = [
            kernel.fill(block, np.empty((kernel.points.shape[0], block.shape[0])))
            for block in self.blocks()
        ]
        out = np.concatenate(parts, axis=1)
        out[np.arange(out.shape[0]), np.asarray(index)] = 1.0
        self.entries_evaluated += out.size
        return out

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        product = np.empty((self.n_samples, block.shape[1]))
        for start in range(0, self.n_samples, 1024):
            index = np.arange(start, min(start + 1024, self.n_samples))
            product[index] = self.rows(index) @ block
        return product


def centred_blocks(source: RowSource) -> Iterator[FloatArray]:
    """Yield the rows of a source as float64 minus their mean."""
    mean = source.summary.mean
    for block in source.blocks():
        yield block.astype(np.float64) - mean


def streamed_affinity(
    source: RowSource,
    bandwidth: str | float,
    bandwidth_factor: float,
    rng: np.random.Generator,
    engine: Engine | None = None,
) -> StreamedAffinity:
    """Return the affinity of a source of rows, with its σ²: one number, a mean or a median.

    The median is sampled (see `sampling.sampled_median`): two passes over the rows.
    """
    require_representable(source.summary.peak, smallest=0.0)
    if not isinstance(bandwidth, str):
        return StreamedAffinity(source, Scale(float(bandwidth)), engine)
    if bandwidth == "mean":
        total = sum(float(squared_norms(block).sum()) for block in centred_blocks(source))
        found = Scale(2.0 * total / source.n_rows)
    else:
        count = min(reference_count(source.n_features), source.n_rows)
        chosen = rng.choice(source.n_rows, size=count, replace=False)
        references = source.take(chosen) - source.summary.mean
        median = sampled_median(lambda: centred_blocks(source), references, source.n_rows, rng)
        found = Scale(median.value, median.standard_error)
    value = checked_scale(bandwidth_factor * found.sigma_squared, bandwidth)
    return StreamedAffinity(source, Scale(value, bandwidth_factor * found.standard_error), engine)
