"""What the topological distances share: distances between points, and optional packages."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..errors import InputError, required
from ._points import dense_points, squared_distances

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
