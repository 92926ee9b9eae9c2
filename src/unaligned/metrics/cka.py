"""Centred kernel alignment of two sets of features of the same samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..data.facts import Facts
from ..engine.threads import Workers
from ..errors import DegenerateDataError
from ..operators.kernel import Gaussian
from ..operators.pointcloud import PointCloud, squared_norms
from .points import DataDistance, Described, centred, dense_points, gaussian_kernel, median_width

_TILE_ROWS = 1024
_FAINT = 1e-10  # a kernel that varies by less than this share of its values has few digits left
_SAFE = 1e-30, 1e30  # fourth powers of these, and their products, are far from the ends of doubles


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel matrix that gives its tiles, with its sums.

    Attributes
    ----------
    points
        The centred points, (N, d).
    cloud, gaussian
        The points made ready and their Gaussian kernel; None for the linear one.
    level
        What is taken off a Gaussian kernel, its value at the median distance: centring removes
        a constant, and without it wide kernels, nearly 1 everywhere, keep their digits.
    hollow
        Whether the diagonal of a Gaussian kernel is set to 0, for the unbiased HSIC.
    sums
        The row sums of the matrix, (N,), without its diagonal where debiased; None where all
        are 0, as those of a linear kernel of centred points.
    diagonal
        The diagonal of the matrix, (N,), where debiased and not hollow.
    square
        Σᵢⱼ Kᵢⱼ², where it came along with the sums.
    """

    points: FloatArray
    cloud: PointCloud | None = None
    gaussian: Gaussian | None = None
    level: float = 0.0
    hollow: bool = False
    sums: FloatArray | None = None
    diagonal: FloatArray | None = None
    square: float | None = None


@dataclass(frozen=True)
class CKA(DataDistance):
    r"""One minus the centred kernel alignment of two representations of the same samples.

    .. math:: d = 1 - \frac{\mathrm{HSIC}(K, L)}
              {\sqrt{\mathrm{HSIC}(K, K)\, \mathrm{HSIC}(L, L)}},
              \quad \mathrm{HSIC}(K, L) \propto \mathrm{tr}(K H L H),
              \quad H = I - \tfrac{1}{N} 1 1^T

    (Kornblith et al., 2019). Row i of one dataset must be the same sample as row i of the other;
    features may differ. 0 where the centred kernels agree up to scale, 1 where nothing is
    shared; not a metric. Neither rotation nor scale of either side matters. `debiased=True`
    takes the unbiased HSIC (Song et al., 2012), for fewer samples than features; it can be
    negative, so the value then lies in [0, 2], around 1 where nothing is shared. Linear:
    O(N d₁ d₂) time, or O(N² (d₁ + d₂)) where that is less. RBF: O(N² (d₁ + d₂)). In tiles of
    8 MB, never the whole matrix.

    Attributes
    ----------
    kernel
        `"linear"`, or `"rbf"`: exp(-‖x - y‖²/(2h²)).
    bandwidth_factor
        h of `"rbf"` as a multiple of the dataset's own median distance over pairs i < j. The
        larger it is the nearer the value is to that of `"linear"`.
    debiased
        Take the unbiased HSIC; needs four samples.

    Examples
    --------
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(50, 3))
    >>> turned = 2.0 * points[:, ::-1]
    >>> round(abs(ua.distance(points, turned, "cka")), 6)
    0.0
    """

    name: ClassVar[str] = "cka"
    summary: ClassVar[str] = "1 - centred kernel alignment of paired rows"
    cost: ClassVar[str] = "O(N d²) per pair linear, O(N² d) rbf, 8 N d bytes and tiles"
    paired_rows: ClassVar[bool] = True
    min_samples: ClassVar[int] = 2

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

    def content(self, dataset: Dataset, seed: int) -> tuple[Kernel, float]:
        """Return the kernel of one dataset, and its HSIC with itself."""
        points = dense_points(dataset)
        kernel = self._linear(points) if self.kernel == "linear" else self._rbf(points, dataset)
        norm = self._hsic(kernel, kernel)
        if not norm > (_FAINT * kernel.level * len(points)) ** 2:
            raise DegenerateDataError(self._why_faint(dataset.label, norm))
        return kernel, norm

    def _why_faint(self, label: str, norm: float) -> str:
        told = (
            f"{label} has a centred kernel whose squared norm is {norm:g}, and distance 'cka' "
            "divides by it: its rows do not vary enough"
        )
        if self.kernel == "linear":
            return f"{told}. Leave it out."
        return (
            f"{told} for bandwidth_factor={self.bandwidth_factor!r}. Take one nearer to 1, or "
            "kernel='linear', which is what wide kernels come to."
        )

    def arrays(self, content: tuple[Kernel, float]) -> tuple[FloatArray, ...]:
        """Return the points of the kernel."""
        return (content[0].points,)

    def between(self, first: Described, second: Described) -> float:
        """Return one minus the alignment."""
        (K, norm), (L, other) = first.content, second.content
        alignment = self._hsic(K, L) / (math.sqrt(norm) * math.sqrt(other))
        return 1.0 - (alignment if self.debiased else min(max(alignment, 0.0), 1.0))

    def _linear(self, points: FloatArray) -> Kernel:
        _, rest = centred(points)
        size = float(np.linalg.norm(rest))
        if size > 0 and not _SAFE[0] < size < _SAFE[1]:
            rest *= 2.0 ** -math.frexp(size)[1]  # scale plays no part
        if not self.debiased:
            return Kernel(rest)
        # The rows of a centred matrix add up to 0, so without the diagonal to minus that.
        diagonal = squared_norms(rest)
        return Kernel(rest, sums=-diagonal, diagonal=diagonal)

    def _rbf(self, points: FloatArray, dataset: Dataset) -> Kernel:
        cloud = PointCloud(points)
        width = self.bandwidth_factor * median_width(cloud, dataset.label, "use kernel='linear'")
        gaussian = gaussian_kernel(cloud, width, f"bandwidth_factor={self.bandwidth_factor!r}")
        level = math.exp(-0.5 / max(self.bandwidth_factor, 1e-9) ** 2)
        kernel = Kernel(points, cloud, gaussian, level, hollow=self.debiased)
        sums, square = np.zeros(len(points)), 0.0
        with Workers() as workers:
            for rows, columns in _upper(len(points)):
                tile = _tile(kernel, rows, columns, workers)
                sums[rows] += tile.sum(axis=1)
                if rows != columns:
                    sums[columns] += tile.sum(axis=0)
                square += _share(rows, columns) * float(np.vdot(tile, tile))
        return replace(kernel, sums=sums, square=square)

    def _hsic(self, K: Kernel, L: Kernel) -> float:
        r"""Return tr(KHLH), or with `debiased` n(n - 3) times the unbiased estimate.

        .. math:: \sum_{ij} K_{ij} L_{ij} - \tfrac{2}{n} k^T l + \tfrac{1}{n^2} 1^T k\, 1^T l,
            \quad k = K 1, \ l = L 1

        and the same without the diagonals over n - 2 and (n - 1)(n - 2) in place of n and n².
        """
        inner = _inner_product(K, L)
        if K.sums is None or L.sums is None:
            return inner
        if K.diagonal is not None and L.diagonal is not None:
            inner -= float(K.diagonal @ L.diagonal)
        n = len(K.points)
        single, double = (n - 2.0, (n - 1.0) * (n - 2.0)) if self.debiased else (n, n**2)
        cross = 2.0 * float(K.sums @ L.sums) / single
        return inner - cross + float(K.sums.sum() * L.sums.sum()) / double


