"""Bottleneck distances between persistence diagrams."""

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
from ..errors import InputError, about, required
from ..spectra.signature import Signature
from .base import Distance, dense_points, squared_distances

_MOST_RANKS = 2**24  # single precision represents all integers up to here


def optional(package: str, distance: str) -> Any:
    """Return a package of the extra `topology`, or raise `MissingExtraError`."""
    return required(package, "topology", f"distance {distance!r}")


def pairwise(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the Euclidean distances between the rows of two arrays, (n, m)."""
    return np.asarray(np.sqrt(squared_distances(first, second)))


def rips_bars(distances: FloatArray, dimension: int, distance: str) -> FloatArray:
    """Return the Vietoris-Rips bars of one dimension of a distance matrix, by ripser."""
    first, second = np.triu_indices(len(distances), 1)
    levels, ranks = _rank(distances[first, second], distance)
    filtration = np.zeros(distances.shape, dtype=np.float32)
    filtration[first, second] = filtration[second, first] = ranks
    return _ripser_bars(filtration, levels, dimension, distance)


def collapsed_bars(distances: FloatArray, dimension: int, distance: str) -> FloatArray:
    """Return the bars of `rips_bars` from the edges left by gudhi's edge collapse.

    The collapse (Glisse and Pritam, 2022) keeps all bars. Of 1000 points on a torus, 4 to 13 % of
    the edges remain: H2 takes seconds and 0.4 GB instead of minutes and gigabytes.
    """
    from gudhi.flag_filtration.edge_collapse import reduce_graph

    # No edge matters beyond the radius at which one point is joined to all others.
    radius = distances.max(axis=1).min()
    first, second = np.nonzero(np.triu(distances <= radius, 1))
    entries = distances[first, second]
    graph = reduce_graph(sparse.coo_matrix((entries, (first, second)), shape=distances.shape))
    levels, graph.data = _rank(graph.data, distance)
    return _ripser_bars(graph, levels, dimension, distance)


def _rank(entries: FloatArray, distance: str) -> tuple[FloatArray, FloatArray]:
    """Return the distinct values after a leading 0, and the index of each entry among them."""
    # Bars depend on the order of distances only. Single precision, which ripser uses, represents
    # ranks exactly.
    values, ranks = np.unique(entries, return_inverse=True)
    if values.size >= _MOST_RANKS:
        raise InputError(
            f"distance {distance!r} has {values.size} different distances between points, and "
            f"ripser distinguishes {_MOST_RANKS}. Pass n_landmarks=5000 or fewer."
        )
    return np.concatenate([[0.0], values]), ranks.astype(np.float64) + 1.0


def _ripser_bars(filtration: Any, levels: FloatArray, dimension: int, distance: str) -> FloatArray:
    """Return ripser's bars of a dense or sparse matrix of ranks, as distances."""
    ripser = optional("ripser", distance).ripser
    found = ripser(filtration, maxdim=dimension, distance_matrix=True)["dgms"][dimension]
    return np.asarray(np.append(levels, np.inf)[np.minimum(found, levels.size).astype(np.int64)])


def farthest_points(dataset: Dataset, size: int) -> tuple[IndexArray, float]:
    """Return rows that cover a dataset, each the farthest from those before, and their radius.

    Every point lies within the radius of a chosen one, at most twice the optimum (Gonzalez,
    1985). O(N size d) time.
    """
    values = dense_points(dataset)
    is_points = dataset.kind == "points"
    # The first is farthest from the mean, or on average, so the order of rows does not matter.
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


@dataclass(frozen=True)
class Diagram:
    """Birth and death of every class, (n, 2), and a bound on the error in bottleneck distance."""

    bars: FloatArray
    error: float


@dataclass(frozen=True)
class Bottleneck(Distance):
    r"""The bottleneck distance between persistence diagrams of two point clouds.

    .. math:: d = \inf_{\eta} \sup_{x} \|x - \eta(x)\|_\infty

    over matchings η of the bars (birth, death) of one diagram to those of the other or to the
    diagonal (Cohen-Steiner, Edelsbrunner and Harer, 2007). Vietoris-Rips over Euclidean
    distances, a simplex entering at its diameter. Neither root nor square, in the unit of the
    data. Bars that never die are kept: H0 has one per dataset, H1 and H2 none.

    Parameters
    ----------
    n_landmarks
        Use this many farthest points, which moves the diagram by at most twice their covering
        radius (in `error_bounds`). None uses all points, and raises if that takes minutes or
        gigabytes.
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
        """Raise if a dataset is too large, before any work is done."""
        largest = max(datasets, key=lambda dataset: dataset.n_samples)
        if self.n_landmarks is None and largest.n_samples > self.most_points:
            raise InputError(
                f"n_landmarks=None uses all points, and distance {self.name!r} allows "
                f"{self.most_points}; dataset {largest.name!r} has {largest.n_samples}. Pass "
                f"n_landmarks={self.most_points} for points that cover it, or "
                f"n_landmarks={largest.n_samples} to use all, slowly and in much memory."
            )
        return self

    def describe(self, dataset: Dataset, seed: int) -> Diagram:
        """Return the diagram of one dataset."""
        for package in self.packages:  # before the long work
            optional(package, self.name)
        values, radius = dense_points(dataset), 0.0
        if self.n_landmarks is not None and self.n_landmarks < dataset.n_samples:
            rows, radius = farthest_points(dataset, self.n_landmarks)
            values = values[rows] if dataset.kind == "points" else values[np.ix_(rows, rows)]
        distances = pairwise(values, values) if dataset.kind == "points" else values
        # Diagrams of diameters move by at most 2 d_GH ≤ 2 radius (Chazal et al., 2014). Distances
        # by matrix products have a relative error of up to 1e-9.
        error = 2.0 * radius + 1e-9 * float(distances.max())
        with about(dataset.label):
            return Diagram(self.diagram(distances), error)

    @abstractmethod
    def diagram(self, distances: FloatArray) -> FloatArray:
        """Return the bars of an N×N distance matrix, (n, 2)."""

    def to_arrays(self, descriptor: Diagram) -> dict[str, npt.NDArray[Any]]:
        """Return the bars and their error."""
        return {"bars": descriptor.bars, "error": np.asarray(descriptor.error)}

    def from_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Diagram:
        """Return the diagram with these bars."""
        return Diagram(arrays["bars"], float(arrays["error"]))

    def compare(self, first: Diagram, second: Diagram) -> float:
        """Return the bottleneck distance between two diagrams."""
        gudhi = optional("gudhi", self.name)
        if np.array_equal(first.bars, second.bars):
            return 0.0  # gudhi returns the smallest positive number
        return float(gudhi.bottleneck_distance(first.bars, second.bars))

    def error_bound(self, first: Diagram, second: Diagram) -> float:
        """Return the sum of the errors of the two diagrams."""
        return first.error + second.error


@dataclass(frozen=True)
class BottleneckH0(Bottleneck):
    """The bottleneck distance of connected components (H0); see `Bottleneck` for the formula.

    Every bar is (0, length of an edge of the minimum spanning tree), so SciPy's single linkage
    gives the diagram, in double precision and a fraction of ripser's time
    (`benchmarks/bench_topology.py`). O(N²) time and 16 N² bytes per dataset; up to 10,000 points.

    Parameters
    ----------
    n_landmarks
        As of `Bottleneck`.

    Examples
    --------
    >>> import unaligned as ua
    >>> near, apart = [[0.0], [1.0]], [[0.0], [1.25]]
    >>> f"{ua.distance(near, apart, 'bottleneck-h0'):.4f}"
    '0.2500'
    """

    name = "bottleneck-h0"
    summary = "bottleneck distance of connected components (Vietoris-Rips)"
    cost = "O(N²) per dataset, 16 N² bytes; a matching of N bars per pair"
    most_points = 10_000

    def diagram(self, distances: FloatArray) -> FloatArray:
        """Return the bars (0, edge of the minimum spanning tree) and the one that never dies."""
        from scipy.cluster.hierarchy import linkage
        from scipy.spatial.distance import squareform

        deaths = np.array([np.inf])
        if len(distances) > 1:
            merged = linkage(squareform(distances, checks=False), "single")[:, 2]
            deaths = np.append(merged[merged > 0], np.inf)
        return np.column_stack([np.zeros_like(deaths), deaths])


@dataclass(frozen=True)
class BottleneckH1(Bottleneck):
    """The bottleneck distance of loops (H1); see `Bottleneck` for the formula.

    By ripser (Bauer, 2021), on ranks of distances and so in double precision. About 4 s per
    dataset at N=1000, but three minutes and 1.5 GB at N=2000; up to 1,500 points.

    Parameters
    ----------
    n_landmarks
        As of `Bottleneck`.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    >>> f"{ua.distance(square, 3 * square, 'bottleneck-h1'):.4f}"  # (1, √2) and (3, 3√2)
    '0.6213'
    """

    name = "bottleneck-h1"
    summary = "bottleneck distance of loops (Vietoris-Rips)"
    cost = "ripser per dataset: 4 s at N=1000, 3 min at 2000; a matching per pair"
    packages = ("gudhi", "ripser")
    most_points = 1500

    def diagram(self, distances: FloatArray) -> FloatArray:
        """Return ripser's bars; a loop has at least 4 vertices."""
        return rips_bars(distances, 1, self.name) if len(distances) > 3 else np.empty((0, 2))


@dataclass(frozen=True)
class BottleneckH2(Bottleneck):
    """The bottleneck distance of cavities (H2); see `Bottleneck` for the formula.

    By gudhi's edge collapse and ripser (Bauer, 2021), in double precision. About 0.5 s per
    dataset at N=400, where ripser alone takes 10 s, and 4 to 8 s at N=1000; up to 1,500 points.

    Parameters
    ----------
    n_landmarks
        As of `Bottleneck`.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> octahedron = np.vstack([np.eye(3), -np.eye(3)])
    >>> f"{ua.distance(octahedron, np.eye(3), 'bottleneck-h2'):.4f}"  # (√2, 2) and none
    '0.2929'
    """

    name = "bottleneck-h2"
    summary = "bottleneck distance of cavities (Vietoris-Rips)"
    cost = "ripser per dataset: 0.5 s at N=400, 8 s at 1000; a matching per pair"
    packages = ("gudhi", "ripser")
    most_points = 1500

    def diagram(self, distances: FloatArray) -> FloatArray:
        """Return ripser's bars; a cavity has at least 6 vertices."""
        return collapsed_bars(distances, 2, self.name) if len(distances) > 5 else np.empty((0, 2))
