"""From points, distances or given weights to an affinity, and the settings of that way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.spatial.distance import squareform

from .. import _check
from .._check import FloatArray
from ..engine.memory import storage_for
from ..engine.threads import Workers
from ..errors import InputError, InputTypeError
from .bandwidth import estimate_scale, scale_from_condensed
from .base import MatrixOperator, PSDOperator, SparseOperator
from .knn import neighbour_affinity
from .metric import DEFINITE_METRICS, METRICS, Metric, is_euclidean, pairwise
from .pointcloud import PointCloud, Points, require_representable, tile_of

_PANEL = 512  # rows worked out together when the whole matrix is built
_TILE_COLUMNS = 2048


class GaussianAffinity(PSDOperator):
    r"""The Gaussian affinity of points, Eq. 1 [eq:affkern].

    .. math:: K_{ij} = \exp(-\|x_i - x_j\|^2 / \sigma^2)

    Rows are worked out from the points when asked for. A product with b vectors takes
    O(N² (d + b)) time. With `dense` storage the first product builds the matrix, 8 N² bytes,
    and later ones take O(N² b). With `tiled` storage every product works the kernel out again,
    each pair once for both halves of the matrix, in O(N b) memory and one tile (16 MB), as in
    Section 4.2.2.

    Parameters
    ----------
    points
        Shape (N, d), float64, finite, dense or CSR; or a `PointCloud` of them.
    sigma_squared
        The kernel scale σ².
    storage
        `dense` or `tiled`.

    Attributes
    ----------
    points
        The points as they are used: centred, if they are dense.

    Examples
    --------
    >>> K = GaussianAffinity(np.array([[0.0], [1.0]]), 1.0, storage="tiled")
    >>> (K @ np.array([1.0, 0.0])).round(6)
    array([1.      , 0.367879])
    >>> K.entries_evaluated
    4
    """

    def __init__(
        self, points: Points | PointCloud, sigma_squared: float, *, storage: str = "dense"
    ) -> None:
        self._cloud = points if isinstance(points, PointCloud) else PointCloud(points)
        super().__init__(self._cloud.n_samples)
        self._cloud.keep_digits(sigma_squared)
        self.points = self._cloud.values
        self.sigma_squared = sigma_squared
        self.storage = _check.one_of("storage", storage, ("dense", "tiled"))
        self._rate = 1.0 / sigma_squared

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        if self.storage == "tiled":
            return self._tiled_product(np.asarray(block, dtype=np.float64, order="C"))
        product: FloatArray = self._matrix @ block
        return product

    def diagonal(self) -> FloatArray:
        """Return N ones."""
        return np.ones(self.n_samples)

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N), in O(len(index) N d)."""
        index = np.asarray(index)
        out = np.empty((index.size, self.n_samples))
        step = self._cloud.tile_rows if self._cloud.is_sparse else max(index.size, 1)
        with Workers() as workers:
            for start in range(0, index.size, step):
                self._fill(index[start : start + step], out[start : start + step], workers)
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

    def _fill(self, index: npt.NDArray[np.intp], out: FloatArray, workers: Workers) -> None:
        """Fill whole rows; sparse points, which fill in per tile, take them tile by tile."""
        if not self._cloud.is_sparse:
            everything = slice(0, self.n_samples)
            self._cloud.gaussian(index, everything, self._rate, workers, out)
            return
        for columns in self._cloud.slices():
            out[:, columns] = self._cloud.gaussian(index, columns, self._rate, workers)

    def _build(self) -> FloatArray:
        """Return the whole matrix: the upper triangle in panels, mirrored as it grows."""
        matrix = np.empty((self.n_samples, self.n_samples))
        width = self._cloud.tile_rows if self._cloud.is_sparse else self.n_samples
        scratch = np.empty(min(_PANEL, self.n_samples) * min(width, self.n_samples))
        with Workers() as workers:
            for rows in self._cloud.slices(width=_PANEL):
                for columns in self._cloud.slices(rows.start, width=width):
                    tile = tile_of(scratch, rows, columns)
                    self._cloud.gaussian(rows, columns, self._rate, workers, tile)
                    self.entries_evaluated += tile.size
                    _place(tile, rows, columns, matrix, workers)
        np.fill_diagonal(matrix, 1.0)
        return matrix

    def _tiled_product(self, block: FloatArray) -> FloatArray:
        """Return K @ block; a tile above the diagonal also serves its mirror image."""
        product = np.zeros((self.n_samples, block.shape[1]))
        width = self._cloud.tile_rows if self._cloud.is_sparse else _TILE_COLUMNS
        scratch = np.empty(min(self._cloud.tile_rows, self.n_samples) * min(width, self.n_samples))
        with Workers() as workers:
            for rows in self._cloud.slices():
                corner = slice(rows.start, rows.stop)
                tile = self._tile(rows, corner, workers, scratch)
                np.fill_diagonal(tile, 1.0)
                product[rows] += tile @ block[rows]
                for columns in self._cloud.slices(rows.stop, width=width):
                    tile = self._tile(rows, columns, workers, scratch)
                    product[rows] += tile @ block[columns]
                    product[columns] += tile.T @ block[rows]
        return product

    def _tile(
        self, rows: slice, columns: slice, workers: Workers, scratch: FloatArray
    ) -> FloatArray:
        tile = tile_of(scratch, rows, columns)
        self.entries_evaluated += tile.size
        return self._cloud.gaussian(rows, columns, self._rate, workers, tile)


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


