"""Gromov-Wasserstein: by conditional gradient, through landmarks for large datasets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy import sparse

from .. import _check
from .._check import FloatArray
from ..data.dataset import Dataset
from ..errors import AccuracyWarning, warn
from ..spectra.signature import Signature
from .base import DataDescriptor, dense_points, squared_distances
from .wasserstein import TransportDistance, optimal_coupling, simplex, warn_not_converged


@dataclass(frozen=True)
class _Spaces:
    """Two spaces of weighted points, with the gradient of the loss."""

    C1: FloatArray
    C2: FloatArray
    first: FloatArray
    second: FloatArray
    by_products: bool  # faster; by differences there is no cancellation

    @cached_property
    def weights(self) -> tuple[FloatArray, FloatArray]:
        """The weights p and q of the points."""
        return self.first / self.first.sum(), self.second / self.second.sum()

    @cached_property
    def squares(self) -> tuple[FloatArray, FloatArray]:
        """The terms of the gradient that depend on the row or the column alone."""
        p, q = self.weights
        return self.C1**2 @ p, self.C2**2 @ q

    def gradient(
        self, vertex: sparse.csr_array, before: tuple[sparse.csr_array, FloatArray] | None = None
    ) -> FloatArray:
        """Return half of the gradient at a vertex; that of `before`, a vertex, is overwritten.

        O(N²) for each row of the vertex that differs from the one before.
        """
        if not self.by_products:  # squared distances between rows of matched columns
            i, j = vertex.nonzero()
            root = np.sqrt(vertex.data)
            return squared_distances(self.C1[:, i] * root, self.C2[:, j] * root)
        if before is None:
            rows, columns = self.squares
            change, half = vertex, rows[:, None] + columns
        else:
            change, half = vertex - before[0], before[1]
        moved = np.flatnonzero(np.diff(change.indptr))
        half -= self.C1[moved].T @ (2.0 * change[moved] @ self.C2)
        return half

    def vertex(self, gradient: FloatArray) -> sparse.csr_array:
        """Return the coupling that minimises the linearised loss, of at most N + M - 1 entries."""
        solve = simplex if self.by_products else optimal_coupling
        found = solve(gradient, self.first, self.second)
        if found.complaint:
            remedy = "Compare fewer rows with subsample=."
            warn_not_converged("the network simplex", found.complaint, remedy)
        return sparse.csr_array(found.plan)


def square_loss(
    C1: FloatArray, C2: FloatArray, first: FloatArray, second: FloatArray, max_iter: int
) -> float:
    r"""Return a local minimum of the square loss over couplings, by conditional gradient.

    .. math:: L(T) = \sum_{ijkl} (C^1_{ik} - C^2_{jl})^2 T_{ij} T_{kl} = \langle G(T), T \rangle,
              \quad G(T)_{ij} = \sum_{kl} (C^1_{ik} - C^2_{jl})^2 T_{kl}

    of points with multiplicities `first` and `second`. The algorithm of POT's
    `gromov_wasserstein` (Vayer et al., 2019) from the same start :math:`T = p q^T`, with a
    tenth of its dense products or so: a vertex has at most N + M - 1 entries, so one of the two
    products in :math:`C^1 T C^2` is sparse; the other takes only the rows in which a vertex
    differs from the one before, few of them after some steps; and G is updated along the line
    search. A loss far below the squared distances is dominated by cancellation; then G is
    computed from differences.
    """
    p, q = first / first.sum(), second / second.sum()
    scale = float(p @ C1**2 @ p + q @ C2**2 @ q)
    if scale == 0:
        return 0.0
    root = float(np.sqrt(scale))
    C1, C2 = C1 / root, C2 / root
    spaces = _Spaces(C1, C2, first, second, by_products=True)
    loss, converged = _conditional_gradient(spaces, max_iter)
    if loss < 1e-8:  # relative to mean squared distances: products have lost half of the digits
        loss, converged = _conditional_gradient(replace(spaces, by_products=False), max_iter)
        rounding = 2.0 * float(np.finfo(float).eps)  # of both distance matrices
        smallest = max(loss**0.5, min(_neighbour_distance(C1), _neighbour_distance(C2)))
        if rounding > 1e-6 * smallest:
            warn(
                "some points are so far out that rounding of their distances may change the "
                f"value, {root * loss**0.5:.3g}, by {root * rounding:.1g}. Drop them, or compare "
                "the clusters one by one.",
                AccuracyWarning,
            )
    if not converged:
        reason = f"max_iter={max_iter} steps were not enough"
        warn_not_converged("conditional gradient", reason, "Raise max_iter.")
    return scale * loss


def _conditional_gradient(spaces: _Spaces, max_iter: int) -> tuple[float, bool]:
    """Return a local minimum, and whether the iteration converged."""
    (p, q), C1, C2 = spaces.weights, spaces.C1, spaces.C2
    a, b = C1 @ p, C2 @ q
    T, G = np.outer(p, q), (a[:, None] - b) ** 2
    # The rest of G(p qᵀ) depends on the row or the column alone, so it is the same for all
    # couplings. Adding it would cancel the digits that distinguish points of one cluster.
    rest = float(p @ (C1 - a[:, None]) ** 2 @ p + q @ (C2 - b[:, None]) ** 2 @ q)
    loss = float(np.vdot(G, T)) + rest
    before = None
    for _ in range(max_iter):
        vertex = spaces.vertex(G)
        there = spaces.gradient(vertex, before)
        before = vertex, there
        step = vertex - T
        quadratic, linear = float(np.vdot(there - G, step)), 2.0 * float(np.vdot(G, step))
        if quadratic > 0:  # line search: minimise quadratic·t² + linear·t over [0, 1]
            size = min(1.0, max(0.0, -linear / (2.0 * quadratic)))
        else:
            size = 1.0 if quadratic + linear < 0 else 0.0
        for now, then in ((T, vertex.toarray()), (G, there)):
            now *= 1.0 - size  # not now + size (then - now), which keeps the rounding of `now`
            now += size * then
        rest *= 1.0 - size
        loss = max(float(np.vdot(G, T)) + rest, 0.0)
        # POT's tolerance on the relative decrease of the loss, and the rounding of the gradient.
        rounding = 1e-15 if spaces.by_products else 1e-30
        if -size * (quadratic * size + linear) <= max(1e-9 * loss, rounding):
            return loss, True
    return loss, False


def _neighbour_distance(C: FloatArray) -> float:
    """Return the 10 % quantile of the distances to nearest distinct points; inf if none exist."""
    nearest = C.min(axis=1, where=C > 0, initial=np.inf)
    # Not a larger share: clusters far out collapse by rounding and have no neighbours left.
    return float(np.quantile(nearest, 0.1, method="lower"))


@dataclass(frozen=True)
class GromovWasserstein(TransportDistance):
    r"""The Gromov-Wasserstein distance, the distortion of distances in matching two spaces.

    .. math:: d = \Big(\min_{T \in \Pi} \sum_{ijkl}
              (C^1_{ik} - C^2_{jl})^2 T_{ij} T_{kl}\Big)^{1/2}

    with the Euclidean distances C (not squared) within each dataset, or the given matrices, and
    uniform weights (Mémoli, 2011; Peyré et al., 2016). The root, without Mémoli's factor ½;
    `squared=True` gives POT's square loss. The problem is not convex: the value is the local
    minimum that conditional gradient reaches from the product coupling, an upper bound.
    `method="auto"` depends on the largest dataset and warns if it approximates:

    - `"exact"`: conditional gradient as in POT, up to 2000 rows.
    - `"low-rank"`: couplings through `rank` random landmarks, each weighted by the points
      nearest to it. This moves the global minimum by at most twice the root mean square distance
      of points to their landmarks, summed over both datasets. The local minimum reached has no
      such bound, so `error_bounds` has none.

    POT's low-rank solver uses squared distances, another number; its entropic one was slower and
    far from the minimum on tori (N=1000), so neither is offered.

    O(N³) time per step and pair (about 20 steps), 130 N² bytes (145 with outliers).

    Parameters
    ----------
    method
        `"auto"`, `"exact"` or `"low-rank"`.
    squared
        Return POT's loss instead of its root.
    rank
        The number of landmarks of `"low-rank"`.
    max_iter
        The largest number of steps.

    Examples
    --------
    >>> import numpy as np
    >>> import unaligned as ua
    >>> short, long = np.array([[0.0], [1.0]]), np.array([[0.0, 0.0], [0.0, 3.0]])
    >>> round(ua.distance(short, long, "gromov-wasserstein", squared=True), 6)
    2.0
    """

    name = "gromov-wasserstein"
    summary = "Gromov-Wasserstein distance of the distance matrices"
    cost = "O(N³) per pair and step (some 20), 130 N² bytes"
    kinds = ("points", "distances")
    exact_rows = 2000

    squared: bool = False
    rank: int = 1000
    max_iter: int = 1000

    def __post_init__(self) -> None:
        _check.one_of("method", self.method, ("auto", "exact", "low-rank"))
        _check.flag("squared", self.squared)
        _check.positive_int("rank", self.rank, minimum=2)
        _check.positive_int("max_iter", self.max_iter)

    def fit(self, datasets: Sequence[Dataset | Signature]) -> Self:
        """Choose one method for the whole collection."""
        largest = max(dataset.n_samples for dataset in datasets)
        return self.choose_method(largest, "low-rank", f"through {self.rank} landmarks each")

    def content(self, dataset: Dataset, seed: int) -> tuple[FloatArray, FloatArray, bool]:
        """Return points or distances, the weight of each, and whether they are distances."""
        values = dense_points(dataset)
        precomputed = dataset.kind == "distances"
        if self.method != "low-rank" or len(values) <= self.rank:
            return values, np.ones(len(values)), precomputed
        rng = dataset.generator(seed)
        rows = np.sort(rng.choice(len(values), size=self.rank, replace=False))
        landmarks = values[np.ix_(rows, rows)] if precomputed else values[rows]
        if precomputed:
            nearest = values[:, rows].argmin(axis=1)
        else:
            from sklearn.metrics import pairwise_distances_argmin

            nearest = pairwise_distances_argmin(values, landmarks)
        counts = np.bincount(nearest, minlength=self.rank).astype(np.float64)
        return landmarks, counts, precomputed

    def arrays(self, content: tuple[FloatArray, FloatArray, bool]) -> tuple[FloatArray, ...]:
        """Return whether they are distances, the points or distances, and their weights."""
        values, counts, precomputed = content
        return np.array([float(precomputed)]), values, counts

    def between(self, first: DataDescriptor, second: DataDescriptor) -> float:
        """Return the distance by the chosen method."""
        (C1, counts1), (C2, counts2) = _space(first), _space(second)
        loss = square_loss(C1, C2, counts1, counts2, self.max_iter)
        return loss if self.squared else float(np.sqrt(loss))


def _space(descriptor: DataDescriptor) -> tuple[FloatArray, FloatArray]:
    """Return the distance matrix and the weights, without landmarks of weight 0."""
    values, counts, precomputed = descriptor.content
    kept = counts > 0
    values = values[kept]
    C = values[:, kept] if precomputed else np.sqrt(squared_distances(values, values))
    return C, counts[kept]
