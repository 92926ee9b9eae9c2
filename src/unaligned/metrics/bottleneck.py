"""Bottleneck distances between persistence diagrams."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _check
from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..errors import InputError, required
from ..spectra.signature import Signature
from .base import Distance
from .points import dense_points, squared_distances

_MOST_RANKS = 2**24  # from here on single precision skips whole numbers


def optional(package: str, distance: str) -> Any:
    """Return a package of the extra `topology`, or raise what says how to install it."""
    return required(package, "topology", f"distance {distance!r}")


def pairwise(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the Euclidean distances between the rows of two arrays, (n, m).

    Equal rows are at distance 0 exactly, and small distances between points far from the origin
    keep their digits: topology lives on the small ones. O(n m d) time, 8 n m bytes.

    Examples
    --------
    >>> pairwise(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[5., 0.]])
    """
    roots: FloatArray = np.sqrt(squared_distances(first, second))
    return roots


def distance_matrix(dataset: Dataset) -> FloatArray:
    """Return the N×N distances of a dataset of kind `points` or `distances`."""
    values = dense_points(dataset)
    return pairwise(values, values) if dataset.kind == "points" else values


def rips_bars(distances: FloatArray, dimension: int, distance: str) -> FloatArray:
    """Return the Vietoris-Rips bars of one dimension of a distance matrix, by ripser."""
    first, second = np.triu_indices(len(distances), 1)
    levels, ranks = _ranked(distances[first, second], distance)
    filtration = np.zeros(distances.shape, dtype=np.float32)
    filtration[first, second] = filtration[second, first] = ranks
    return _ripser(filtration, levels, dimension, distance)


def collapsed_bars(distances: FloatArray, dimension: int, distance: str) -> FloatArray:
    """Return the bars that `rips_bars` returns, from the few edges that a collapse leaves.

    gudhi's edge collapse (Glisse and Pritam, 2022) takes out edges, or lets them enter later,
    such that all bars stay the same. What enters beyond the radius at which one point is joined
    to all others changes nothing. Of 1000 points on a torus 4 to 13 % of the edges are left:
    cavities (H2) then take seconds and 0.4 GB, where the whole filtration takes minutes and
    gigabytes. Loops gain nothing by it.

    Examples
    --------
    >>> octahedron = np.vstack([np.eye(3), -np.eye(3)])
    >>> bars = collapsed_bars(pairwise(octahedron, octahedron), 2, "bottleneck-h2")
    >>> bars.round(4).tolist()
    [[1.4142, 2.0]]
    """
    optional("gudhi", distance)
    from gudhi.flag_filtration.edge_collapse import reduce_graph

    radius = distances.max(axis=1).min()
    first, second = np.nonzero(np.triu(distances <= radius, 1))
    entries = distances[first, second]
    graph = sparse.coo_matrix((entries, (first, second)), shape=distances.shape)
    left = reduce_graph(graph)
    levels, left.data = _ranked(left.data, distance)
    return _ripser(left, levels, dimension, distance)


def _ranked(entries: FloatArray, distance: str) -> tuple[FloatArray, FloatArray]:
    """Return the values that occur, after a 0 for the points, and which of them each entry is.

    Bars depend on the order of distances only. ripser counts in single precision, which holds
    whole numbers exactly where it would round distances, so it is given their ranks.
    """
    values, ranks = np.unique(entries, return_inverse=True)
    if values.size >= _MOST_RANKS:
        raise InputError(
            f"distance {distance!r} has {values.size} different distances between points to "
            f"order, and ripser tells {_MOST_RANKS} apart. Give n_landmarks=5000 or fewer."
        )
    return np.concatenate([[0.0], values]), ranks.astype(np.float64) + 1.0


def _ripser(filtration: Any, levels: FloatArray, dimension: int, distance: str) -> FloatArray:
    """Return ripser's bars of ranked distances, dense or the edges there are, as distances."""
    ripser = optional("ripser", distance).ripser
    found = ripser(filtration, maxdim=dimension, distance_matrix=True)["dgms"][dimension]
    bars: FloatArray = np.append(levels, np.inf)[np.minimum(found, levels.size).astype(np.int64)]
    return bars