# Up to here a Cholesky factorisation (N³/3 operations) takes well under a second.
CHECKABLE = 5000


@dataclass(frozen=True)
class KernelSettings:
    """How points become an affinity.

    Attributes
    ----------
    bandwidth
        `"median"` or `"mean"` of the squared distances, or a number, which is σ² itself.
    bandwidth_factor
        σ² = bandwidth_factor · median(d²); the paper takes 2.
    metric
        `"euclidean"`, any metric of scikit-learn's `pairwise_distances`, or a callable.
    n_neighbors
        Keep only the affinities to the nearest neighbours, a point itself included; None
        keeps all.
    memory_limit
        How many bytes the matrix of a dense affinity may take; above, it works in tiles. None
        stands for a quarter of the available memory.
    robust
        Set gross outliers aside first (see `robust.outlying_rows`); points and the Euclidean
        metric only.

    Examples
    --------
    >>> KernelSettings(metric="cosin")
    Traceback (most recent call last):
    ...
    unaligned.errors.InputError: metric='cosin' is not known. Did you mean 'cosine'? ...
    """

    bandwidth: str | float = "median"
    bandwidth_factor: float = 2.0
    metric: Metric = "euclidean"
    n_neighbors: int | None = None
    memory_limit: int | None = None
    robust: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            _check.one_of("bandwidth", self.bandwidth, ("median", "mean"))
        else:
            _check.real_number("bandwidth", self.bandwidth, minimum=0.0, strict=True)
        _check.real_number("bandwidth_factor", self.bandwidth_factor, minimum=0.0, strict=True)
        _check_metric(self.metric)
        _check.optional_int("n_neighbors", self.n_neighbors, minimum=2)
        _check.optional_int("memory_limit", self.memory_limit, minimum=0)
        if _check.flag("robust", self.robust) and not is_euclidean(self.metric):
            raise InputError(
                f"robust=True works with metric='euclidean', not with metric={self.metric!r}. "
                "Leave one of them out."
            )


def _check_metric(metric: object) -> None:
    if metric == "precomputed":
        raise InputError(
            "metric='precomputed' is not how distances are given here. "
            "Make the dataset with kind='distances'."
        )
    if isinstance(metric, str):
        _check.one_of("metric", metric, METRICS)
    elif not callable(metric):
        raise InputTypeError(
            f"metric={metric!r} must be the name of a metric or a callable of two rows, "
            f"not {type(metric).__name__}."
        )


def point_affinity(
    points: Points, settings: KernelSettings, rng: np.random.Generator | None = None
) -> PSDOperator:
    """Return the affinity of points, (N, d), dense or CSR, with its `sigma_squared`.

    Gaussian of the Euclidean distance (Eq. 1) unless the settings say otherwise: another
    metric goes through its N×N matrix of distances, `n_neighbors` gives a sparse matrix. `rng`
    draws pairs where there are too many for an exact median.

    Examples
    --------
    >>> affinity = point_affinity(np.array([[0.0], [1.0], [3.0]]), KernelSettings())
    >>> affinity.sigma_squared, affinity.definite
    (2.0, True)
    """
    if is_euclidean(settings.metric):
        cloud = PointCloud(points)
        scale, error = estimate_scale(cloud, settings.bandwidth, settings.bandwidth_factor, rng)
        if settings.n_neighbors is not None:
            return neighbour_affinity(points, settings.n_neighbors, scale)
        storage = storage_for(cloud.n_samples, settings.memory_limit)
        affinity = GaussianAffinity(cloud, scale, storage=storage)
        affinity.sigma_squared_error = error
        return affinity
    distances = pairwise(points, settings.metric)
    return _gaussian_of(distances, settings, definite=settings.metric in DEFINITE_METRICS)


