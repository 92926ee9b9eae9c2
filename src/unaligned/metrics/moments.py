"""Distances between distributions: kernel means (MMD), and mean and covariance (Fréchet)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..data.facts import Facts
from ..engine.threads import Workers
from ..operators.kernel import Gaussian
from ..operators.pointcloud import PointCloud
from .points import (
    DataDistance,
    Described,
    centred,
    dense_points,
    gaussian_kernel,
    median_width,
    require_width,
)

_BLOCK_ROWS = 4096
_CANCELLED = 1e-6  # of the traces: a difference this small has lost 6 of its 16 digits


@dataclass(frozen=True)
class MMD(DataDistance):
    r"""The maximum mean discrepancy, the distance of the two kernel means.

    .. math:: d^2 = \frac{1}{n^2} \sum_{ij} k(x_i, x_j) + \frac{1}{m^2} \sum_{ij} k(y_i, y_j)
              - \frac{2}{nm} \sum_{ij} k(x_i, y_j),
              \quad k(x, y) = e^{-\|x - y\|^2 / (2 h^2)}

    the root of the biased estimate (Gretton et al., 2012, Eq. 5), so that d(A, A) = 0. h is the
    median of ‖zᵢ - zⱼ‖ over all pairs i < j of both datasets put together, exactly.
    `unbiased=True` gives their Eq. 3 instead: the square, without the terms i = j, which can be
    negative. O((n + m)² d) time in tiles of 8 MB, never the whole matrix.

    Attributes
    ----------
    bandwidth
        `"median"`, or h itself. (With `les` a number is σ², which is 2h².)
    unbiased
        Return the unbiased estimate of the square.

    Examples
    --------
    >>> import unaligned as ua
    >>> near, far = np.array([[0.0], [0.0]]), np.array([[1.0], [1.0]])
    >>> round(ua.distance(near, far, "mmd", bandwidth=1.0) ** 2, 6)  # 2 - 2 exp(-1/2)
    0.786939
    """

    name: ClassVar[str] = "mmd"
    summary: ClassVar[str] = "maximum mean discrepancy, Gaussian kernel of median width"
    cost: ClassVar[str] = "O(N² d) per pair, 8 N d bytes and tiles"
    same_features: ClassVar[bool] = True

    bandwidth: str | float = "median"
    unbiased: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            _check.one_of("bandwidth", self.bandwidth, ("median",))
        else:
            _check.real_number("bandwidth", self.bandwidth, minimum=0.0, strict=True)
            require_width(self.bandwidth, f"bandwidth={self.bandwidth!r}")
        _check.flag("unbiased", self.unbiased)

    @property
    def zero_of_itself(self) -> bool:
        """Whether equal data is at distance 0; the unbiased estimate is not."""
        return not self.unbiased

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        for dataset in (first, second):
            if self.unbiased and dataset.n_samples < 2:
                return f"unbiased=True needs two rows or more, and {dataset.label} has one"
        return super().objection(first, second)

    def between(self, first: Described, second: Described) -> float:
        """Return the root of the biased estimate, or the unbiased one."""
        n, m = len(first.content), len(second.content)
        pooled = np.concatenate([first.content, second.content])
        if not np.ptp(pooled, axis=0).any():
            return 0.0  # all points are one
        cloud = PointCloud(pooled)
        kernel = self._kernel(cloud, f"{first.label} and {second.label}")
        with Workers() as workers:
            x, y = slice(0, n), slice(n, n + m)
            xx, yy, xy = (
                _kernel_sum(cloud, *part, kernel, workers) for part in ((x, x), (y, y), (x, y))
            )
        if self.unbiased:
            return (xx - n) / (n * (n - 1)) + (yy - m) / (m * (m - 1)) - 2.0 * xy / (n * m)
        return float(np.sqrt(max(xx / n**2 + yy / m**2 - 2.0 * xy / (n * m), 0.0)))

    def _kernel(self, cloud: PointCloud, labels: str) -> Gaussian:
        told = f"bandwidth={self.bandwidth!r}"
        if not isinstance(self.bandwidth, str):
            return gaussian_kernel(cloud, float(self.bandwidth), told)
        return gaussian_kernel(cloud, median_width(cloud, labels, "give bandwidth=h"), told)


@dataclass(frozen=True)
class Frechet(DataDistance):
    r"""The Fréchet distance of two Gaussians fitted to the data, as reported under the name FID.

    .. math:: d = \|\mu_1 - \mu_2\|^2
              + \mathrm{tr}\big(S_1 + S_2 - 2 (S_1 S_2)^{1/2}\big)

    with covariances over n - 1 (Dowson & Landau, 1982; Heusel et al., 2017). The value itself,
    which is a squared distance, as everyone reports it. With :math:`S_i = F_i^T F_i` the trace of
    the root is the sum of the singular values of :math:`F_1 F_2^T`: no root of a singular
    product, so that fewer samples than features are no trouble and nothing becomes complex or
    NaN, and nearly equal data keeps its digits. O(n d min(n, d)) time per dataset,
    O(min(n, d)³) per pair, 8 min(n, d) d bytes.

    Examples
    --------
    >>> import unaligned as ua
    >>> points = np.random.default_rng(0).normal(size=(100, 3))
    >>> round(ua.distance(points, points + [3.0, 0.0, 4.0], "frechet"), 6)
    25.0
    """

    name: ClassVar[str] = "frechet"
    summary: ClassVar[str] = "Fréchet distance of fitted Gaussians (FID), a squared distance"
    cost: ClassVar[str] = "O(N d min(N, d)) per dataset, O(min(N, d)³) per pair"
    same_features: ClassVar[bool] = True
    is_descriptor: ClassVar[bool] = True
    min_samples: ClassVar[int] = 2

    def content(self, dataset: Dataset, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean, (d,), and a factor F of the covariance, (min(n, d), d)."""
        mean, rest = centred(dense_points(dataset))
        factor = rest if len(rest) <= rest.shape[1] else triangle(rest)
        return mean, factor / np.sqrt(len(rest) - 1.0)

    def arrays(self, content: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, ...]:
        """Return the mean and the factor."""
        return content

    def to_arrays(self, descriptor: Described) -> dict[str, npt.NDArray[Any]]:
        """Return the mean and the factor; what else there is only serves messages and draws."""
        mean, factor = descriptor.content
        return {"mean": mean, "factor": factor}

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Described:
        """Return the description of this mean and factor."""
        content = arrays["mean"], arrays["factor"]
        return Described(content, content, "the dataset", 0)

    def between(self, first: Described, second: Described) -> float:
        """Return the squared distance of the two Gaussians."""
        (mean1, F1), (mean2, F2) = first.content, second.content
        shift = mean1 - mean2
        return float(shift @ shift) + _between_factors(F1, F2)


