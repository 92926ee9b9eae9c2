"""The Gaussian affinity of points that are read by blocks."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..engine import Engine
from ..rows.reduce import Centre, RowPasses
from ..rows.source import RowSource
from ..rows.transforms import MappedRows
from .affinity import GaussianAffinity
from .bandwidth import Scale, checked_scale
from .bandwidth_sampled import reference_count, sampled_median
from .base import PSDOperator
from .pointcloud import few_features, padded, require_representable, squared_norms


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
        self.points, self.sigma_squared = points, sigma_squared
        self._few = few_features(points.shape[1])
        self._padded = padded(points) if self._few else points
        self._norms = np.zeros(points.shape[0]) if self._few else squared_norms(points)

    def of(self, points: FloatArray) -> CrossKernel:
        """Return the same kernel of other points."""
        return CrossKernel(points, self.sigma_squared)

    def fill(self, others: FloatArray, out: FloatArray) -> FloatArray:
        """Fill `out`, (r, n), with the affinities of the given points with n others."""
        from . import _loops_numba as kernels

        if self._few:
            columns = np.ascontiguousarray(padded(others).T)
            kernels.products_from_points(self._padded, columns, 0, out)
            norms = np.zeros(others.shape[0])
        else:
            np.matmul(self._padded, others.T, out=out)
            norms = squared_norms(others)
        kernels.gaussian_from_products(out, self._norms, norms, 1.0 / self.sigma_squared)
        return out


class StreamedAffinity(PSDOperator):
    """The Gaussian affinity, Eq. 1 [eq:affkern], of points that are read by blocks.

    `landmarks` needs a sample and passes over the blocks, and those are cheap. Rows and
    products are there too; a product reads the source once per block, O(N² d) in all.

    Parameters
    ----------
    passes
        Passes over the rows, which are finite.
    scale
        σ² and its standard error.

    Examples
    --------
    >>> from unaligned.rows.source import ArrayRows
    >>> K = StreamedAffinity(RowPasses(ArrayRows(np.array([[0.0], [1.0]]))), Scale(1.0))
    >>> K.rows([0]).round(6)
    array([[1.      , 0.367879]])
    """

    def __init__(self, passes: RowPasses, scale: Scale) -> None:
        super().__init__(passes.source.n_rows)
        self.passes = passes
        self.sigma_squared, self.sigma_squared_error = scale
        self.storage = "streamed"

    def sample(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return random points, centred, (n_rows, d)."""
        return self.passes.sample(n_rows, rng)

    def kernel(self, points: FloatArray) -> CrossKernel:
        """Return the affinities of these points with any others."""
        return CrossKernel(points, self.scale)

    @property
    def scale(self) -> float:
        """σ², which a Gaussian kernel always has."""
        assert self.sigma_squared is not None  # for the type checker: set above
        return self.sigma_squared

    def brought_here(self) -> GaussianAffinity:
        """Return the affinity of the same points in memory, worked out tile by tile."""
        here = GaussianAffinity(self.passes.source.read(), self.scale, storage="tiled")
        here.sigma_squared_error = self.sigma_squared_error
        return here

    def diagonal(self) -> FloatArray:
        """Return N ones."""
        return np.ones(self.n_samples)

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N), in O(len(index) N d)."""
        kernel = self.kernel(self.passes.take(index))
        parts = [
            kernel.fill(block, np.empty((kernel.points.shape[0], block.shape[0])))
            for block in self.passes.blocks()
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


def streamed_affinity(
    source: RowSource,
    bandwidth: str | float,
    bandwidth_factor: float,
    rng: np.random.Generator,
    engine: Engine | None = None,
) -> StreamedAffinity:
    """Return the affinity of a source of rows, with its σ²: one number, a mean or a median.

    The median is sampled (see `sampling.sampled_median`): two passes over the rows, where
    `engine` works.
    """
    passes = _centred(source, engine)
    if not isinstance(bandwidth, str):
        return StreamedAffinity(passes, Scale(float(bandwidth)))
    if bandwidth == "mean":
        total = passes.reduce(_square_sum, None, "mean distance")
        found = Scale(2.0 * total / source.n_rows)
    else:
        references = passes.sample(reference_count(source.n_features), rng)
        reduce = partial(passes.reduce, description="median distance")
        median = sampled_median(reduce, references, source.n_rows, rng)
        found = Scale(median.value, median.standard_error)
    value = checked_scale(bandwidth_factor * found.sigma_squared, bandwidth)
    return StreamedAffinity(passes, Scale(value, bandwidth_factor * found.standard_error))


def _centred(source: RowSource, engine: Engine | None) -> RowPasses:
    """Return passes over rows that can be squared; changed rows are averaged where they are."""
    if isinstance(source, MappedRows):
        unknown = Centre(np.zeros(source.n_features), 0.0)
        sums, peak = RowPasses(source, engine, unknown).first(_moments, None, "mean")
        centre = Centre(sums / source.n_rows, peak)
    else:
        centre = Centre.of(source)
    require_representable(centre.peak, smallest=0.0)
    return RowPasses(source, engine, centre)


class _Moments(NamedTuple):
    """The sum of rows, (d,), and the largest magnitude."""

    sums: FloatArray
    peak: float

    def __add__(self, other: _Moments) -> _Moments:  # type: ignore[override]
        return _Moments(self.sums + other.sums, max(self.peak, other.peak))


def _moments(points: FloatArray, _start: int, _shared: None) -> _Moments:
    return _Moments(points.sum(axis=0), float(np.abs(points).max()))


def _square_sum(points: FloatArray, _start: int, _shared: None) -> float:
    return float(squared_norms(points).sum())