def distance_affinity(distances: FloatArray, settings: KernelSettings) -> PSDOperator:
    """Return the Gaussian affinity of a matrix of distances, (N, N), with `sigma_squared`.

    Whether the distances are Euclidean nobody says, and what the bounds need is less: that
    this very matrix is positive semi-definite. Up to N = 5000 that is tested by a Cholesky
    factorisation (see `is_positive`); above, and where the test fails, the affinity counts as
    indefinite. Give the points instead, where there are any.
    """
    return _gaussian_of(np.array(distances, dtype=np.float64), settings, definite=None)


def given_affinity(weights: Any) -> PSDOperator:
    """Return a given affinity, (N, N), dense or sparse, as an operator.

    A dense one of up to N = 5000 is tested for positivity as distances are; a sparse one
    counts as indefinite: a factorisation could fill it in.
    """
    if sparse.issparse(weights):
        return SparseOperator(weights, definite=False)
    return MatrixOperator(weights, definite=is_positive(weights))


def is_positive(matrix: FloatArray) -> bool:
    r"""Say whether a symmetric matrix is shown to be positive semi-definite up to rounding.

    A Cholesky factorisation of :math:`A + \delta I` that runs through shows that no eigenvalue
    is below :math:`-2\delta`; :math:`\delta = N \epsilon \max_i A_{ii}` is what rounding does to
    the factorisation itself, and so the smallest shift at which a singular A passes. N³/3
    operations, a quarter of an eigenvalue computation; above N = 5000 it says False unseen.

    Examples
    --------
    >>> is_positive(np.ones((3, 3))), is_positive(np.array([[1.0, 2.0], [2.0, 1.0]]))
    (True, False)
    """
    n_samples = matrix.shape[0]
    if n_samples > CHECKABLE:
        return False
    largest = float(np.abs(np.diagonal(matrix)).max())
    return _factorises(matrix, n_samples * np.finfo(np.float64).eps * largest)


def require_positive(matrix: FloatArray, label: str) -> None:
    """Refuse a matrix of kind `spd` with an eigenvalue below -1e-10 of its trace."""
    with np.errstate(over="ignore"):
        trace = float(np.trace(matrix))
    if not np.isfinite(trace):
        raise InputError(f"{label} of kind 'spd' has a trace that overflows. Rescale it.")
    if not _factorises(matrix, 1e-10 * max(trace, np.finfo(np.float64).tiny)):
        raise InputError(
            f"{label} of kind 'spd' has negative eigenvalues. "
            "For a similarity matrix that is not positive use kind='affinity'."
        )


def _factorises(matrix: FloatArray, shift: float) -> bool:
    """Whether a Cholesky factorisation of A + shift · I runs through."""
    shifted = np.array(matrix, dtype=np.float64, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    return int(linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)[1]) == 0


def _gaussian_of(
    distances: FloatArray, settings: KernelSettings, *, definite: bool | None
) -> PSDOperator:
    """Turn distances into exp(-d²/σ²), overwriting them; with `n_neighbors`, a sparse matrix."""
    n_samples = distances.shape[0]
    require_representable(float(np.abs(distances).max(initial=0.0)))
    distances *= distances
    condensed = squareform(distances, checks=False)
    scale = scale_from_condensed(
        condensed, n_samples, settings.bandwidth, settings.bandwidth_factor
    )
    if settings.n_neighbors is not None:
        return neighbour_affinity(distances, settings.n_neighbors, scale, precomputed=True)
    distances /= -scale
    np.fill_diagonal(distances, 0.0)
    np.exp(distances, out=distances)
    affinity = MatrixOperator(
        distances, definite=is_positive(distances) if definite is None else definite
    )
    affinity.sigma_squared = scale
    affinity.entries_evaluated = n_samples * n_samples
    return affinity