def _between_factors(F1: FloatArray, F2: FloatArray) -> float:
    r"""Return :math:`\mathrm{tr}(S_1 + S_2 - 2 (S_1 S_2)^{1/2})` of :math:`S_i = F_i^T F_i`.

    It is the least :math:`\|F_1 - Q F_2\|_F^2` over isometries Q, which is at the polar factor of
    :math:`F_1 F_2^T` (Procrustes). Worked out in that way where the difference of the traces
    has lost digits: a second decomposition, with vectors.
    """
    total = float(np.vdot(F1, F1) + np.vdot(F2, F2))
    product = F1 @ F2.T
    found = total - 2.0 * float(np.linalg.svd(product, compute_uv=False).sum())
    if found > _CANCELLED * total:
        return found
    if len(F1) < len(F2):
        F1, F2, product = F2, F1, product.T
    U, _, Vt = np.linalg.svd(product, full_matrices=False)
    gap = F1 - U @ (Vt @ F2)
    return float(np.vdot(gap, gap))


def triangle(points: FloatArray) -> FloatArray:
    """Return R of the QR decomposition, RᵀR = XᵀX, block by block, (d, d)."""
    n, d = points.shape
    R: FloatArray = np.empty((0, d))
    step = max(_BLOCK_ROWS, 4 * d)
    for start in range(0, n, step):
        block = points[start : start + step]
        R = np.asarray(np.linalg.qr(np.concatenate([R, block]) if R.size else block, mode="r"))
    return R


def _kernel_sum(
    cloud: PointCloud, rows: slice, columns: slice, kernel: Gaussian, workers: Workers
) -> float:
    """Return Σ k(xᵢ, xⱼ) over these rows and columns; half of a square is enough."""
    total = 0.0
    square = rows == columns
    for left in _within(rows, cloud.tile_rows):
        for right in _within(columns, cloud.tile_rows):
            if square and right.start < left.start:
                continue
            tile = float(cloud.affinities(left, right, kernel, workers).sum())
            total += 2.0 * tile if square and right.start > left.start else tile
    return total


def _within(rows: slice, width: int) -> list[slice]:
    starts = range(rows.start, rows.stop, width)
    return [slice(start, min(start + width, rows.stop)) for start in starts]
