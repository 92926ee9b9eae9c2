"""One factorisation on its way to a certificate: the work of the landmarks solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import eigvalsh

from ..._check import FloatArray
from ...errors import AccuracyWarning, warn
from ...operators.base import PSDOperator
from ...operators.diffusion import DiffusionOperator
from ..base import Accuracy, Spectrum, descending
from .cholesky import (
    FeatureBlock,
    Interval,
    PivotedCholesky,
    density,
    inverse_weights,
    squared_scaling,
    total,
    weighted_sums,
)


@dataclass
class Forecast:
    r"""Residuals by rank, and where they lead.

    Kernels of smooth sets have residuals that fall like :math:`\exp(-B r^p)`, p being about one
    over the dimension. The last two halvings of the rank give B and p.

    Examples
    --------
    >>> forecast = Forecast()
    >>> for rank in range(10, 130, 10):
    ...     forecast.note(rank, float(np.exp(-0.1 * rank)))
    >>> abs(forecast.rank_for(np.exp(-0.1 * 300)) - 300) < 10
    True
    """

    ranks: list[int] = field(default_factory=list)
    logs: list[float] = field(default_factory=list)

    def note(self, rank: int, residual: float) -> None:
        """Remember one residual."""
        self.ranks.append(rank)
        self.logs.append(float(np.log(max(residual, np.finfo(np.float64).tiny))))

    def rank_for(self, goal: float) -> float:
        """Return the rank at which the residual is expected to reach `goal`; inf if never."""
        rank = self.ranks[-1]
        quarter, half, now = np.interp([rank / 4, rank / 2, rank], self.ranks, self.logs)
        ahead = now - np.log(max(goal, np.finfo(np.float64).tiny))
        if ahead <= 0:
            return float(rank)
        first, second = quarter - half, half - now
        if second <= 0:
            return float("inf")
        power = float(np.clip(np.log2(second / first), 0.05, 1.0)) if first > 0 else 1.0
        growth = 1.0 + ahead * (1.0 - 2.0**-power) / second
        return float(rank * min(growth ** (1.0 / power), 1e9))


SOLVER = "landmarks"

# Rows per block of the passes: a scaled copy of this many feature rows is all the memory
# that a pass needs, and the matrix product still runs at full speed.
ROWS_PER_BLOCK = 4096

# The scaling is refreshed whenever the landmarks have grown by this factor: often enough to
# see convergence coming, and all refreshes together cost a few percent of the factorisation.
REFRESH = 1.5

# So many landmarks are needed before their residuals tell where they lead.
FIRST_LOOK = 96


class Run:
    """One factorisation on its way to the certificate that was asked for.

    Attributes
    ----------
    squares
        s² of Eqs. 2-4 and its limits, (N,) each; ones before the first refresh.
    refreshed
        The rank at which they were last worked out.
    bounded
        Whether they have upper limits.
    slack, wanted_slack
        Σ s² ρ, and the one at which `tol` may be met.
    decay
        How much log(slack) fell per landmark of the last block.
    settled
        Whether the K-th eigenvalue is far above the slack, so that s² need not be refreshed.
    """

    def __init__(
        self,
        operator: PSDOperator,
        factor: PivotedCholesky,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
    ) -> None:
        self.operator, self.factor, self.rng = operator, factor, rng
        self.n_eigenvalues, self.accuracy = n_eigenvalues, accuracy
        n = operator.n_samples
        # Eigenvalues of a sample of rows tell when the certificate is worth its N r² flops.
        self.sample = np.sort(rng.permutation(n)[: max(1000, 4 * n_eigenvalues)])
        self.squares = Interval(*(np.ones(n) for _ in range(3)))
        self.slack, self.wanted_slack = float(factor.residual.sum()), np.inf
        self.decay, self.settled, self.bounded = 0.0, False, True
        self.refreshed = self.passes = 0
        self.forecast, self.next_look = Forecast(), FIRST_LOOK
        self.latest: Spectrum | None = None

    @property
    def growing(self) -> bool:
        """Whether there is anything left to factor, and room for it."""
        return self.factor.rank < self.factor.capacity and not self.factor.exhausted

    def grow(self, block_size: int | None) -> None:
        """Add one block of landmarks, a smaller one where the goal is near."""
        size = block_size or min(max(16, self.factor.rank // 8), self._still_needed())
        before, residual = self.factor.rank, self.slack
        self.factor.grow(size, self.rng)
        self.slack = float(self.factor.residual @ self.squares.upper)
        self.decay = np.log(residual / self.slack) / max(self.factor.rank - before, 1)
        self.latest = None
        self.forecast.note(self.factor.rank, self.slack)

    def to_tolerance(self) -> None:
        """Add landmarks until the bound meets `tol`, or there is nothing left to add."""
        while self.growing:
            self.grow(None)
            if self.due() and self.good_enough(self.estimate()):
                return

    def foreseen(self, affordable: float) -> float:
        """Return how many landmarks it may take, on a hopeful view; looks only now and then."""
        if np.isinf(affordable) or self.factor.rank < self.next_look:
            return 0.0
        self.next_look = int(REFRESH * self.factor.rank)
        self.refresh()
        # Fewer landmarks than eigenvalues cannot show the K-th; the trace bounds it.
        trace = float(self.squares.value @ self.factor.diagonal)
        smallest = trace / self.n_eigenvalues
        if self.factor.rank >= 1.25 * self.n_eigenvalues:
            smallest = float(self.estimate().lower[-1])
        return self.forecast.rank_for(self.accuracy.tol * (smallest + self.accuracy.gamma))

    def _still_needed(self) -> int:
        """Return how many landmarks would do if the residual went on as in the last block."""
        if not (self.decay > 0 and 0 < self.wanted_slack < self.slack):
            return self.factor.capacity
        # A tenth more, as proposals are dropped and blocks differ.
        return 4 + int(1.1 * np.log(self.slack / self.wanted_slack) / self.decay)

    def due(self) -> bool:
        """Whether the residual has become small enough for another look; O(N) mostly."""
        if not self.settled and self.factor.rank >= REFRESH * self.refreshed:
            self.refresh()
        return self.slack <= self.wanted_slack

    def refresh(self) -> None:
        """Work out s² and its limits from the features: two passes, O(N r)."""
        if self.refreshed < self.factor.rank:
            squares = _scaling(self.operator, self.factor)
            # Entries of either sign: row sums that may be 0 leave s² without an upper limit.
            self.bounded = bool(np.isfinite(squares.upper).all())
            self.squares = squares if self.bounded else squares._replace(upper=squares.value)
            self.slack = float(self.factor.residual @ self.squares.upper)
            self.refreshed = self.factor.rank
            self.passes += 2

    def estimate(self) -> Spectrum:
        """Return the spectrum that a sample of the rows promises."""
        if self.settled or self.sample.size == self.operator.n_samples:
            return self.spectrum()
        self.refresh()
        share = self.operator.n_samples / self.sample.size
        weights = np.sqrt(self.squares.value[self.sample] * share)
        rows = self.factor.features[:, self.sample] * weights
        small = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
        return self._certify(small)

    def spectrum(self) -> Spectrum:
        """Return the eigenvalues and their certificate: three passes, O(N r²)."""
        if self.latest is None:
            self.refresh()
            self.latest = self._certify(_gram(self.factor, self.squares.value))
            self.passes += 1
        return self.latest

    def good_enough(self, spectrum: Spectrum) -> bool:
        """Whether the bound meets `tol`; if not, note which slack may do."""
        gamma, slack = self.accuracy.gamma, spectrum.slack
        rounding = gram_rounding(self.factor.rank, float(spectrum.eigenvalues[0]))
        alone = float(np.linalg.norm(rounding / (spectrum.eigenvalues + gamma + rounding)))
        # Where rounding alone exceeds `tol` nothing is gained by going far below it.
        room = max(self.accuracy.tol, 2.0 * alone) - alone
        excess = spectrum.total_log_error(gamma) - alone
        if excess <= room:
            return True
        self.settled = slack < 0.1 * (float(spectrum.upper[-1]) + gamma)
        # The K-th eigenvalue may still grow by the slack, and then forgives more. If that
        # hope was tried already: all of the bound but rounding shrinks with the residual.
        self.wanted_slack = room * (float(spectrum.upper[-1]) + slack + gamma)
        if not self.wanted_slack < slack:
            self.wanted_slack = slack * max(0.1, room / excess)
        return False

    def _certify(self, small: FloatArray) -> Spectrum:
        """Return the eigenvalues of the small matrix with their limits and slack."""
        squares, factor, n = self.squares, self.factor, self.operator.n_samples
        found = leading_eigenvalues(small, self.n_eigenvalues)
        rounding = gram_rounding(factor.rank, float(found[0]))
        lost = float(factor.hidden @ squares.upper)
        low = float((squares.lower / squares.value).min())
        high = float((squares.upper / squares.value).max())
        upper = high * found if self.bounded else np.full_like(found, np.inf)
        # W is similar to a stochastic matrix where no affinity is negative.
        most = 1.0 if _nonnegative(self.operator) else np.inf
        # The residual's trace is known and its eigenvectors are not: spread over all N
        # directions it takes a seventh (3-torus) to three quarters (digits, noise) off the error.
        shift = float(factor.remaining @ squares.value) / n
        return Spectrum(
            np.minimum(found + shift, most),
            lower=np.maximum(low * found - rounding - lost, 0.0),
            upper=np.minimum(upper, most) + rounding,
            slack=float(factor.residual @ squares.upper),
            bound_kind="certified",
            solver=SOLVER,
        )

    def finish(self) -> Spectrum:
        """Return the spectrum with its statistics; warn where `tol` was not met."""
        spectrum, factor = self.spectrum(), self.factor
        bound = spectrum.total_log_error(self.accuracy.gamma)
        converged = bound <= self.accuracy.tol
        if not converged:
            rounding = factor.exhausted or self.good_enough(spectrum)
            warn_of_bound(bound, self.accuracy.tol, factor.rank, rounding=rounding)
        stats = {
            "converged": converged,
            "landmarks": factor.rank,
            "entries_evaluated": factor.rows_read * self.operator.n_samples,
            "residual_trace": float(factor.residual.sum()),
            "passes": self.passes,
        }
        return replace(spectrum, stats=stats)


def leading_eigenvalues(gram: FloatArray, n_eigenvalues: int) -> FloatArray:
    """Return the largest eigenvalues of F diag(s²) Fᵀ, (K,): zeros beyond its rank."""
    found = descending(eigvalsh(gram, check_finite=False))[:n_eigenvalues]
    return np.pad(found, (0, n_eigenvalues - found.size))


def gram_rounding(rank: int, largest: float) -> float:
    """Return what floating point alone may do to an eigenvalue: (8 + √r) · eps · λ₁.

    The matrix that LAPACK sees is of order r, whatever N; against long double the error
    was at most 6 eps for N from 10³ to 2·10⁵.
    """
    return float((8.0 + np.sqrt(rank)) * np.finfo(np.float64).eps * largest)


def _nonnegative(operator: PSDOperator) -> bool:
    """Whether this is a diffusion operator whose affinities are known to be at least 0.

    Those of a Gaussian kernel are, and only a kernel has a scale.
    """
    return isinstance(operator, DiffusionOperator) and operator.sigma_squared is not None


def _blocks(factor: PivotedCholesky) -> Iterator[tuple[slice, FeatureBlock]]:
    """Yield the features in memory by blocks of rows."""
    residual, n = factor.residual, factor.diagonal.size
    for start in range(0, n, ROWS_PER_BLOCK):
        rows = slice(start, min(start + ROWS_PER_BLOCK, n))
        block = FeatureBlock(factor.features[:, rows], residual[rows], factor.diagonal[rows])
        yield rows, block


def _scaling(operator: PSDOperator, factor: PivotedCholesky) -> Interval:
    """Return s² and its limits for all rows, (N,) each: two passes, O(N r)."""
    n = operator.n_samples
    if not isinstance(operator, DiffusionOperator):
        return Interval(np.ones(n), np.ones(n), np.ones(n))
    sign = _nonnegative(operator)
    blocks = [block for _, block in _blocks(factor)]
    ones = total(weighted_sums(b, np.ones((1, b.residual.size))) for b in blocks)
    rows = [(b, density(b, ones, nonnegative=sign)) for b in blocks]
    inverse = total(weighted_sums(b, inverse_weights(d)) for b, d in rows)
    parts = [squared_scaling(b, d, inverse, nonnegative=sign) for b, d in rows]
    return Interval(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _gram(factor: PivotedCholesky, squares: FloatArray) -> FloatArray:
    """Return F diag(s²) Fᵀ, (r, r), as a sum over blocks of rows: O(N r²)."""
    gram = np.zeros((factor.rank, factor.rank))
    for rows, block in _blocks(factor):
        scaled = block.features * np.sqrt(squares[rows])
        gram += scaled @ scaled.T
    return gram


def warn_of_bound(bound: float, tol: float, landmarks: int, *, rounding: bool) -> None:
    """Say that `tol` was not met, by how much, and what can be done."""
    remedy = (
        "Nothing but rounding is left: raise gamma or tol."
        if rounding
        else "Raise max_landmarks or tol, or take solver='krylov' or 'exact'."
    )
    warn(
        f"solver='landmarks' bounds the error of log(λ + γ) by {bound:.2g} with "
        f"{landmarks} landmarks; tol={tol:g} was asked for. {remedy}",
        AccuracyWarning,
    )
