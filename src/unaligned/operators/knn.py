"""Exact nearest neighbours, their graph, and the affinity between them."""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._check import FloatArray, IndexArray
from ..engine.memory import fits_into_memory
from ..errors import InputError
from .base import MatrixOperator
from .kernel import Kernel
from .pointcloud import (
    Points,
    around_median,
    require_representable,
    squared_distances_of_pairs,
    squared_norms,
)


def nearest_neighbours(points: Points, n_neighbors: int) -> IndexArray:
    r"""Return the k < N nearest other points of every point, (N, k), in ascending order of index.

    Exact: the neighbours have the smallest :math:`\|x_i - x_j\|^2`, summed from differences, and
    ties go to the smaller index. An offset, far points, blocks, threads and the storage (dense
    or CSR) do not change the result. A tree (few features) or matrix products propose
    candidates, whose distances are computed again. Rows for which rounding or ties leave open
    whether other points are as near get more candidates, all if necessary.

    O(N² d) time at worst, as where the distances of nearly all rows tie; O(N k) memory besides
    the points. Sparse points are filled in where more than a tenth is non-zero or some rows
    need more candidates. Where memory does not suffice for that they stay sparse, with the same
    result, but slower if they lie far from the origin.
    """
    points = _checked(points)
    n_samples = int(points.shape[0])
    nearest = np.empty((n_samples, n_neighbors), dtype=np.intp)
    rows = pool = np.arange(n_samples)
    width = n_neighbors + 2  # itself, and one more to see that the others are further
    while rows.size and n_neighbors:
        # A candidate list longer than a sixteenth of all costs more than all distances.
        width = width if width * 16 <= pool.size else pool.size
        search, unsettled = _Search(points, pool), []
        for part in _blocks(rows, width):
            found, settled = search.nearest(part, n_neighbors, width)
            nearest[part[settled]] = found[settled]
            unsettled.append(part[~settled])
        rows = np.concatenate(unsettled)
        if rows.size and pool.size == n_samples:
            points = _filled(points)
            pool = _first_copies(points, n_neighbors + 1)
        width *= 4
    return nearest


def nearest_of_distances(distances: FloatArray, n_neighbors: int) -> IndexArray:
    """Return the k nearest others from a matrix of distances or their squares, (N, k).

    Ties go to the smaller index, as in `nearest_neighbours`. O(N²) time.
    """
    n_samples = len(distances)
    nearest = np.empty((n_samples, n_neighbors), dtype=np.intp)
    for part in _blocks(np.arange(n_samples if n_neighbors else 0), n_samples):
        block = np.array(distances[part], dtype=np.float64)
        block[np.arange(part.size), part] = np.inf
        nearest[part] = _smallest(block, n_neighbors)
    return nearest


class _Search:
    """Proposes candidates for neighbours among a pool of points."""

    def __init__(self, points: Points, pool: IndexArray) -> None:
        from sklearn.neighbors import NearestNeighbors

        self.points, self.pool = points, pool
        # Core-time at N=3000: a tree 0.01 s at d=3 and 0.10 s at d=10, the matrix product 0.05
        # and 0.06. The tree grows slower with N.
        most = 8 if len(pool) <= 10_000 else 15
        tree = not sparse.issparse(points) and points.shape[1] <= most
        # Centred against cancellation in products; a tree takes differences.
        as_given = tree or sparse.issparse(points)
        self._searched: Any = points if as_given else around_median(points)
        self._norms = np.zeros(points.shape[0]) if tree else squared_norms(self._searched)
        search = NearestNeighbors(algorithm="kd_tree" if tree else "brute")
        self._search = search.fit(self._searched[pool])

    def nearest(
        self, rows: IndexArray, n_neighbors: int, width: int
    ) -> tuple[IndexArray, npt.NDArray[np.bool_]]:
        """Return the nearest of `width` candidates, (b, k), and where no other can be as near."""
        candidates, beyond = self._candidates(rows, width)
        squared = squared_distances_of_pairs(
            self.points, np.repeat(rows, candidates.shape[1]), candidates.ravel(), filled=True
        ).reshape(candidates.shape)
        squared[candidates == rows[:, None]] = np.inf
        places = _smallest(squared, n_neighbors)
        furthest = np.take_along_axis(squared, places, axis=1).max(axis=1)
        return np.take_along_axis(candidates, places, axis=1), furthest < beyond

    def _candidates(self, rows: IndexArray, width: int) -> tuple[IndexArray, FloatArray]:
        r"""Return candidates in order of index, (b, w), and a lower bound of ‖x - y‖² of others.

        With u = (d + 8) ε, products give :math:`\|x - y\|^2` up to
        :math:`u (\|x\|^2 + \|y\|^2)`, and :math:`\|y\|^2 \le 2 \|x\|^2 + 2 \|x - y\|^2`: so far
        points affect the precision of their own distances only.
        """
        if width >= self.pool.size:
            every = np.broadcast_to(self.pool, (rows.size, self.pool.size))
            return every, np.full(rows.size, np.inf)
        distances, places = self._search.kneighbors(self._searched[rows], width)
        u = (self.points.shape[1] + 8) * np.finfo(np.float64).eps
        beyond = (1.0 - 4.0 * u) * distances[:, -1] ** 2 - 3.0 * u * self._norms[rows]
        return np.sort(self.pool[places], axis=1), beyond


