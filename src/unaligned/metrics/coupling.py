"""Gromov-Wasserstein: conditional gradient, and landmarks where points are many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from .._check import FloatArray, IndexArray
from ..errors import AccuracyWarning, warn
from .points import squared_distances

_STEPS = 10_000_000  # POT's 100,000 are not enough from N=2000 on
_LARGE = 1e9  # costs of this size are far above the absolute tolerance of POT's simplex
_GAP = 1e-9  # a share of the cost: where more may be missing, the simplex is run again
_LOST = 1e-8  # and where more than this may be missing in the end, it is said
_ROOM = 100.0  # how far a cap stays above the costs that a coupling pays


class Coupling(NamedTuple):
    """A coupling, (N, M), the potential of its rows, (N,), and why it may not be the best."""

    plan: FloatArray
    potential: FloatArray
    complaint: str | None


def simplex(cost: FloatArray, first: FloatArray, second: FloatArray) -> Coupling:
    """Return a coupling of least cost, as POT's network simplex finds it.

    Weights are whole numbers, counts of points: they are made to sum to the same whole number,
    so no sliver of mass is left over, which would pay for the way to a point far out. The
    coupling sums to 1. It is as good as POT's tolerance, some 1e-15 (N + M) of the largest cost.

    About O(N³) time at worst, 50 N² bytes.

    Examples
    --------
    >>> counts = np.ones(2)
    >>> simplex(np.array([[3.0, 1.0], [1.0, 3.0]]), counts, counts).plan
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    from ot import emd

    unit = _LARGE / (float(np.abs(cost).max()) or 1.0)
    common = float(np.lcm(int(first.sum()), int(second.sum())))
    masses = (counts * (common / counts.sum()) for counts in (first, second))
    plan, log = emd(*masses, cost * unit, numItermax=_STEPS, log=True)
    plan /= common
    return Coupling(plan, log["u"] / unit, log["warning"])


def optimal_coupling(cost: FloatArray, first: FloatArray, second: FloatArray) -> Coupling:
    r"""Return a coupling of least cost, whatever costs there are beside those that it pays.

    For any potential u of the rows no coupling of p and q costs less than

    .. math:: \sum_i p_i u_i + \sum_j q_j \min_i (C_{ij} - u_i),

    so what is missing is bounded whatever the simplex did. Where that is not next to nothing,
    because some costs are so large that its tolerance covers the others, it is run again on
    min(C, c) with a cap c far above all that the coupling pays. If the new coupling pays nothing
    above c, it is optimal for C too: it costs the same under both, and no coupling costs less
    under C than under min(C, c).

    Costs must not be negative. The time of `simplex`, twice beside points far out.

    Examples
    --------
    >>> far = np.array([[0.0, 1e30, 1e30], [1e30, 2.0, 1.0], [1e30, 1.0, 2.0]])
    >>> 3 * optimal_coupling(far, np.ones(3), np.ones(3)).plan
    array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 1., 0.]])
    """
    best = found = simplex(cost, first, second)
    least = gap = _missing(cost, found, first, second)
    cap = float(cost.max())
    while gap > _GAP and found.complaint is None:
        lower = _ROOM * float(cost.max(where=found.plan > 0, initial=0.0))
        if lower >= cap:
            break
        cap = lower
        found = simplex(np.minimum(cost, cap), first, second)
        gap = _missing(cost, found, first, second)
        if gap < least:
            best, least = found, gap
    if best.complaint is None and least > _LOST:
        reason = f"beside costs of up to {cost.max():.1g} it may miss {least:.1g} of the cost"
        return best._replace(complaint=reason)
    return best


