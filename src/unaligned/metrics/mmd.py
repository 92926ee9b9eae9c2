"""The maximum mean discrepancy, and the Gaussian kernel of median width it shares with CKA."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import _check
from ..data.facts import Facts
from ..engine.threads import Workers
from ..errors import DegenerateDataError, InputError
from ..operators.bandwidth import median_distance
from ..operators.kernel import Gaussian
from ..operators.pointcloud import LARGEST, SMALLEST, PointCloud
from .base import DataDescriptor, DataDistance


def median_width(cloud: PointCloud, label: str, alternative: str) -> float:
    """Return the median distance of pairs i < j; raise if it is 0, suggesting `alternative`."""
    width = median_distance(cloud)
    if width == 0:
        raise DegenerateDataError(
            f"The Gaussian kernel has the width 0 for {label}: half of all pairs of rows or more "
            f"are duplicates. Remove the duplicates in all datasets, or {alternative}."
        )
    return width


def require_width(width: float, option: str) -> None:
    """Raise if the square of a kernel width h overflows or underflows."""
    if not SMALLEST <= width <= LARGEST:
        raise InputError(
            f"{option} gives a Gaussian kernel the width h={width:g}; h must lie between "
            f"{SMALLEST:g} and {LARGEST:g}. Choose one nearer to the distances between the points."
        )


def gaussian_kernel(cloud: PointCloud, width: float, option: str) -> Gaussian:
    r"""Return the kernel :math:`e^{-\|x - y\|^2 / (2 h^2)}`, and adapt the cloud to it."""
    require_width(width, option)
    cloud.keep_digits(2.0 * width**2)
    return Gaussian(2.0 * width**2)


def tiles(rows: range, columns: range, step: int) -> Iterator[tuple[slice, slice, float]]:
    """Yield the tiles of a block, of a square only the upper half, and how often each counts."""
    square = rows == columns
    for a in rows[::step]:
        for b in columns[::step]:
            if not square or a <= b:
                left, right = min(a + step, rows.stop), min(b + step, columns.stop)
                yield slice(a, left), slice(b, right), 2.0 if square and a < b else 1.0


@dataclass(frozen=True)
class MMD(DataDistance):
    r"""The maximum mean discrepancy, the distance between the two kernel means.

    .. math:: d^2 = \frac{1}{n^2} \sum_{ij} k(x_i, x_j) + \frac{1}{m^2} \sum_{ij} k(y_i, y_j)
              - \frac{2}{nm} \sum_{ij} k(x_i, y_j),
              \quad k(x, y) = e^{-\|x - y\|^2 / (2 h^2)}

    The root of the biased estimate (Gretton et al., 2012, Eq. 5), so that d(A, A) = 0. h is the
    exact median of ‖zᵢ - zⱼ‖ over all pairs i < j of the pooled data. `unbiased=True` gives
    their Eq. 3: the square, without the terms i = j, which can be negative. O((n + m)² d) time,
    in tiles of 8 MB.

    Parameters
    ----------
    bandwidth
        `"median"`, or h itself. (With `les` a number is σ², which is 2h².)
    unbiased
        Return the unbiased estimate of the square.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> near, far = np.array([[0.0], [0.0]]), np.array([[1.0], [1.0]])
    >>> round(ua.distance(near, far, "mmd", bandwidth=1.0) ** 2, 6)  # 2 - 2 exp(-1/2)
    0.786939
    """

    name = "mmd"
    summary = "maximum mean discrepancy, Gaussian kernel: position, where features are shared"
    cost = "O(N² d) per pair, 8 N d bytes and tiles"
    same_features = True

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
    def zero_for_equal_data(self) -> bool:
        """Whether equal data has distance 0, which the unbiased estimate has not."""
        return not self.unbiased

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        for dataset in (first, second):
            if self.unbiased and dataset.n_samples < 2:
                return f"unbiased=True needs at least 2 rows, and {dataset.label} has 1"
        return super().objection(first, second)

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the root of the biased estimate, or the unbiased one."""
        n, m = len(first.content), len(second.content)
        pooled = np.concatenate([first.content, second.content])
        if not np.ptp(pooled, axis=0).any():
            return 0.0  # all points are equal
        cloud = PointCloud(pooled)
        if isinstance(self.bandwidth, str):
            width = median_width(cloud, f"{first.label} and {second.label}", "give bandwidth=h")
        else:
            width = float(self.bandwidth)
        kernel = gaussian_kernel(cloud, width, f"bandwidth={self.bandwidth!r}")
        x, y = range(n), range(n, n + m)
        sums = []
        with Workers() as workers:
            for block in ((x, x), (y, y), (x, y)):
                total = 0.0
                for left, right, count in tiles(*block, cloud.tile_rows):
                    total += count * float(cloud.affinities(left, right, kernel, workers).sum())
                sums.append(total)
        xx, yy, xy = sums
        if self.unbiased:
            return (xx - n) / (n * (n - 1)) + (yy - m) / (m * (m - 1)) - 2.0 * xy / (n * m)
        return float(np.sqrt(max(xx / n**2 + yy / m**2 - 2.0 * xy / (n * m), 0.0)))