def _checked(points: Points) -> Points:
    """Return float64 points whose squares are representable, sparse ones if very sparse."""
    if not sparse.issparse(points):
        dense: FloatArray = np.ascontiguousarray(points, dtype=np.float64)
        require_representable(float(np.abs(dense).max(initial=0.0)))
        return dense
    values = sparse.csr_array(points, dtype=np.float64, copy=True)
    values.sum_duplicates()
    values.eliminate_zeros()
    require_representable(float(np.abs(values.data).max(initial=0.0)))
    # Seconds of sparse and dense products for 2000 × 1000: 0.07 and 0.20 with 5 % non-zeros,
    # 0.11 and 0.20 with 10 %, 0.3 and 0.2 with 20 %.
    if values.nnz < 0.1 * values.shape[0] * values.shape[1]:
        return values
    return _filled(values)


def _filled(points: Any) -> Points:
    """Return sparse points as a dense array if memory suffices."""
    if sparse.issparse(points) and fits_into_memory(8 * points.shape[0] * points.shape[1]):
        return np.asarray(points.toarray())
    return points


def _smallest(values: FloatArray, count: int) -> IndexArray:
    """Return the places of the smallest values of every row, ascending; ties go to the left."""
    last = np.partition(values, count - 1, axis=1)[:, count - 1 : count]
    taken, ties = values < last, values == last
    room = count - taken.sum(axis=1, keepdims=True)
    taken |= ties & (np.cumsum(ties, axis=1) <= room)
    return np.asarray(np.nonzero(taken)[1].reshape(-1, count))


def _first_copies(points: Any, count: int) -> IndexArray:
    """Return the rows without those that equal `count` earlier ones: they are not neighbours."""
    seen: Counter[bytes] = Counter()
    kept = []
    for place in range(points.shape[0]):
        if sparse.issparse(points):
            part = slice(points.indptr[place], points.indptr[place + 1])
            row = points.indices[part].tobytes() + points.data[part].tobytes()
        else:
            row = (points[place] + 0.0).tobytes()  # -0.0 equals 0.0, but not its bytes
        key = blake2b(row, digest_size=16).digest()
        seen[key] += 1
        if seen[key] <= count:
            kept.append(place)
    return np.array(kept)


def _blocks(rows: IndexArray, width: int) -> Iterator[IndexArray]:
    """Yield blocks of rows with at most 2²⁰ pairs of rows and candidates."""
    step = max(1, (1 << 20) // width)
    for start in range(0, rows.size, step):
        yield rows[start : start + step]


def neighbour_graph(values: Any, kind: str, n_neighbors: int) -> Any:
    r"""Return the symmetrised graph of exact nearest neighbours, with weights 0 and 1, (N, N).

    .. math:: A_{ij} = 1 \text{ if } i \in N_k(j) \text{ or } j \in N_k(i), \text{ else } 0

    A point is not its own neighbour. Ties go to the smaller index, so there the graph depends
    on the order of rows (see `nearest_neighbours`). A `graph` is returned as it is. O(N² d) time
    at worst, O(N k) memory.
    """
    if kind == "graph":
        return values
    n_samples = int(values.shape[0])
    if n_neighbors >= n_samples:
        raise InputError(
            f"n_neighbors={n_neighbors} needs more than {n_neighbors} samples; there are "
            f"{n_samples}. Lower n_neighbors."
        )
    if kind == "distances":
        distances = values.toarray() if sparse.issparse(values) else values
        nearest = nearest_of_distances(distances, n_neighbors)
    else:
        nearest = nearest_neighbours(values, n_neighbors)
    starts = np.arange(0, nearest.size + 1, n_neighbors)
    directed = sparse.csr_array(
        (np.ones(nearest.size), nearest.ravel(), starts), shape=(n_samples, n_samples)
    )
    return directed.maximum(directed.T)


def neighbour_affinity(
    points: Points, n_neighbors: int, kernel: Kernel, *, precomputed: bool = False
) -> MatrixOperator:
    r"""Return the sparse affinity between near neighbours.

    .. math:: K_{ij} = k(x_i, x_j) \text{ if } i \in N_k(j) \text{ or } j \in N_k(i)

    and 0 elsewhere; every point is its own neighbour and one of the k. Truncating a positive
    kernel leaves negative eigenvalues, so it is not `definite`. Ties go to the smaller index (see
    `nearest_neighbours`). With `precomputed`, `points` are squared distances, (N, N). O(N² d)
    time at worst, O(N k) memory.
    """
    n_samples = int(points.shape[0])
    if n_neighbors > n_samples:
        raise InputError(
            f"n_neighbors={n_neighbors} needs at least as many samples; there are {n_samples}. "
            "Lower n_neighbors, or leave it out to keep all affinities."
        )
    first = np.repeat(np.arange(n_samples), n_neighbors - 1)
    if precomputed:
        second = nearest_of_distances(points, n_neighbors - 1).ravel()
        squared = points[first, second]
    else:
        second = nearest_neighbours(points, n_neighbors - 1).ravel()
        squared = squared_distances_of_pairs(points, first, second)
    weights = kernel.of_squared(squared)
    directed = sparse.csr_array((weights, (first, second)), shape=(n_samples, n_samples))
    matrix = directed.maximum(directed.T) + sparse.eye_array(n_samples, format="csr")
    affinity = MatrixOperator(matrix, definite=False)
    affinity.sigma_squared = kernel.sigma_squared
    affinity.entries_evaluated = int(weights.size)
    return affinity
