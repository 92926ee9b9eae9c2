"""CrossLID: local intrinsic dimension across datasets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .. import _check
from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..errors import DegenerateDataError, InputError
from ..spectra.signature import Signature
from .base import DataDescriptor, DataDistance, squared_distances


@dataclass(frozen=True)
class CrossLID(DataDistance):
    r"""The local intrinsic dimension of each point of one dataset among points of the other.

    .. math:: \mathrm{LID}(x; B) =
              -\Big(\frac{1}{k} \sum_{i=1}^k \log \frac{r_i(x)}{r_k(x)}\Big)^{-1},
              \quad d = \tfrac{1}{2} \Big(\operatorname{mean}_{x \in A} \mathrm{LID}(x; B)
              + \operatorname{mean}_{y \in B} \mathrm{LID}(y; A)\Big)

    with r₁ ≤ … ≤ r_k the distances to the k nearest neighbours in the other dataset: the
    maximum-likelihood estimate (Amsaleg et al., 2015) across datasets (Barua et al., 2019).
    Neighbours at distance 0 are excluded, so CrossLID of a dataset with itself is its mean LID,
    the smallest value to expect; this is a dissimilarity, not a metric. O(N² d) time at worst (a
    tree up to 15 features), 8 N k bytes.

    Parameters
    ----------
    n_neighbors
        k; None means 100, or one less than the rows of the smallest dataset.
    directed
        Return only the mean over the first dataset.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> rng = np.random.default_rng(0)
    >>> line, plane = rng.uniform(size=(900, 2)) * [1.0, 0.0], rng.uniform(size=(900, 2))
    >>> round(ua.distance(line, line, "crosslid")), round(ua.distance(plane, plane, "crosslid"))
    (1, 2)
    """

    name = "crosslid"
    summary = "local intrinsic dimension of each in the other; not symmetric with directed=True"
    cost = "O(N² d) per pair at worst, 8 N k bytes"
    same_features = True

    n_neighbors: int | None = None
    directed: bool = False

    def __post_init__(self) -> None:
        if self.n_neighbors is not None:
            _check.positive_int("n_neighbors", self.n_neighbors, minimum=2)
        _check.flag("directed", self.directed)
        if self.directed:
            object.__setattr__(self, "symmetric", False)

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Choose k for the whole collection; raise if some dataset has too few rows."""
        smallest = min(datasets, key=lambda dataset: dataset.n_samples)
        most = smallest.n_samples - 1
        if most < 2:
            found = f"dataset {smallest.name!r} has {smallest.n_samples}"
            raise InputError(f"distance 'crosslid' needs at least 3 rows; {found}. Leave it out.")
        k = min(100, most) if self.n_neighbors is None else self.n_neighbors
        if k > most:
            raise InputError(
                f"n_neighbors={k} needs at least {k + 1} rows, as a point is not its own "
                f"neighbour; dataset {smallest.name!r} has {smallest.n_samples}. Lower "
                f"n_neighbors or leave {smallest.name!r} out."
            )
        return replace(self, n_neighbors=k)

    @property
    def zero_for_equal_data(self) -> bool:
        """False: the value of a dataset with itself is its mean LID."""
        return False

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the mean of both directions, or one."""
        k = self.n_neighbors or 100
        forth = _mean_dimension(first, second, k)
        if self.directed or first.precedes(second) is None:
            return forth
        return 0.5 * (forth + _mean_dimension(second, first, k))


def _mean_dimension(first: DataDescriptor, second: DataDescriptor, k: int) -> float:
    """Return the mean LID of the points of `first` among the points of `second`."""
    x, y = first.content, second.content
    dimensions, copied = np.empty(len(x)), np.arange(len(x))
    if first.precedes(second) is not None:
        near = _nearest(x, y, k)
        dimensions, copied = _dimensions(near), np.flatnonzero(near[:, 0] == 0)
    if copied.size:  # rows that also occur in y: search again beyond the copies
        copies = _count_copies(x[copied], y)
        others = len(y) - copies
        fewest = int(others.argmin())
        if others[fewest] < k:
            raise DegenerateDataError(
                f"row {copied[fewest]} of {first.label} has only {others[fewest]} rows of "
                f"{second.label} that differ from it, and n_neighbors={k}. Lower n_neighbors, or "
                "remove the duplicates."
            )
        near = _nearest(x[copied], y, k + int(copies.max()))
        columns = copies[:, None] + np.arange(k)
        dimensions[copied] = _dimensions(np.take_along_axis(near, columns, axis=1))
    infinite = np.flatnonzero(~np.isfinite(dimensions))
    if infinite.size:
        raise DegenerateDataError(
            f"row {infinite[0]} of {first.label} has its {k} neighbours in {second.label} all at "
            "one distance, so its dimension is infinite. Raise n_neighbors, or remove the ties."
        )
    return float(dimensions.mean())


def _count_copies(x: FloatArray, y: FloatArray) -> IndexArray:
    """Return how many rows of y equal each row of x, (N,)."""
    both = np.concatenate([x, y]) + 0.0  # -0.0 becomes 0.0
    _, group = np.unique(both, axis=0, return_inverse=True)
    group = group.reshape(-1)
    counts = np.bincount(group[len(x) :], minlength=int(group.max()) + 1)
    return np.asarray(counts[group[: len(x)]])


def _nearest(x: FloatArray, y: FloatArray, k: int) -> FloatArray:
    """Return the distances to the k nearest rows of y, ascending, (N, k)."""
    from sklearn.neighbors import NearestNeighbors

    if y.shape[1] <= 15:  # a tree is faster up to here, as scikit-learn's "auto" assumes
        return np.asarray(NearestNeighbors(algorithm="kd_tree").fit(y).kneighbors(x, k)[0])
    near = np.empty((len(x), k))
    step = max(1, (1 << 22) // len(y))  # blocks of 32 MB
    for start in range(0, len(x), step):
        squared = squared_distances(x[start : start + step], y)
        near[start : start + step] = np.partition(squared, k - 1, axis=1)[:, :k]
    near.sort(axis=1)
    return np.sqrt(near)


def _dimensions(near: FloatArray) -> FloatArray:
    """Return -1 / mean(log(rᵢ / r_k)) of ascending distances, (N,); 0 if the first is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(-1.0 / np.log(near / near[:, -1:]).mean(axis=1))