def sorted_cost(x: FloatArray, y: FloatArray) -> float:
    """Return the least mean squared difference over couplings of numbers, by their order.

    Shares are counted in whole numbers, one point of x being M and one of y being N: sums of 1/N
    and of 1/M leave slivers between the two, which pay for the way to a point far out.

    O(N log N) time.

    Examples
    --------
    >>> sorted_cost(np.array([0.0, 2.0]), np.array([5.0, 1.0]))
    5.0
    """
    n, m = len(x), len(y)
    edges = np.union1d(np.arange(n + 1) * m, np.arange(m + 1) * n)
    starts = edges[:-1]
    gaps = np.sort(x)[starts // m] - np.sort(y)[starts // n]
    return float(np.diff(edges) @ gaps**2) / (n * m)


def _missing(cost: FloatArray, found: Coupling, first: FloatArray, second: FloatArray) -> float:
    """Return how much less than this coupling another may cost, at most, as a share."""
    value = float(np.vdot(found.plan, cost))
    if value == 0:
        return 0.0
    p, q, u = first / first.sum(), second / second.sum(), found.potential
    return (value - float(p @ u + (cost - u[:, None]).min(axis=0) @ q)) / value


def warn_not_converged(solver: str, reason: object, remedy: str) -> None:
    """Warn that a transport solver stopped early."""
    warn(
        f"{solver} did not converge: {reason}. The value is not the minimum that was asked for. "
        f"{remedy}",
        AccuracyWarning,
    )


_TOLERANCE = 1e-9  # POT's own, on the relative change of the loss
_CANCELLED = 1e-8  # below, in mean squared distances, products have lost half of the digits
_BLUR = 2 * float(np.finfo(float).eps)  # of both distance matrices, in root mean squares
_SEEN = 1e-6  # a share of the value or of the distances to neighbours that is worth a word


@dataclass(frozen=True)
class _Products:
    """Two spaces and the gradient of the loss by matrix products, good to rounding of C²."""

    C1: FloatArray
    C2: FloatArray
    first: FloatArray
    second: FloatArray

    rounding: ClassVar[float] = 1e-15

    @cached_property
    def weights(self) -> tuple[FloatArray, FloatArray]:
        """The shares p and q of the points."""
        return self.first / self.first.sum(), self.second / self.second.sum()

    @cached_property
    def squares(self) -> tuple[FloatArray, FloatArray]:
        """What of the gradient depends on the row and on the column alone."""
        p, q = self.weights
        return self.C1**2 @ p, self.C2**2 @ q

    def gradient(self, vertex: FloatArray) -> FloatArray:
        """Return half of the gradient at a vertex, whose few entries make one product sparse."""
        rows, columns = self.squares
        half: FloatArray = (self.C1 @ sparse.csr_array(vertex)) @ self.C2
        half *= -2.0
        half += rows[:, None]
        half += columns
        return half

    def vertex(self, gradient: FloatArray) -> FloatArray:
        """Return the coupling in which the gradient is least."""
        return _plan(simplex(gradient, self.first, self.second))


class _Differences(_Products):
    """The same from differences, which cancel nothing: slower beside points far out."""

    rounding: ClassVar[float] = 1e-30

    def gradient(self, vertex: FloatArray) -> FloatArray:
        """Return half of the gradient: squared distances between rows of matched columns."""
        i, j = np.nonzero(vertex)
        root = np.sqrt(vertex[i, j])
        return squared_distances(self.C1[:, i] * root, self.C2[:, j] * root)

    def vertex(self, gradient: FloatArray) -> FloatArray:
        """Return the coupling in which the gradient is least."""
        return _plan(optimal_coupling(gradient, self.first, self.second))


def square_loss(
    C1: FloatArray, C2: FloatArray, first: FloatArray, second: FloatArray, max_iter: int
) -> float:
    r"""Return a local minimum of the square loss over couplings, by conditional gradient.

    .. math:: L(T) = \sum_{ijkl} (C^1_{ik} - C^2_{jl})^2 T_{ij} T_{kl} = \langle G(T), T \rangle,
              \quad G(T)_{ij} = \sum_{kl} (C^1_{ik} - C^2_{jl})^2 T_{kl}

    of points that count `first` and `second` times. The algorithm of POT's `gromov_wasserstein`
    (Vayer et al., 2019) from the same start :math:`T = p q^T`, with POT's network simplex, and a
    quarter of its dense products: the vertex that the simplex returns has at most N + M - 1
    entries, so one of the two products in :math:`C^1 T C^2` is sparse, and G follows the line
    search instead of being worked out again.

    A loss far below the squared distances, as with points far out or spaces that are nearly the
    same, is what cancellation leaves of the products. Then G is worked out from differences.

    O(N M (N + M)) time per step, some 130 N M bytes.
    """
    p, q = first / first.sum(), second / second.sum()
    scale = float(p @ C1**2 @ p + q @ C2**2 @ q)
    if scale == 0:
        return 0.0
    root = float(np.sqrt(scale))
    C1, C2 = C1 / root, C2 / root
    loss, converged = _conditional_gradient(_Products(C1, C2, first, second), max_iter)
    if loss < _CANCELLED:
        loss, converged = _conditional_gradient(_Differences(C1, C2, first, second), max_iter)
        if max(loss**0.5, min(_neighbours(C1), _neighbours(C2))) < _BLUR / _SEEN:
            _warn_rounding(root * loss**0.5, root * _BLUR)
    if not converged:
        reason = f"max_iter={max_iter} steps were not enough"
        warn_not_converged("conditional gradient", reason, "Raise max_iter.")
    return scale * loss


def _conditional_gradient(spaces: _Products, max_iter: int) -> tuple[float, bool]:
    """Return a local minimum, and whether it was reached."""
    (p, q), C1, C2 = spaces.weights, spaces.C1, spaces.C2
    a, b = C1 @ p, C2 @ q
    T, G = np.outer(p, q), (a[:, None] - b) ** 2
    # The rest of G(p qᵀ) depends on the row or the column alone: it is the same for all
    # couplings, and would eat the digits that tell the points of a cluster apart.
    rest = float(p @ (C1 - a[:, None]) ** 2 @ p + q @ (C2 - b[:, None]) ** 2 @ q)
    loss = float(np.vdot(G, T)) + rest
    for _ in range(max_iter):
        vertex = spaces.vertex(G)
        there = spaces.gradient(vertex)
        step = vertex - T
        quadratic, linear = float(np.vdot(there - G, step)), 2.0 * float(np.vdot(G, step))
        size = _line_search(quadratic, linear)
        for now, then in ((T, vertex), (G, there)):
            now *= 1.0 - size  # not now + size (then - now): what is gone must leave no rounding
            then *= size
            now += then
        rest *= 1.0 - size
        loss = max(float(np.vdot(G, T)) + rest, 0.0)
        if -size * (quadratic * size + linear) <= max(_TOLERANCE * loss, spaces.rounding):
            return loss, True
    return loss, False


def followers(points: FloatArray, landmarks: IndexArray, *, precomputed: bool) -> FloatArray:
    """Return how many points are nearest to each landmark, (r,).

    O(N r d) time, blocked.
    """
    from sklearn.metrics import pairwise_distances_argmin

    if precomputed:
        nearest = points[:, landmarks].argmin(axis=1)
    else:
        nearest = pairwise_distances_argmin(points, points[landmarks])
    return np.bincount(nearest, minlength=landmarks.size).astype(np.float64)


def _plan(found: Coupling) -> FloatArray:
    """Return the plan of a coupling; warn where it is not the best."""
    if found.complaint:
        remedy = "Compare fewer rows with subsample=."
        warn_not_converged("the network simplex", found.complaint, remedy)
    return found.plan


def _line_search(quadratic: float, linear: float) -> float:
    """Return where quadratic·t² + linear·t is smallest for t between 0 and 1."""
    if quadratic > 0:
        return min(1.0, max(0.0, -linear / (2.0 * quadratic)))
    return 1.0 if quadratic + linear < 0 else 0.0


def _neighbours(C: FloatArray) -> float:
    """Return how far the closest tenth of points is from others; inf if all are one.

    No more than a tenth: clouds far out collapse by rounding, and have no neighbours left.
    """
    nearest = C.min(axis=1, where=C > 0, initial=np.inf)
    return float(np.quantile(nearest, 0.1, method="lower"))


def _warn_rounding(value: float, blur: float) -> None:
    warn(
        f"some points are so far out that rounding of their distances may move the value, "
        f"{value:.3g}, by {blur:.1g}. Leave them out, or compare the parts one by one.",
        AccuracyWarning,
    )
