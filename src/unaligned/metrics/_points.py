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
from ..errors import DegenerateDataError
from ..operators.points import squared_norms
from .base import Distance

# Up to here differences are no dearer than a matrix product, and they have no cancellation.
_FEW_FEATURES = 16
# Where ‖x - y‖² is this small against ‖x‖² + ‖y‖², the product has lost 6 of its 16 digits.
_CANCELLED = 1e-6
_SMALLEST, _LARGEST = 1e-140, 1e140  # squares of these are numbers, sums over features too


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
    if _SMALLEST**2 <= squares <= _LARGEST**2:
        return
    peak = float(np.abs(values).max(initial=0.0))
    if peak > _LARGEST or 0 < peak < _SMALLEST:
        what = "overflow" if peak > 1 else "underflow"
        raise DegenerateDataError(
            f"{label} has values up to {peak:g}, whose squares {what}; they must lie between "
            f"{_SMALLEST:g} and {_LARGEST:g}. Rescale all datasets alike."
        )


def centred(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of every column, exact where nothing varies, (d,), and points minus it.

    Examples
    --------
    >>> mean, rest = centred(np.array([[1.0, 7.0], [2.0, 7.0]]))
    >>> mean.tolist(), rest.tolist()
    ([1.5, 7.0], [[-0.5, 0.0], [0.5, 0.0]])
    """
    # Narrow rows are slow to go through; column after column is not.
    order: Literal["F", "C"] = "F" if points.shape[1] <= _FEW_FEATURES else "C"
    rest: FloatArray = np.subtract(points, points[0], order=order)
    shift = rest.mean(axis=0)
    rest -= shift
    return points[0] + shift, rest


def squared_distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return ‖xᵢ - yⱼ‖², (N, M): from differences, or by a product where features are many.

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
    if first.shape[1] <= _FEW_FEATURES:
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