def farthest_points(dataset: Dataset, size: int) -> tuple[IndexArray, float]:
    """Return rows that cover a dataset, each the farthest from those before, and their radius.

    Every point lies within the radius of a chosen one, and no choice of as many points does
    better than half of it (Gonzalez, 1985). The first is the one farthest from the mean, or with
    the largest mean distance, so the order of the rows plays no part. O(N size d) time.

    Examples
    --------
    >>> line = Dataset([[0.0], [1.0], [2.0], [9.0]])
    >>> rows, radius = farthest_points(line, 2)
    >>> rows.tolist(), radius
    ([3, 0], 2.0)
    """
    values = dense_points(dataset)
    is_points = dataset.kind == "points"
    start = np.linalg.norm(values - values.mean(axis=0), axis=1) if is_points else values.mean(1)
    rows = [int(start.argmax())]
    nearest = np.full(len(values), np.inf)
    while True:
        last = rows[-1]
        away = pairwise(values[[last]], values)[0] if is_points else values[last]
        nearest = np.minimum(nearest, away)
        if len(rows) == size:
            return np.array(rows), float(nearest.max())
        rows.append(int(nearest.argmax()))


_ROUNDING = 1e-9  # what distances by matrix products may be off


@dataclass(frozen=True)
class Diagram:
    """A persistence diagram, and how far it may be from the true one in bottleneck distance.

    Attributes
    ----------
    bars
        Birth and death of every class, (n, 2); a class that never dies has death infinity.
    error
        Rounding, and twice the covering radius of the landmarks if not all points were used.
    """

    bars: FloatArray
    error: float


@dataclass(frozen=True)
class Bottleneck(Distance):
    r"""The bottleneck distance between persistence diagrams of two point clouds.

    .. math:: d = \inf_{\eta} \sup_{x} \|x - \eta(x)\|_\infty

    over matchings η of the bars (birth, death) of the one to those of the other, or to the
    diagonal (Cohen-Steiner, Edelsbrunner and Harer, 2007). The filtration is Vietoris-Rips over
    Euclidean distances, a simplex entering at its diameter. The value itself, no root and no
    square, in the unit of the data: rotation, translation and the order of rows play no part,
    scale does. No bar is left out: one that never dies matches only another such, by birth.
    In the full filtration H0 has one of them in every dataset, H1 and H2 have none, so the
    distance is finite. It does not depend on the seed.

    Attributes
    ----------
    n_landmarks
        Take so many points, chosen to cover the dataset (farthest points first). The diagram
        then moves by no more than twice the covering radius, which `error_bounds` holds. None
        takes all, and refuses datasets for which that takes minutes or gigabytes; a number as
        large as the dataset takes all without asking.
    """

    kinds: ClassVar[tuple[str, ...]] = ("points", "distances")
    is_descriptor: ClassVar[bool] = True
    extra: ClassVar[str | None] = "topology"
    packages: ClassVar[tuple[str, ...]] = ("gudhi",)
    most_points: ClassVar[int]

    n_landmarks: int | None = None

    def __post_init__(self) -> None:
        if self.n_landmarks is not None:
            _check.positive_int("n_landmarks", self.n_landmarks)

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Refuse datasets that are too large, before any work is done."""
        for dataset in datasets:
            if self.n_landmarks is None and dataset.n_samples > self.most_points:
                raise InputError(
                    f"n_landmarks=None takes all points, and distance {self.name!r} does so up to "
                    f"{self.most_points}; dataset {dataset.name!r} has {dataset.n_samples}. Give "
                    f"n_landmarks={self.most_points} for points that cover it, or "
                    f"n_landmarks={dataset.n_samples} if it may take very long and much memory."
                )
        return self

    def describe(self, dataset: Dataset, seed: int) -> Diagram:
        """Return the diagram of one dataset."""
        for package in self.packages:  # a missing one is named before the long work
            optional(package, self.name)
        radius = 0.0
        if self.n_landmarks is not None and self.n_landmarks < dataset.n_samples:
            rows, radius = farthest_points(dataset, self.n_landmarks)
            values = dense_points(dataset)[rows]
            distances = pairwise(values, values) if dataset.kind == "points" else values[:, rows]
        else:
            distances = distance_matrix(dataset)
        # Diagrams of diameters move by at most 2 d_GH ≤ 2 radius (Chazal et al., 2014).
        error = 2.0 * radius + _ROUNDING * float(distances.max())
        return Diagram(self.diagram(distances), error)

    @abstractmethod
    def diagram(self, distances: FloatArray) -> FloatArray:
        """Return the bars of an N×N distance matrix, (n, 2)."""

    def to_arrays(self, descriptor: Diagram) -> dict[str, npt.NDArray[Any]]:
        """Return the bars and how far they may be off."""
        return {"bars": descriptor.bars, "error": np.asarray(descriptor.error)}

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Diagram:
        """Return the diagram of these bars."""
        return Diagram(arrays["bars"], float(arrays["error"]))

    def compare(self, first: Diagram, second: Diagram) -> float:
        """Return the bottleneck distance between two diagrams."""
        gudhi = optional("gudhi", self.name)
        if np.array_equal(first.bars, second.bars):
            return 0.0  # gudhi answers with the smallest positive number
        return float(gudhi.bottleneck_distance(first.bars, second.bars))

    def error_bound(self, first: Diagram, second: Diagram) -> float:
        """Return the sum of what the two diagrams may be off."""
        return first.error + second.error


@dataclass(frozen=True)
class BottleneckH0(Bottleneck):
    """The bottleneck distance of connected components (H0); see `Bottleneck` for the formula.

    Every bar is (0, length of an edge of the minimum spanning tree), so SciPy's single linkage
    gives the diagram, in double precision and a fraction of ripser's time
    (`benchmarks/bench_topology.py`). The one bar (0, ∞) of each dataset matches that of the
    other. O(N²) time and 16 N² bytes per dataset; up to 10,000 points.

    Examples
    --------
    >>> import unaligned as ua
    >>> near, apart = [[0.0], [1.0]], [[0.0], [1.25]]
    >>> f"{ua.distance(near, apart, 'bottleneck-h0'):.4f}"
    '0.2500'
    """

    name: ClassVar[str] = "bottleneck-h0"
    summary: ClassVar[str] = "bottleneck distance of connected components (Vietoris-Rips)"
    cost: ClassVar[str] = "O(N²) per dataset, 16 N² bytes; a matching of N bars per pair"
    most_points: ClassVar[int] = 10_000

    def diagram(self, distances: FloatArray) -> FloatArray:
        """Return the bars (0, edge of the minimum spanning tree) and the one that never dies."""
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        deaths = np.array([np.inf])
        if len(distances) > 1:
            merged = linkage(squareform(distances, checks=False), "single")[:, 2]
            deaths = np.append(merged[merged > 0], np.inf)
        return np.column_stack([np.zeros_like(deaths), deaths])


class _RipserDiagram(Bottleneck):
    """Diagrams by ripser."""

    packages: ClassVar[tuple[str, ...]] = ("gudhi", "ripser")
    dimension: ClassVar[int]

    def diagram(self, distances: FloatArray) -> FloatArray:
        """Return ripser's bars of one dimension."""
        if len(distances) < 2 * self.dimension + 2:  # the smallest cycle has so many corners
            return np.empty((0, 2))
        bars = collapsed_bars if self.dimension > 1 else rips_bars
        return bars(distances, self.dimension, self.name)


