"""Gromov-Wasserstein: conditional gradient, and landmarks where points are many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from .._check import FloatArray, IndexArray
from ..errors import AccuracyWarning, warn
from ._coupling import Coupling, optimal_coupling, simplex, warn_not_converged
from ._points import squared_distances

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
