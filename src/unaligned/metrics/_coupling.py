"""Optimal couplings by POT's network simplex, with their digits beside points far out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._check import FloatArray
from ..errors import AccuracyWarning, warn

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
