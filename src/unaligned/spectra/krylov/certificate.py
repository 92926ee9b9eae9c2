"""When a block Krylov space is good enough: bounds on the eigenvalues that it may have missed.

`krylov.Krylov` states the bound and proves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..._check import FloatArray
from ..base import Accuracy, Spectrum, negative_mass, rounding_error
from .lanczos import EPS, BlockLanczos, complement_norm

SOLVER = "krylov"
# The norm c of the complement, as a share of the shift τ, that a probe is asked to confirm:
# beyond it the correction with 1/(τ - c) is large whatever the basis.
HOPED_SHARE = 0.9


def affordable_shift(theta: FloatArray, gamma: float, budget: float) -> float:
    """Return the largest τ for which lifting all θᵢ below it to τ costs at most `budget`.

    The cost is the 2-norm of log((max(θ, τ) + γ) / (θ + γ)). A larger shift makes the
    correction BᵀB/(τ - c) smaller, so the largest that can be paid is the best.

    Examples
    --------
    >>> bool(np.isclose(affordable_shift(np.array([1.0, 0.5]), 0.0, np.log(1.2)), 0.6))
    True
    """
    logs = np.log(theta + gamma)
    low, high = float(logs[-1]), float(logs[0]) + min(budget, 20.0)
    for _ in range(60):
        middle = 0.5 * (low + high)
        affordable = np.linalg.norm(np.maximum(middle - logs, 0.0)) <= budget
        low, high = (middle, high) if affordable else (low, middle)
    return max(float(np.exp(low)) - gamma, 0.0)


class Snapshot:
    """What one basis says: Ritz values, what is left outside, and what would be good enough."""

    def __init__(self, basis: BlockLanczos, n_eigenvalues: int, accuracy: Accuracy) -> None:
        operator = basis.operator
        self.basis, self.k = basis, n_eigenvalues
        self.ritz = basis.ritz_values()
        self.rounding = _rounding(basis, float(np.abs(self.ritz[[0, -1]]).max()))
        # A basis of fewer than K columns is no obstacle: clipped eigenvalues are at least 0.
        self.theta = np.maximum(_leading(self.ritz, self.k, 0.0), 0.0)
        self.remainder = np.inf
        if operator.definite:
            trace = operator.trace()
            left = max(trace - basis.trace(), 0.0)
            self.remainder = left + self.rounding + 4.0 * EPS * abs(trace)
        # Below rounding there is nothing to resolve; with γ = 0 one would try for ever.
        self.gamma = max(accuracy.gamma + self.rounding, float(np.finfo(np.float64).tiny))
        unavoidable = self.spectrum("exact", self.theta).total_log_error(self.gamma)
        self.target = max(0.95 * accuracy.tol, 2.0 * unavoidable)
        self.shift = affordable_shift(self.theta, self.gamma, 0.5 * self.target)

    def spectrum(self, kind: str, upper: FloatArray, slack: float = 0.0) -> Spectrum:
        """Return the Ritz values with bounds that allow for rounding."""
        return Spectrum(
            self.theta,
            lower=np.maximum(self.theta - self.rounding, 0.0),
            upper=np.maximum(upper, self.theta) + self.rounding,
            slack=slack,
            bound_kind=kind if self.basis.operator.definite else "none",
            solver=SOLVER,
        )

    def good(self, spectrum: Spectrum) -> bool:
        """Tell whether a bound meets the target."""
        return spectrum.total_log_error(self.gamma) <= self.target

    def upper(self, complement: float, shift: float) -> FloatArray:
        """Return max(τ, λᵢ(T + E Rᵀ M R Eᵀ)), (K,); inf unless τ > c."""
        gap = shift - complement - self.rounding
        if not gap > 0:
            return np.full(self.k, np.inf)
        factor = self.basis.residual
        correction = factor.T @ factor / gap
        if self.basis.operator.definite:
            chord = self.basis.ahead() / gap
            chord[np.diag_indices_from(chord)] += 1.0
            correction = factor.T @ chord @ factor / shift
        values = self.basis.ritz_values(correction)
        values = values + _rounding(self.basis, float(values[0]))
        return np.maximum(_leading(values, self.k, shift), shift)


@dataclass
class Judge:
    """Decides when a basis is good enough, and remembers what it learnt of the complement."""

    basis: BlockLanczos
    n_eigenvalues: int
    accuracy: Accuracy
    rng: np.random.Generator
    complement: float = np.inf  # ≥ λ_max(C); C only shrinks as the basis grows: it stays true
    probe_columns: int = 0
    checks: int = 0
    seen: FloatArray | None = None
    now: Snapshot = field(init=False)

    def verdict(self, *, final: bool) -> Spectrum | None:
        """Return the spectrum if it is good enough, or `final`; otherwise None."""
        now = Snapshot(self.basis, self.n_eigenvalues, self.accuracy)
        self.checks, self.now = self.checks + 1, now
        if self.basis.exhausted:
            return now.spectrum("exact", now.theta)
        found = self._from_trace(now) or self._from_complement(now)
        self.seen = now.theta
        return self._best_effort(now) if final and found is None else found

    def finished(self, spectrum: Spectrum) -> Spectrum:
        """Return the spectrum with its statistics."""
        converged = spectrum.total_log_error(self.accuracy.gamma) <= self.accuracy.tol
        stats = {
            "columns": self.basis.columns,
            "block_size": self.basis.width,
            "probe_columns": self.probe_columns,
            "checks": self.checks,
            "complement_norm": min(self.complement, self.now.remainder),
            "converged": bool(converged),
            "negative_mass": negative_mass(self.now.ritz),
        }
        return replace(spectrum, stats=stats)

    def _from_trace(self, now: Snapshot) -> Spectrum | None:
        """Try what the remaining trace proves: Σ(λᵢ - θᵢ) and c are at most that."""
        if not np.isfinite(now.remainder):
            return None
        spectrum = now.spectrum("certified", now.theta, now.remainder)
        if now.good(spectrum):
            return spectrum
        if now.remainder < now.shift:
            spectrum = now.spectrum("certified", now.upper(now.remainder, now.shift))
        return spectrum if now.good(spectrum) else None

    def _from_complement(self, now: Snapshot) -> Spectrum | None:
        """See whether a hoped-for c would suffice, and ask the complement whether it is true."""
        if not self._settled(now):
            return None
        hoped = HOPED_SHARE * now.shift
        spectrum = now.spectrum("probabilistic", now.upper(hoped, now.shift))
        if not now.good(spectrum):
            return None
        if self.complement > hoped:
            self._probe(hoped)
        return spectrum if self.complement <= hoped else None

    def _settled(self, now: Snapshot) -> bool:
        """Tell whether the Ritz values move so little that the dearer tests are worth it."""
        if self.seen is None:
            return False
        moved = np.log((now.theta + now.gamma) / (self.seen + now.gamma))
        return float(np.linalg.norm(moved)) <= 1e3 * now.target

    def _probe(self, goal: float | None) -> None:
        """Ask the complement for its norm, until it is known to be below or above `goal`."""
        _, upper, columns = complement_norm(self.basis, goal, self.rng)
        self.complement = min(self.complement, upper)
        self.probe_columns += columns

    def _best_effort(self, now: Snapshot) -> Spectrum:
        """Return the Ritz values with the best bound there is, however large."""
        self._probe(None)
        candidates = []
        if np.isfinite(now.remainder):
            candidates.append(now.spectrum("certified", now.theta, now.remainder))
        complement, kind = min((now.remainder, "certified"), (self.complement, "probabilistic"))
        upper = np.full(now.k, np.inf)
        for budget in now.target * 10.0 ** np.arange(7):
            shift = affordable_shift(now.theta, now.gamma, float(budget))
            upper = np.minimum(upper, now.upper(complement, shift))
        upper = np.minimum(upper, now.upper(complement, 2.0 * (complement + now.rounding)))
        candidates.append(now.spectrum(kind, upper))
        return min(candidates, key=lambda spectrum: spectrum.total_log_error(now.gamma))


def _leading(values: FloatArray, count: int, fill: float) -> FloatArray:
    """Return the first `count` of descending values, filled up where there are fewer."""
    leading = np.full(count, fill)
    leading[: values.size] = values[:count]
    return leading


def _rounding(basis: BlockLanczos, largest: float) -> float:
    """Return what floating point may do to a Ritz value, (√N + 2 √m + 16) · eps · ‖W‖.

    √N for products and orthogonalisation, √m for the band solver, which rotates m times;
    measured on flat and multiple spectra, where it is worst: 71 eps at N=m=638, 10 at 5.
    """
    own = (2.0 * np.sqrt(basis.columns) + 16.0) * EPS * max(largest, 0.0)
    return rounding_error(basis.operator, largest) + float(own)
