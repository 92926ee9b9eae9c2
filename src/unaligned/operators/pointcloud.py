"""Points prepared for pairwise computation: checked, centred, read in tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from .._check import FloatArray, IndexArray
from ..data.values import centre_of
from ..engine.threads import Workers, product
from ..errors import DegenerateDataError
from ..rows.source import dense
from .kernel import Kernel, loops_for

Points: TypeAlias = FloatArray | sparse.csr_array | sparse.csr_matrix
Bracket: TypeAlias = tuple[float, float]
Rows: TypeAlias = slice | npt.NDArray[np.intp]

# Squares of values in this range are normal numbers, with room for sums over the features.
SMALLEST, LARGEST = 1e-140, 1e140
CANCELLING = 64.0  # ‖x‖²/σ² above which products lose digits that the eigenvalues show
FILLED_BYTES = 1 << 26  # sparse points of up to this size, filled in, are dense: little memory


def padded(rows: FloatArray) -> FloatArray:
    """Return rows with zero features up to a multiple of four, as the loops expect."""
    wide = np.zeros((rows.shape[0], -(-max(rows.shape[1], 1) // 4) * 4))
    wide[:, : rows.shape[1]] = rows
    return wide


def squared_norms(rows: Any) -> FloatArray:
    """Return the squared norms of dense or sparse rows; a row's norm does not depend on others."""
    if sparse.issparse(rows):
        norms: FloatArray = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return norms
    norms = np.zeros(rows.shape[0])
    for start in range(0, rows.shape[1], 4096):
        # Beyond 8192 features the order of summation in `einsum` depends on the row's place.
        part = rows[:, start : start + 4096]
        norms += np.einsum("ij,ij->i", part, part)
    return norms


def near_pairs(
    products: FloatArray, row_norms: FloatArray, column_norms: FloatArray
) -> tuple[IndexArray, IndexArray]:
    """Return the places in a tile of inner products where cancellation shows in the distance.

    Those are the pairs with ‖x - y‖² below 1e-4 (‖x‖² + ‖y‖²). Elsewhere products give
    exp(-‖x - y‖/σ) to about 1e-13.
    """
    sums = row_norms[:, None] + column_norms
    sums *= 0.5 * (1.0 - 1e-4)
    rows, columns = np.nonzero(products >= sums)
    return rows, columns