@dataclass(frozen=True)
class BottleneckH1(_RipserDiagram):
    """The bottleneck distance of loops (H1); see `Bottleneck` for the formula.

    By ripser (Bauer, 2021), in double precision: it is given the ranks of the distances, which
    it does not round. About 4 s per dataset at N=1000, but three minutes and 1.5 GB at N=2000;
    up to 1,500 points.

    Examples
    --------
    >>> import unaligned as ua
    >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    >>> f"{ua.distance(square, 3 * square, 'bottleneck-h1'):.4f}"  # (1, √2) and (3, 3√2)
    '0.6213'
    """

    name: ClassVar[str] = "bottleneck-h1"
    summary: ClassVar[str] = "bottleneck distance of loops (Vietoris-Rips)"
    cost: ClassVar[str] = "ripser per dataset: 4 s at N=1000, 3 min at 2000; a matching per pair"
    most_points: ClassVar[int] = 1500
    dimension: ClassVar[int] = 1


@dataclass(frozen=True)
class BottleneckH2(_RipserDiagram):
    """The bottleneck distance of cavities (H2); see `Bottleneck` for the formula.

    By gudhi's edge collapse and ripser (Bauer, 2021), in double precision. About 0.5 s per
    dataset at N=400, where ripser alone takes 10 s, and 4 to 8 s at N=1000; up to 1,500 points.

    Examples
    --------
    >>> import unaligned as ua
    >>> octahedron = np.vstack([np.eye(3), -np.eye(3)])
    >>> f"{ua.distance(octahedron, np.eye(3), 'bottleneck-h2'):.4f}"  # (√2, 2) and none
    '0.2929'
    """

    name: ClassVar[str] = "bottleneck-h2"
    summary: ClassVar[str] = "bottleneck distance of cavities (Vietoris-Rips)"
    cost: ClassVar[str] = "ripser per dataset: 0.5 s at N=400, 8 s at 1000; a matching per pair"
    most_points: ClassVar[int] = 1500
    dimension: ClassVar[int] = 2