def _inner_product(K: Kernel, L: Kernel) -> float:
    r"""Return Σᵢⱼ Kᵢⱼ Lᵢⱼ: :math:`\|X^T Y\|_F^2` for linear kernels of few features."""
    (n, d), e = K.points.shape, L.points.shape[1]
    if L is K and K.square is not None:
        return K.square
    if K.cloud is None and d * e <= n * (d + e):
        product = K.points.T @ L.points
        return float(np.vdot(product, product))
    total = 0.0
    with Workers() as workers:
        for rows, columns in _upper(n):
            left = _tile(K, rows, columns, workers)
            right = left if L is K else _tile(L, rows, columns, workers)
            total += _share(rows, columns) * float(np.vdot(left, right))
    return total


def _share(rows: slice, columns: slice) -> float:
    """Return how often a tile on or above the diagonal stands in the whole matrix."""
    return 1.0 if rows == columns else 2.0


def _tile(K: Kernel, rows: slice, columns: slice, workers: Workers) -> FloatArray:
    if K.cloud is not None and K.gaussian is not None:
        tile = K.cloud.affinities(rows, columns, K.gaussian, workers)
        tile -= K.level
        if K.hollow and rows == columns:
            np.fill_diagonal(tile, 0.0)
        return tile
    products: FloatArray = K.points[rows] @ K.points[columns].T
    return products


def _upper(n_samples: int) -> Iterator[tuple[slice, slice]]:
    """Yield the tiles on and above the diagonal."""
    starts = range(0, n_samples, _TILE_ROWS)
    slices = [slice(start, min(start + _TILE_ROWS, n_samples)) for start in starts]
    for i, rows in enumerate(slices):
        for columns in slices[i:]:
            yield rows, columns
