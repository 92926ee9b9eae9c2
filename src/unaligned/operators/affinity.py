"""Affinities of points (dense, tiled, streamed), of distances, and given ones."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist

from .. import _check
from .._check import FloatArray
from ..defaults import SMALL_ROWS
from ..engine import Engine
from ..engine.memory import storage_for
from ..engine.threads import Workers, own_threads, product
from ..errors import InputError
from ..rows.reduce import RowPasses
from ..rows.source import RowSource
from .bandwidth import estimate_scale
from .base import CHECKABLE, MatrixOperator, PSDOperator, negative_share
from .kernel import (
    BOOLEAN_METRICS,
    KERNELS,
    WHITENING_METRICS,
    Kernel,
    KernelSettings,
    Metric,
    is_euclidean,
    loops_for,
)
from .knn import neighbour_affinity
from .pointcloud import (
    CANCELLING,
    PointCloud,
    Points,
    few_features,
    near_pairs,
    padded,
    require_representable,
    squared_distances_of_pairs,
    squared_norms,
    tile_of,
    whitened,
)


class _PointAffinity(PSDOperator):
    """What affinities of points share: a kernel and a unit diagonal."""

    def __init__(
        self, n_samples: int, kernel: Kernel, sigma_squared_error: float, storage: str
    ) -> None:
        super().__init__(n_samples)
        self.kernel = kernel
        self.sigma_squared = kernel.sigma_squared
        self.sigma_squared_error = sigma_squared_error
        self.storage = storage

    def diagonal(self) -> FloatArray:
        """Return N ones."""
        return np.ones(self.n_samples)


class KernelAffinity(_PointAffinity):
    r"""The affinity of points under a kernel, Eq. 1 [eq:affkern], :math:`K_{ij} = k(x_i, x_j)`.

    The points are (N, d), float64, finite, dense or CSR; those that are used are centred, if
    dense. Rows are computed from the points when asked for. A product with b vectors takes
    O(N² (d + b)) time. With `dense` storage the first product builds the matrix, 8 N² bytes,
    and later ones take O(N² b). With `tiled` storage every product computes the kernel again,
    each pair once for both halves of the matrix, in O(N b) memory and one tile (16 MB), as in
    Section 4.2.2.
    """

    def __init__(
        self,
        points: Points | PointCloud,
        kernel: Kernel,
        *,
        sigma_squared_error: float = 0.0,
        storage: str = "dense",
    ) -> None:
        self._cloud = points if isinstance(points, PointCloud) else PointCloud(points)
        _check.one_of("storage", storage, ("dense", "tiled"))
        super().__init__(self._cloud.n_samples, kernel, sigma_squared_error, storage)
        self._cloud.keep_digits(kernel.sigma_squared)
        self.entry_error = self._cloud.entry_error(kernel.sigma_squared)
        self.points = self._cloud.values

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        if self.storage == "tiled":
            return self._tiled_product(np.asarray(block, dtype=np.float64, order="F"))
        return product(self._matrix, block)

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N), in O(len(index) N d)."""
        index = np.asarray(index)
        if "_matrix" in vars(self):
            return np.asarray(self._matrix[index])
        out = np.empty((index.size, self.n_samples))
        cloud = self._cloud
        with Workers() as workers:
            if not cloud.is_sparse:
                whole = slice(0, self.n_samples)
                cloud.affinities(index, whole, self.kernel, workers, out)
            else:  # filled in tile by tile
                for start in range(0, index.size, cloud.tile_rows):
                    rows = slice(start, start + cloud.tile_rows)
                    for columns in cloud.slices():
                        tile = cloud.affinities(index[rows], columns, self.kernel, workers)
                        out[rows, columns] = tile
        out[np.arange(index.size), index] = 1.0
        self.entries_evaluated += out.size
        return out

    def sample(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return random points, dense and centred, (n_rows, d)."""
        chosen = rng.choice(self.n_samples, size=min(n_rows, self.n_samples), replace=False)
        return self._cloud.dense_rows(chosen)

    def to_dense(self) -> FloatArray:
        """Return the whole matrix as a new array: a copy, or built for the caller."""
        return self._matrix.copy() if self.storage == "dense" else self._build()

    @cached_property
    def _matrix(self) -> FloatArray:
        return self._build()

    def _build(self) -> FloatArray:
        """Return the whole matrix: the upper triangle in panels, mirrored as it grows."""
        matrix = np.empty((self.n_samples, self.n_samples))
        height = 512  # rows of a panel
        width = self._cloud.tile_rows if self._cloud.is_sparse else self.n_samples
        scratch = np.empty(min(height, self.n_samples) * min(width, self.n_samples))
        with Workers() as workers:
            for rows in self._cloud.slices(width=height):
                for columns in self._cloud.slices(rows.start, width=width):
                    tile = self._tile(rows, columns, workers, scratch)
                    _place(tile, rows, columns, matrix, workers)
        np.fill_diagonal(matrix, 1.0)
        return matrix

    def _tiled_product(self, block: FloatArray) -> FloatArray:
        """Return K @ block; a tile above the diagonal also serves its mirror image."""
        total = np.zeros((self.n_samples, block.shape[1]), order="F")
        width = self._cloud.tile_rows if self._cloud.is_sparse else 2048  # columns of a tile
        scratch = np.empty(min(self._cloud.tile_rows, self.n_samples) * min(width, self.n_samples))
        with own_threads(), Workers() as workers:
            for rows in self._cloud.slices():
                corner = slice(rows.start, rows.stop)
                tile = self._tile(rows, corner, workers, scratch)
                np.fill_diagonal(tile, 1.0)
                total[rows] += workers.product(tile, block[rows])
                for columns in self._cloud.slices(rows.stop, width=width):
                    tile = self._tile(rows, columns, workers, scratch)
                    total[rows] += workers.product(tile, block[columns])
                    total[columns] += workers.inner(tile, block[rows])
        return total

    def _tile(
        self, rows: slice, columns: slice, workers: Workers, scratch: FloatArray
    ) -> FloatArray:
        tile = tile_of(scratch, rows, columns)
        self.entries_evaluated += tile.size
        return self._cloud.affinities(rows, columns, self.kernel, workers, tile)


def _place(
    tile: FloatArray, rows: slice, columns: slice, matrix: FloatArray, workers: Workers
) -> None:
    """Write a tile of the upper triangle and its mirror image into the matrix."""
    if columns.start == rows.start:
        # BLAS rounds the two halves of a square product differently; the matrix is symmetric.
        corner = tile[:, : rows.stop - rows.start]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T

    def task(part: slice) -> None:
        here = slice(columns.start + part.start, columns.start + part.stop)
        matrix[rows, here] = tile[:, part]
        matrix[here, rows] = tile[:, part].T

    workers.over_rows(columns.stop - columns.start, task)


class CrossKernel:
    r"""Affinities :math:`k(y_j, x_i)` of given points with any others.

    O(r n d) time for r given and n other points, no memory beyond the result. One thread: the
    caller splits rows over threads. With many features by products of points minus `centre`, by
    default the median of the given ones, except for points far out (see `keep_digits`).
    """

    def __init__(
        self, points: FloatArray, kernel: Kernel, centre: FloatArray | None = None
    ) -> None:
        self.points, self.kernel = points, kernel
        self._few = few_features(points.shape[1])
        self._centre = np.median(points, axis=0) if centre is None else centre
        self._given = padded(points) if self._few else points - self._centre
        self._norms = np.zeros(points.shape[0]) if self._few else squared_norms(self._given)
        self._limit = CANCELLING * kernel.sigma_squared
        self._far = np.flatnonzero(self._norms > self._limit)

    def of(self, points: FloatArray) -> CrossKernel:
        """Return the same kernel of other points."""
        return CrossKernel(points, self.kernel, self._centre)

    def fill(self, others: FloatArray, out: FloatArray) -> FloatArray:
        """Fill `out`, (r, n), with the affinities of the given points with n others."""
        loops = loops_for(None)
        if self._few:
            columns = np.ascontiguousarray(padded(others).T)
            loops.products_from_points(self._given, columns, 0, out)
            self.kernel.of_products(loops, out, self._norms, np.zeros(others.shape[0]))
            return out
        centred = others - self._centre
        np.matmul(self._given, centred.T, out=out)
        norms = squared_norms(centred)
        near = None if self.kernel.smooth else near_pairs(out, self._norms, norms)
        self.kernel.of_products(loops, out, self._norms, norms)
        if near is not None:
            squared = squared_distances_of_pairs(self.points, *near, others=others)
            out[near] = self.kernel.of_squared(squared)
        far = np.flatnonzero(norms > self._limit)
        if far.size:
            out[:, far] = self.kernel.of_squared(cdist(self.points, others[far], "sqeuclidean"))
        if self._far.size:
            squared = cdist(self.points[self._far], others, "sqeuclidean")
            out[self._far] = self.kernel.of_squared(squared)
        return out


class StreamedAffinity(_PointAffinity):
    """The affinity, Eq. 1 [eq:affkern], of points that are read by blocks.

    `landmarks` needs a sample and passes over the blocks, and those are cheap. Rows and
    products are available too; a product reads the source once per 1024 rows, O(N² d) in all.
    """

    def __init__(
        self, passes: RowPasses, kernel: Kernel, *, sigma_squared_error: float = 0.0
    ) -> None:
        super().__init__(passes.source.n_rows, kernel, sigma_squared_error, "streamed")
        self.passes = passes

    def sample(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return random points, centred, (n_rows, d)."""
        return self.passes.sample(n_rows, rng)

    def in_memory(self) -> KernelAffinity:
        """Return the tiled affinity of the same points, read into memory."""
        points, error = self.passes.source.read(), self.sigma_squared_error
        return KernelAffinity(points, self.kernel, sigma_squared_error=error, storage="tiled")

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N), in O(len(index) N d)."""
        cross = CrossKernel(self.passes.take(index), self.kernel)
        parts = [
            cross.fill(block, np.empty((cross.points.shape[0], block.shape[0])))
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


def point_affinity(
    points: Points, settings: KernelSettings, rng: np.random.Generator | None = None
) -> PSDOperator:
    """Return the affinity of points, (N, d), dense or CSR, with its `sigma_squared`.

    Metrics other than `euclidean`, `seuclidean` and `mahalanobis` go through their N×N matrix;
    `n_neighbors` gives a sparse matrix. `rng` draws pairs where there are too many for an exact
    median.
    """
    family = KERNELS[settings.kernel]
    if settings.metric in WHITENING_METRICS and not sparse.issparse(points):
        points = whitened(points, str(settings.metric))
    elif not is_euclidean(settings.metric):
        definite = settings.metric in family.definite_metrics
        return _affinity_of(pairwise(points, settings.metric), settings, definite=definite)
    cloud = PointCloud(points)
    scale, error = estimate_scale(cloud, settings, rng)
    if settings.n_neighbors is not None:
        return neighbour_affinity(points, settings.n_neighbors, family(scale))
    small = settings.memory_limit is None and cloud.n_samples <= SMALL_ROWS
    storage = "dense" if small else storage_for(cloud.n_samples, settings.memory_limit)
    return KernelAffinity(cloud, family(scale), sigma_squared_error=error, storage=storage)


def distance_affinity(distances: FloatArray, settings: KernelSettings) -> PSDOperator:
    """Return the affinity of a matrix of distances, (N, N), with its `sigma_squared`.

    Whether distances are Euclidean is not known, and the bounds need less: that this very
    matrix is positive semi-definite. Up to N = 5000 that is tested by a Cholesky factorisation
    (see `negative_share`); above, and where the test fails, the affinity counts as indefinite.
    """
    return _affinity_of(np.array(distances, dtype=np.float64), settings, definite=None)


def given_affinity(weights: Any) -> PSDOperator:
    """Return a given affinity, (N, N), dense or sparse, as an operator.

    A dense one of up to N = 5000 is tested for positivity as distances are; a sparse one
    counts as indefinite, as a factorisation could fill it in.
    """
    share = np.inf if sparse.issparse(weights) else _tested_share(weights)
    return MatrixOperator(weights, negative_share=share)


def _tested_share(matrix: FloatArray) -> float:
    """Return `negative_share`, inf for matrices too large to test."""
    return negative_share(matrix) if matrix.shape[0] <= CHECKABLE else np.inf


def _affinity_of(
    distances: FloatArray, settings: KernelSettings, *, definite: bool | None
) -> PSDOperator:
    """Return the affinity of distances, which are overwritten; `definite=None` tests it."""
    require_representable(float(np.abs(distances).max(initial=0.0)))
    distances *= distances
    np.fill_diagonal(distances, 0.0)
    kernel = KERNELS[settings.kernel](estimate_scale(distances, settings).sigma_squared)
    if settings.n_neighbors is not None:
        return neighbour_affinity(distances, settings.n_neighbors, kernel, precomputed=True)
    matrix = kernel.of_squared(distances)
    share = _tested_share(matrix) if definite is None else 0.0
    affinity = MatrixOperator(matrix, definite=definite is not False, negative_share=share)
    affinity.sigma_squared = kernel.sigma_squared
    affinity.entries_evaluated = matrix.size
    return affinity


def pairwise(points: Points, metric: Metric) -> FloatArray:
    """Return the N×N matrix of distances under a metric of scikit-learn or a callable.

    O(N²) evaluations and 8 N² bytes. The result is symmetric; NaN, infinite or negative values
    raise.
    """
    from sklearn.metrics import pairwise_distances

    values: Any = points
    if metric in BOOLEAN_METRICS and not sparse.issparse(points):
        values = np.asarray(points) != 0
    try:
        distances = np.array(pairwise_distances(values, metric=metric), dtype=np.float64)
    except (TypeError, ValueError, np.linalg.LinAlgError) as error:
        raise InputError(
            f"metric={metric!r} cannot be computed for points given as "
            f"{_check.shape_of(points)}: {error} Choose another metric or change the points."
        ) from error
    np.fill_diagonal(distances, 0.0)
    bad = np.argwhere(~(np.isfinite(distances) & (distances >= -1e-12)))  # rounding may go below 0
    if bad.size:
        i, j = bad[0]
        raise InputError(
            f"metric={metric!r} gives {distances[i, j]:g} for rows {i} and {j}; a distance must "
            "be finite and at least 0. Choose another metric or leave these rows out."
        )
    distances = 0.5 * (distances + distances.T)
    return np.maximum(distances, 0.0, out=distances)


def streamed_affinity(
    source: RowSource,
    settings: KernelSettings,
    rng: np.random.Generator,
    engine: Engine | None = None,
) -> StreamedAffinity:
    """Return the affinity of a source of rows, with its `sigma_squared`.

    A median is sampled (see `bandwidth_sampled`), in two passes over the rows by `engine`.
    """
    passes = RowPasses(source, engine)
    require_representable(passes.peak, smallest=0.0)
    scale, error = estimate_scale(passes, settings, rng)
    kernel = KERNELS[settings.kernel](scale)
    return StreamedAffinity(passes, kernel, sigma_squared_error=error)