def squared_distances_of_pairs(
    points: Any,
    first: IndexArray,
    second: IndexArray,
    *,
    others: Any = None,
    filled: bool = False,
) -> FloatArray:
    """Return ‖xᵢ - yⱼ‖² of listed pairs of dense or sparse rows, from differences: O(d) a pair.

    The second of a pair is one of `others`, by default of the same points. With `filled`,
    sparse rows give the same bits as dense ones.
    """
    # Bytes of differences at a time: dense ones stay in the cache of a core (2 to 4 times faster
    # than 16 MiB), while indexing a sparse matrix takes 0.1 ms for any number of rows.
    n_bytes = 1 << 24 if sparse.issparse(points) else 1 << 18
    step = max(1, n_bytes // (8 * max(int(points.shape[1]), 1)))
    squared, others = np.empty(first.size), points if others is None else others
    for part in (slice(a, a + step) for a in range(0, first.size, step)):
        difference = points[first[part]] - others[second[part]]
        if filled and sparse.issparse(difference):
            difference = difference.toarray()
        squared[part] = squared_norms(difference)
    return squared


class PointCloud:
    r"""Points that give affinities and squared distances tile by tile.

    With many features, :math:`\|x_i - x_j\|^2 = \|x_i\|^2 + \|x_j\|^2 - 2 x_i^T x_j` by a matrix
    product of centred points. With few features (up to 8), and where some points lie so far out
    that the products suffer from cancellation (`keep_digits`), from differences. Sparse points
    are filled in at once up to 64 MiB, above that one tile at a time; below 1 % non-zeros a
    sparse product is cheaper. Only their columns that are mostly non-zero are centred.

    Parameters
    ----------
    points
        Shape (N, d), float64, finite, dense or CSR.
    """

    _stays_sparse = False
    _centre: FloatArray  # of sparse points, (d,)

    def __init__(self, points: Points) -> None:
        self.n_samples, self.n_features = (int(size) for size in points.shape)
        if sparse.issparse(points) and 8 * self.n_samples * self.n_features <= FILLED_BYTES:
            points = dense(points)
        self.is_sparse = bool(sparse.issparse(points))
        self._given = points
        self.values: Any = (
            self._centred_sparse(points) if self.is_sparse else around_median(points)
        )
        self.by_differences = False
        if not self.is_sparse and few_features(self.n_features):
            self._use_differences()

    def keep_digits(self, scale: float) -> None:
        """Switch to differences where products are too imprecise for a kernel of this σ².

        An inner product loses eps · ‖x‖² of a squared distance. Where ‖x‖² is more than 64 σ²
        that shows in the eigenvalues (5.8 in LES for a clump at 1e8). Differences take 2 (16
        features) to 10 (thousands) times longer, far more for sparse points: those switch at
        2²⁰ σ², and `entry_error` bounds the error below.
        """
        limit = 2.0**20 if self.is_sparse else CANCELLING
        if not self.by_differences and float(self.norms.max()) > limit * scale:
            self._use_differences()

    def _use_differences(self) -> None:
        self.by_differences, self._stays_sparse = True, False
        if not self.is_sparse:  # as given: centring rounds
            self.values = np.array(self._given, dtype=np.float64, order="C")

    def entry_error(self, scale: float) -> float:
        """Bound the relative error of affinities from cancellation: 4 eps max ‖x‖² / σ².

        0 from differences and up to 8 σ², where the rounding errors of the solvers include it.
        """
        ratio = 0.0 if self.by_differences else float(self.norms.max()) / scale
        return 4.0 * float(np.finfo(np.float64).eps) * ratio if ratio > 8.0 else 0.0

    @property
    def tile_rows(self) -> int:
        """The number of rows of a tile: 1024, or what 64 MiB of filled-in sparse rows hold."""
        if self.is_sparse and not self._stays_sparse:
            return int(min(max((1 << 26) // (8 * max(self.n_features, 1)), 64), 1024))
        return 1024

    def slices(self, start: int = 0, *, width: int | None = None) -> list[slice]:
        """Return consecutive slices of `width` rows (a tile) from `start` to the last point."""
        width = width or self.tile_rows
        ends = range(start, self.n_samples, width)
        return [slice(a, min(a + width, self.n_samples)) for a in ends]

    @cached_property
    def norms(self) -> FloatArray:
        """The squared norms ‖xᵢ‖² of the centred points, (N,)."""
        return np.concatenate([squared_norms(self._rows(part)) for part in self.slices()])

    def mean_squared_distance(self) -> float:
        """Return the mean over the whole N×N matrix, 2 Σ‖xᵢ - x̄‖² / N, in O(N d)."""
        if not self.is_sparse:
            first = self.values[0]
            mean = first + (self.values - first).mean(axis=0)  # exact where all points are equal
            parts = [squared_norms(self.values[part] - mean).sum() for part in self.slices()]
            return 2.0 * float(np.sum(parts)) / self.n_samples
        # The stored entries, then the zeros of every column.
        stored, indices = self.values.data - self._centre[self.values.indices], self.values.indices
        sums = np.bincount(indices, stored, minlength=self.n_features)
        n_zeros = self.n_samples - np.bincount(indices, minlength=self.n_features)
        mean = (sums - n_zeros * self._centre) / self.n_samples
        total = ((stored - mean[indices]) ** 2).sum() + n_zeros @ (self._centre + mean) ** 2
        return 2.0 * float(total) / self.n_samples

    def sample_of_squared_distances(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Return the squared distances of `size` random pairs of different points, sorted."""
        first = rng.integers(self.n_samples, size=size)
        second = (first + rng.integers(1, self.n_samples, size=size)) % self.n_samples
        return np.sort(squared_distances_of_pairs(self.values, first, second))

    def affinities(
        self,
        rows: Rows,
        columns: slice,
        kernel: Kernel,
        workers: Workers,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return the affinities of these rows and columns, in `out` if it is given.

        O(t² (d + 1)) time for t rows and columns, 8 t² bytes.
        """
        loops = loops_for(self.n_samples)
        index = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        tile = np.empty((index.size, columns.stop - columns.start)) if out is None else out
        fill = self._products(rows, columns, tile)
        row_norms, column_norms = self._offsets[rows], self._offsets[columns]
        by_products = not (kernel.smooth or self.by_differences)

        def task(part: slice) -> None:
            fill(part)
            near = near_pairs(tile[part], row_norms[part], column_norms) if by_products else None
            kernel.of_products(loops, tile[part], row_norms[part], column_norms)
            if near is not None:
                first, second = index[part][near[0]], columns.start + near[1]
                squared = squared_distances_of_pairs(self.values, first, second)
                tile[part][near] = kernel.of_squared(squared)

        workers.over_rows(index.size, task)
        return tile

    def collect(
        self, rows: slice, columns: slice, bracket: Bracket, workers: Workers, scratch: FloatArray
    ) -> tuple[int, list[FloatArray]]:
        """Return the number of pairs i < j of a tile below the bracket, and the values within."""
        loops = loops_for(self.n_samples)
        tile = tile_of(scratch, rows, columns)
        fill = self._products(rows, columns, tile)
        row_norms, column_norms = self._offsets[rows], self._offsets[columns]

        def task(part: slice) -> tuple[int, FloatArray]:
            fill(part)
            found = np.empty(tile[part].size + 1)
            shift = rows.start + part.start + 1 - columns.start
            below, count = loops.collect_from_products(
                tile[part], row_norms[part], column_norms, shift, bracket, found
            )
            return below, found[:count].copy()

        results = workers.over_rows(tile.shape[0], task)
        return sum(below for below, _ in results), [values for _, values in results]

    @property
    def _offsets(self) -> FloatArray:
        """The squared norms that turn products into distances; 0 for differences."""
        return np.zeros(self.n_samples) if self.by_differences else self.norms

    @cached_property
    def _padded(self) -> FloatArray:
        return padded(self.values)

    @cached_property
    def _transposed(self) -> FloatArray:
        return np.ascontiguousarray(self._padded.T)

    def _products(self, rows: Rows, columns: slice, out: FloatArray) -> Callable[[slice], None]:
        """Return a task that fills rows of `out` with inner products.

        A product of matrices has its own threads: it is computed here, and the task does nothing.
        """
        if self.by_differences:
            loops = loops_for(self.n_samples)
            if self.is_sparse:
                points, start = padded(self._rows(rows)), 0
                across = np.ascontiguousarray(padded(self._rows(columns)).T)
            else:
                points, across, start = self._padded[rows], self._transposed, columns.start

            def fill(part: slice) -> None:
                loops.products_from_points(points[part], across, start, out[part])

            return fill
        if self._stays_sparse:
            out[:] = (self.values[rows] @ self.values[columns].T).toarray()
        else:
            left = self._rows(rows)
            right = left if rows is columns else self._rows(columns)
            product(left, right.T, out=out)
        return lambda part: None

    def dense_rows(self, rows: Rows) -> FloatArray:
        """Return these rows, dense."""
        taken = self.values[rows]
        if self.is_sparse:
            taken = taken.toarray()
            taken -= self._centre
        return np.asarray(taken)

    def _rows(self, rows: Rows) -> Any:
        """Return these rows: dense and centred, or sparse if very sparse."""
        return self.values[rows] if self._stays_sparse else self.dense_rows(rows)

    def _centred_sparse(self, points: Any) -> Points:
        """Return checked sparse points, and set their centre; tiles are centred later."""
        values = sparse.csr_array(points, dtype=np.float64)
        values.sum_duplicates()
        require_representable(np.abs(values.data).max(initial=0.0))
        self._stays_sparse = values.nnz < 0.01 * values.shape[0] * values.shape[1]
        self._centre = np.zeros(self.n_features)
        stored = np.bincount(values.indices, minlength=self.n_features)
        full = np.flatnonzero(2 * stored > self.n_samples)  # centred, at most twice as many
        peaks = np.abs(values[:, full]).max(axis=0).toarray().ravel() if full.size else 0.0
        self._centre[full] = centre_of(_some(values)[:, full].toarray(), peaks)
        if self._stays_sparse and full.size:
            ones = sparse.csr_array(np.ones((self.n_samples, 1)))
            values = values - ones @ sparse.csr_array(self._centre[None])
            self._centre = np.zeros(self.n_features)
        return values


def _some(points: Any) -> Any:
    """Return up to 100 random rows, the same ones at every call."""
    n = points.shape[0]
    return points[np.random.default_rng(0).choice(n, size=min(n, 100), replace=False)]


def around_median(points: FloatArray) -> FloatArray:
    """Return float64 points minus the median of some hundred rows (see `centre_of`).

    Raises if squares overflow or underflow.
    """
    values = np.array(points, dtype=np.float64, order="C")
    if values.size == 0:
        return values
    peaks = np.abs(values).max(axis=0)
    require_representable(float(peaks.max()), smallest=0.0)
    values -= centre_of(_some(values), peaks)
    require_representable(float(np.abs(values).max()))
    return values


def whitened(points: FloatArray, metric: str) -> FloatArray:
    r"""Return points whose Euclidean distances are the standardised or Mahalanobis ones.

    `seuclidean` divides every column by its standard deviation, `mahalanobis` uses the
    pseudo-inverse of the covariance: with the singular vectors U of the standardised points, the
    rows of :math:`\sqrt{N - 1}\, U`. A column or direction whose spread is only rounding is
    dropped, so a constant or collinear column changes nothing. O(N d²) time.
    """
    n_samples, eps = len(points), np.finfo(np.float64).eps
    values = around_median(points)
    values -= values.mean(axis=0)
    spread = values.std(axis=0, ddof=1)
    rounding = 4.0 * eps * np.abs(points).max(axis=0)
    varies = spread > rounding
    values, rounding = values[:, varies] / spread[varies], rounding[varies] / spread[varies]
    if metric == "seuclidean" or not values.size:
        return np.asarray(values)
    basis, sizes, _ = linalg.svd(values, full_matrices=False, check_finite=False)
    limit = max(values.shape) * eps * sizes[0] + np.sqrt(n_samples) * np.linalg.norm(rounding)
    basis = basis[:, sizes > limit]
    if basis.shape[1] >= n_samples - 1:
        raise DegenerateDataError(
            f"metric='mahalanobis' makes all {n_samples} points equally far apart: they span "
            f"{basis.shape[1]} dimensions. Use more rows or fewer columns."
        )
    return np.asarray(np.sqrt(n_samples - 1.0) * basis)


def require_representable(peak: float, *, smallest: float = SMALLEST) -> None:
    """Raise if the squares of values overflow or underflow; 0 is left to the bandwidth."""
    if peak > LARGEST or 0 < peak < smallest:
        what = "overflow" if peak > 1 else "underflow"
        raise DegenerateDataError(
            f"The squared distances between points {what}: the values reach {peak:g}, and that "
            f"must lie between {SMALLEST:g} and {LARGEST:g}. Rescale the data, all datasets alike."
        )


def few_features(n_features: int) -> bool:
    """Return whether a loop over differences is as fast as a matrix product.

    Core-time per pair in ns: 0.7 and 1.1-1.4 at d=4, 1.1-1.5 both at d=8, 3 and 1.6 at d=16.
    Differences have no cancellation.
    """
    return n_features <= 8


def tile_of(scratch: FloatArray, rows: slice, columns: slice) -> FloatArray:
    """Return the start of a flat array as a tile; allocating memory would cost more time."""
    shape = rows.stop - rows.start, columns.stop - columns.start
    return scratch[: shape[0] * shape[1]].reshape(shape)
