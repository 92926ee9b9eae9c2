"""What the distances that look at the points themselves share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from .._check import FloatArray
from ..data.dataset import Dataset
from ..data.facts import Facts
from ..errors import DegenerateDataError, InputError, about
from ..operators.bandwidth import median_distance
from ..operators.kernel import Gaussian
from ..operators.pointcloud import (
    LARGEST,
    SMALLEST,
    PointCloud,
    require_representable,
    squared_norms,
)
from .base import Distance

# Up to here `cdist` is no dearer than a matrix product, and differences have no cancellation.
_CDIST_FEATURES = 16
_NARROW = 16  # rows of so few features are slow to go through; column after column is not
# Where ‖x - y‖² is this small against ‖x‖² + ‖y‖², the product has lost 6 of its 16 digits.
_CANCELLED = 1e-6


@dataclass(frozen=True, eq=False)
class Described:
    """What `compare` needs of one dataset, and which data it was made of.

    Attributes
    ----------
    content
        Whatever the distance keeps: the points, or numbers made of them.
    arrays
        Those of its arrays that decide the distance.
    label
        How messages call the dataset.
    seed
        The root seed.
    """

    content: Any
    arrays: tuple[FloatArray, ...]
    label: str
    seed: int

    def equals(self, other: Described) -> bool:
        """Say whether both were made of the same values."""
        return self is other or self.before(other) is None

    def before(self, other: Described) -> bool | None:
        """Say whether this one comes first in an order of all contents; None if both are equal.

        The first rows nearly always decide it, so nothing is hashed and little is read.
        """
        for mine, yours in zip(self.arrays, other.arrays, strict=True):
            if mine.shape != yours.shape:
                return mine.shape < yours.shape
            for rows in (slice(0, 1), slice(1, None)):
                differ = np.flatnonzero(mine[rows] != yours[rows])
                if differ.size:
                    place = differ[0]
                    return bool(mine[rows].flat[place] < yours[rows].flat[place])
        return None


class DataDistance(Distance):
    """A distance that works on the data of both sides rather than on spectra.

    Equal data is at distance exactly 0, and a symmetric distance gives the same bits both ways:
    the pair is always taken in an order that their contents decide.
    """

    kinds: ClassVar[tuple[str, ...]] = ("points",)
    min_samples: ClassVar[int] = 1

    @property
    def zero_of_itself(self) -> bool:
        """Whether equal data is at distance 0."""
        return True

    def describe(self, dataset: Dataset, seed: int) -> Described:
        """Return what `between` needs of one dataset."""
        content = self.content(dataset, seed)
        return Described(content, self.arrays(content), dataset.label, seed)

    def content(self, dataset: Dataset, seed: int) -> Any:
        """Return the part of the work that needs only one dataset; the dense points here."""
        return dense_points(dataset)

    def arrays(self, content: Any) -> tuple[FloatArray, ...]:
        """Return the arrays of the content that decide the distance."""
        return (content,)

    def compare(self, first: Described, second: Described) -> float:
        """Return the distance between two described datasets."""
        in_order = None if first is second else first.before(second)
        if in_order is None and self.zero_of_itself:
            return 0.0
        if self.symmetric and in_order is False:
            first, second = second, first
        return float(self.between(first, second))

    @abstractmethod
    def between(self, first: Described, second: Described) -> float:
        """Return the distance between two described datasets that are not the same."""

    def objection(self, first: Facts, second: Facts) -> str | None:
        """Return why the distance does not apply to this pair, or None."""
        for dataset in (first, second):
            if dataset.n_samples < self.min_samples:
                return (
                    f"it needs at least {self.min_samples} rows, and {dataset.label} has "
                    f"{dataset.n_samples}"
                )
        return super().objection(first, second)


def dense_points(dataset: Dataset) -> FloatArray:
    """Return the prepared points as a dense float64 array, sparse ones filled in, (N, d)."""
    values = dataset.prepared()
    if sparse.issparse(values):
        values = values.toarray()
    points: FloatArray = np.ascontiguousarray(values, dtype=np.float64)
    require_range(points, dataset.label)
    return points


def require_range(values: FloatArray, label: str) -> None:
    """Refuse values whose squares overflow or vanish; zeros are no trouble."""
    squares = float(np.vdot(values, values))
    if SMALLEST**2 <= squares <= LARGEST**2:
        return
    with about(label):
        require_representable(float(np.abs(values).max(initial=0.0)))


def median_width(cloud: PointCloud, label: str, instead: str) -> float:
    """Return the median distance of pairs i < j, refusing 0; `instead` says what else to do."""
    width = median_distance(cloud)
    if width == 0:
        raise DegenerateDataError(
            f"The Gaussian kernel has the width 0 for {label}: half of all pairs of rows or more "
            f"are duplicates. Remove the duplicates in all datasets, or {instead}."
        )
    return width


def require_width(width: float, told: str) -> None:
    """Refuse a width h of a Gaussian kernel whose square overflows or vanishes."""
    if not SMALLEST <= width <= LARGEST:
        raise InputError(
            f"{told} gives a Gaussian kernel the width h={width:g}; h must lie between "
            f"{SMALLEST:g} and {LARGEST:g}. Choose one nearer to the distances between the points."
        )


def gaussian_kernel(cloud: PointCloud, width: float, told: str) -> Gaussian:
    r"""Return :math:`e^{-\|x - y\|^2 / (2 h^2)}`; points keep the digits it asks for.

    `told` is the option that h comes from, as messages call it.
    """
    require_width(width, told)
    cloud.keep_digits(2.0 * width**2)
    return Gaussian(2.0 * width**2)


def centred(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of every column, exact where nothing varies, (d,), and points minus it.

    The mean is part of what is compared; where only distances count, `around_median` keeps
    more digits.

    Examples
    --------
    >>> mean, rest = centred(np.array([[1.0, 7.0], [2.0, 7.0]]))
    >>> mean.tolist(), rest.tolist()
    ([1.5, 7.0], [[-0.5, 0.0], [0.5, 0.0]])
    """
    order: Literal["F", "C"] = "F" if points.shape[1] <= _NARROW else "C"
    rest: FloatArray = np.subtract(points, points[0], order=order)
    shift = rest.sum(axis=0) / len(rest)
    rest -= shift
    return points[0] + shift, rest


def squared_distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return ‖xᵢ - yⱼ‖² of all pairs, (N, M), by a product where features are many.

    The product is taken of centred points: otherwise what all points share eats the digits in
    which they differ. Pairs that lose digits all the same, such as the others of a cloud with
    points far out, are worked out again from differences; equal rows are at 0 exactly.
    O(N M d) time, 8 N M bytes.

    Examples
    --------
    >>> squared_distances(np.array([[0.0], [1.0]]), np.array([[3.0]]))
    array([[9.],
           [4.]])
    """
    if first.shape[1] <= _CDIST_FEATURES:
        plain: FloatArray = cdist(first, second, "sqeuclidean")
        return plain
    centre = 0.5 * (first.mean(axis=0) + second.mean(axis=0))
    x = first - centre
    y = x if second is first else second - centre
    squared: FloatArray = -2.0 * (x @ y.T)
    norms = squared_norms(y)
    for row, norm in enumerate(squared_norms(x)):
        sizes = norm + norms
        squared[row] += sizes
        close = np.flatnonzero(squared[row] <= _CANCELLED * sizes)
        if close.size:
            squared[row, close] = cdist(first[[row]], second[close], "sqeuclidean")[0]
    return squared
