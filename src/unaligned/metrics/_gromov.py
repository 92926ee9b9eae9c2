"""Gromov-Wasserstein: conditional gradient, and landmarks where points are many."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._check import FloatArray, IndexArray
from ..errors import AccuracyWarning, warn

_SIMPLEX_STEPS = 10_000_000  # POT's 100,000 are not enough from N=2000 on
_TOLERANCE = 1e-9  # POT's own, on the relative change of the loss
_ROUNDING = 1e-15  # relative to the mean squared distances: what cancellation leaves
_LARGE = 1e9  # costs of this size are far above the absolute tolerance of POT's simplex


def square_loss(
    C1: FloatArray, C2: FloatArray, p: FloatArray, q: FloatArray, max_iter: int
) -> float:
    r"""Return a local minimum of the square loss over couplings, by conditional gradient.

    .. math:: L(T) = \sum_{ijkl} (C^1_{ik} - C^2_{jl})^2 T_{ij} T_{kl}
              = p^T (C^1)^{\circ 2} p + q^T (C^2)^{\circ 2} q - 2 \langle C^1 T C^2, T \rangle

    The algorithm of POT's `gromov_wasserstein` (Vayer et al., 2019) from the same start
    :math:`T = p q^T`, with POT's network simplex, and a quarter of its dense products: the
    vertex that the simplex returns has at most N + M - 1 entries, so one of the two products is
    sparse, and :math:`C^1 T C^2` follows the line search instead of being worked out again.
    What of it depends on the row or the column alone is the same for all couplings, and left
    out: between clusters far apart it eats the digits that tell the points of one apart.

    O(N M (N + M)) time per step, some 130 N M bytes.
    """
    scale = float(p @ C1**2 @ p + q @ C2**2 @ q)
    if scale == 0:
        return 0.0
    loss = 1.0 - 2.0 * float(p @ C1 @ p) * float(q @ C2 @ q) / scale
    root = float(np.sqrt(scale))
    C1, C2 = C1 / root, C2 / root
    C1 -= p @ C1
    C2 -= (C2 @ q)[:, None]
    return scale * _conditional_gradient(C1, C2, p, q, loss, max_iter)


def _conditional_gradient(
    C1: FloatArray, C2: FloatArray, p: FloatArray, q: FloatArray, loss: float, max_iter: int
) -> float:
    """Return a local minimum from the loss of the product coupling, for centred matrices."""
    from ot import emd

    T = np.outer(p, q)
    CTC = np.outer(C1 @ p, q @ C2)
    for _ in range(max_iter):
        cost = CTC * (-_LARGE / (float(np.abs(CTC).max()) or 1.0))
        vertex, log = emd(p, q, cost, numItermax=_SIMPLEX_STEPS, log=True)
        if log["warning"]:
            remedy = "Compare fewer rows with subsample=."
            warn_not_converged("the network simplex", log["warning"], remedy)
        step, CSC = vertex - T, (C1 @ sparse.csr_array(vertex)) @ C2 - CTC
        quadratic, linear = -2.0 * float(np.vdot(CSC, step)), -4.0 * float(np.vdot(CTC, step))
        size = _line_search(quadratic, linear)
        T += size * step
        CTC += size * CSC
        change = size * (quadratic * size + linear)
        loss += change
        if abs(change) <= max(_TOLERANCE * abs(loss), _ROUNDING):
            return max(loss, 0.0)
    reason = f"max_iter={max_iter} steps were not enough"
    warn_not_converged("conditional gradient", reason, "Raise max_iter.")
    return max(loss, 0.0)


def shares(points: FloatArray, landmarks: IndexArray, *, precomputed: bool) -> FloatArray:
    """Return the share of points that are nearest to each landmark, (r,).

    O(N r d) time, blocked.
    """
    from sklearn.metrics import pairwise_distances_argmin

    if precomputed:
        nearest = points[:, landmarks].argmin(axis=1)
    else:
        nearest = pairwise_distances_argmin(points, points[landmarks])
    counts: FloatArray = np.bincount(nearest, minlength=landmarks.size) / len(points)
    return counts


def warn_not_converged(solver: str, reason: object, remedy: str) -> None:
    """Warn that a transport solver stopped early."""
    warn(
        f"{solver} did not converge: {reason}. The value is not the minimum that was asked for. "
        f"{remedy}",
        AccuracyWarning,
    )


def _line_search(quadratic: float, linear: float) -> float:
    """Return where quadratic·t² + linear·t is smallest for t between 0 and 1."""
    if quadratic > 0:
        return min(1.0, max(0.0, -linear / (2.0 * quadratic)))
    return 1.0 if quadratic + linear < 0 else 0.0
