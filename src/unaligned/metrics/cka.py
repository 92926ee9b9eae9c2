"""Centred kernel alignment (CKA) of two representations of the same samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..data.facts import Facts
from ..engine.threads import Workers
from ..errors import DegenerateDataError
from ..operators.kernel import Gaussian
from ..operators.pointcloud import PointCloud, squared_norms
from .base import DataDescriptor, DataDistance, centred, dense_points
from .mmd import gaussian_kernel, median_width, tiles

_TILE_ROWS = 1024  # tiles of 8 MB


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """A kernel matrix read in tiles: linear, or Gaussian if there is a `cloud`."""

    points: FloatArray  # (N, d), centred if linear
    cloud: PointCloud | None = None
    gaussian: Gaussian | None = None
    # The Gaussian kernel at the median distance, subtracted from it. Centring removes a constant
    # anyway; this avoids cancellation in wide kernels, which are nearly 1 everywhere.
    level: float = 0.0
    hollow: bool = False  # set the diagonal of a Gaussian kernel to 0, for the unbiased HSIC
    sums: FloatArray | None = None  # of rows, without the diagonal if debiased; None if all 0
    diagonal: FloatArray | None = None  # of a debiased linear kernel
    square: float | None = None  # Σᵢⱼ Kᵢⱼ² of a Gaussian kernel

    def tile(self, rows: slice, columns: slice, workers: Workers) -> FloatArray:
        """Return one tile of the matrix."""
        if self.cloud is None or self.gaussian is None:
            return np.asarray(self.points[rows] @ self.points[columns].T)
        tile = self.cloud.affinities(rows, columns, self.gaussian, workers)
        tile -= self.level
        if self.hollow and rows == columns:
            np.fill_diagonal(tile, 0.0)
        return tile

    def inner(self, other: KernelMatrix) -> float:
        r"""Return Σᵢⱼ Kᵢⱼ Lᵢⱼ: :math:`\|X^T Y\|_F^2` for linear kernels of few features."""
        (n, d), e = self.points.shape, other.points.shape[1]
        if other is self and self.square is not None:
            return self.square
        if self.cloud is None and d * e <= n * (d + e):
            product = self.points.T @ other.points
            return float(np.vdot(product, product))
        total = 0.0
        with Workers() as workers:
            for rows, columns, count in tiles(range(n), range(n), _TILE_ROWS):
                left = self.tile(rows, columns, workers)
                right = left if other is self else other.tile(rows, columns, workers)
                total += count * float(np.vdot(left, right))
        return total


@dataclass(frozen=True)
class CKA(DataDistance):
    r"""One minus the centred kernel alignment of two representations of the same samples.

    .. math:: d = 1 - \frac{\mathrm{HSIC}(K, L)}
              {\sqrt{\mathrm{HSIC}(K, K)\, \mathrm{HSIC}(L, L)}},
              \quad \mathrm{HSIC}(K, L) \propto \mathrm{tr}(K H L H),
              \quad H = I - \tfrac{1}{N} 1 1^T

    (Kornblith et al., 2019). Row i of both datasets must be the same sample; features may
    differ. 0 if the centred kernels agree up to scale, 1 if they are orthogonal; not a metric.
    Invariant to rotation and scale of either side. `debiased=True` uses the unbiased HSIC (Song
    et al., 2012), for fewer samples than features; it can be negative, so the value then lies in
    [0, 2], around 1 for independent data. Linear: O(N d₁ d₂) time, or O(N² (d₁ + d₂)) if that
    is less. RBF: O(N² (d₁ + d₂)). In tiles of 8 MB.

    Parameters
    ----------
    kernel
        `"linear"`, or `"rbf"`: exp(-‖x - y‖²/(2h²)).
    bandwidth_factor
        h of `"rbf"` as a multiple of the dataset's median distance over pairs i < j. For large
        factors the value approaches that of `"linear"`.
    debiased
        Use the unbiased HSIC; needs four samples.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(50, 3))
    >>> turned = 2.0 * points[:, ::-1]
    >>> round(abs(ua.distance(points, turned, "cka")), 6)
    0.0
    """

    name = "cka"
    summary = "1 - centred kernel alignment of paired rows"
    cost = "O(N d²) per pair linear, O(N² d) rbf, 8 N d bytes and tiles"
    paired_rows = True
    min_samples = 2

    kernel: str = "linear"
    bandwidth_factor: float = 1.0
    debiased: bool = False

    def __post_init__(self) -> None:
        _check.one_of("kernel", self.kernel, ("linear", "rbf"))
        _check.real_number("bandwidth_factor", self.bandwidth_factor, minimum=0.0, strict=True)
        _check.flag("debiased", self.debiased)

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        if self.debiased and min(first.n_samples, second.n_samples) < 4:
            return f"debiased=True needs at least 4 rows, and {first.label} has {first.n_samples}"
        return super().objection(first, second)

    def content(self, dataset: Dataset, seed: int) -> tuple[KernelMatrix, float]:
        """Return the kernel of one dataset, and its HSIC with itself."""
        points = dense_points(dataset)
        kernel = self._linear(points) if self.kernel == "linear" else self._rbf(points, dataset)
        norm = self._hsic(kernel, kernel)
        # A kernel that varies by less than 1e-10 of its values has few digits left.
        if not norm > (1e-10 * kernel.level * len(points)) ** 2:
            given = f" for bandwidth_factor={self.bandwidth_factor!r}"
            remedy = (
                f"{given}. Choose one nearer to 1, or kernel='linear', the limit of wide kernels."
            )
            raise DegenerateDataError(
                f"{dataset.label} has a centred kernel whose squared norm is {norm:g}, and "
                "distance 'cka' divides by it: its rows do not vary enough"
                f"{remedy if self.kernel == 'rbf' else '. Leave it out.'}"
            )
        return kernel, norm

    def arrays(self, content: tuple[KernelMatrix, float]) -> tuple[FloatArray, ...]:
        """Return the points of the kernel."""
        return (content[0].points,)

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return one minus the alignment."""
        (K, norm), (L, other) = first.content, second.content
        alignment = self._hsic(K, L) / (math.sqrt(norm) * math.sqrt(other))
        return 1.0 - (alignment if self.debiased else min(max(alignment, 0.0), 1.0))

    def _linear(self, points: FloatArray) -> KernelMatrix:
        _, rest = centred(points)
        size = float(np.linalg.norm(rest))
        if size > 0 and not 1e-30 < size < 1e30:  # fourth powers are needed
            rest *= 2.0 ** -math.frexp(size)[1]  # CKA is invariant to scale
        if not self.debiased:
            return KernelMatrix(rest)
        # The rows of a centred matrix sum to 0, so without the diagonal to minus the diagonal.
        diagonal = squared_norms(rest)
        return KernelMatrix(rest, sums=-diagonal, diagonal=diagonal)

    def _rbf(self, points: FloatArray, dataset: Dataset) -> KernelMatrix:
        cloud = PointCloud(points)
        width = self.bandwidth_factor * median_width(cloud, dataset.label, "use kernel='linear'")
        gaussian = gaussian_kernel(cloud, width, f"bandwidth_factor={self.bandwidth_factor!r}")
        level = math.exp(-0.5 / max(self.bandwidth_factor, 1e-9) ** 2)
        kernel = KernelMatrix(points, cloud, gaussian, level, hollow=self.debiased)
        n = len(points)
        sums, square = np.zeros(n), 0.0
        with Workers() as workers:
            for rows, columns, count in tiles(range(n), range(n), _TILE_ROWS):
                tile = kernel.tile(rows, columns, workers)
                sums[rows] += tile.sum(axis=1)
                if rows != columns:
                    sums[columns] += tile.sum(axis=0)
                square += count * float(np.vdot(tile, tile))
        return replace(kernel, sums=sums, square=square)

    def _hsic(self, K: KernelMatrix, L: KernelMatrix) -> float:
        r"""Return tr(KHLH), or with `debiased` n(n - 3) times the unbiased estimate.

        .. math:: \sum_{ij} K_{ij} L_{ij} - \tfrac{2}{n} k^T l + \tfrac{1}{n^2} 1^T k\, 1^T l,
            \quad k = K 1, \ l = L 1

        and without the diagonals, n - 2 and (n - 1)(n - 2) in place of n and n², if debiased.
        """
        inner = K.inner(L)
        if K.sums is None or L.sums is None:
            return inner
        if K.diagonal is not None and L.diagonal is not None:
            inner -= float(K.diagonal @ L.diagonal)
        n = len(K.points)
        single, double = (n - 2.0, (n - 1.0) * (n - 2.0)) if self.debiased else (n, n**2)
        cross = 2.0 * float(K.sums @ L.sums) / single
        return inner - cross + float(K.sums.sum() * L.sums.sum()) / double
