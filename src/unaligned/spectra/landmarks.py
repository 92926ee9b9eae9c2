"""Eigenvalues in linear time from landmarks, with a deterministic certificate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import eigvalsh

from .. import _check
from .._check import FloatArray
from ..errors import AccuracyWarning, DegenerateDataError, InputError, warn
from ..operators.base import PSDOperator
from ..operators.diffusion import DiffusionOperator
from ._cholesky import (
    FeatureBlock,
    Interval,
    PivotedCholesky,
    density,
    inverse_weights,
    squared_scaling,
    total,
    weighted_sums,
)
from ._forecast import Forecast
from .base import Accuracy, EigenSolver, Spectrum, descending

# Rows per block of the passes: a scaled copy of this many feature rows is all the memory
# that a pass needs, and the matrix product still runs at full speed.
ROWS_PER_BLOCK = 4096

# The scaling is refreshed whenever the landmarks have grown by this factor: often enough to
# see convergence coming, and all refreshes together cost a few percent of the factorisation.
REFRESH = 1.5

# So many landmarks are needed before their residuals tell where they lead.
FIRST_LOOK = 96


@dataclass(frozen=True)
class Landmarks(EigenSolver):
    r"""Eigenvalues from the features that a few rows of the affinity give to all others.

    Landmarks are added by randomly pivoted Cholesky, :math:`K \approx F^T F`; the row sums
    of Eqs. 2-4 [eq:dmnorm, eq:dmkern, eq:dm_spd] come from sums of features, and

    .. math:: \lambda_i(W) \approx \lambda_i(F \,\mathrm{diag}(s^2)\, F^T),
              \qquad a \hat\lambda_i \le \lambda_i \le b \hat\lambda_i + e_i,
              \quad \sum_i e_i \le \sum_n s_n^2 \rho_n .

    ρ is the diagonal of the residual K - FᵀF. It bounds the row sums, hence s, hence the
    factors a and b (Ostrowski); the residual itself adds at most its trace, to all
    eigenvalues together. Landmarks are added until that meets `tol`, so the smoother the
    kernel the fewer; where the tail is heavy (high-dimensional noise) none of this helps
    before r is about N, and the bound says so.

    O(N r (d + r)) time for r landmarks, 8 N r bytes. Rows are read, products never asked for.

    Parameters
    ----------
    max_landmarks
        The most landmarks to take; None is the smaller of N and max(2000, 10 K).
    block_size
        Rows proposed at a time; None lets the block grow with the landmarks, as r/8.

    Examples
    --------
    >>> from unaligned.operators.affinity import GaussianAffinity
    >>> angle = np.linspace(0.0, 2 * np.pi, 400, endpoint=False)
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> operator = DiffusionOperator(GaussianAffinity(circle, 4.0))
    >>> found = Landmarks().solve(operator, 5, Accuracy(tol=1e-6), np.random.default_rng(0))
    >>> found.eigenvalues.round(4)
    array([1.    , 0.2425, 0.2425, 0.03  , 0.03  ])
    >>> found.stats["landmarks"] < 40, found.total_log_error(1e-8) < 1e-6
    (True, True)
    """

    name: ClassVar[str] = "landmarks"
    max_landmarks: int | None = None
    block_size: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_landmarks", "block_size"):
            value = getattr(self, name)
            if value is not None:
                _check.positive_int(name, value)

    def solve(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues of a positive operator."""
        spectrum = self.attempt(operator, n_eigenvalues, accuracy, rng, np.inf)
        assert spectrum is not None  # an infinite number is never foreseen to be too many
        return spectrum

    def attempt(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
        affordable: float,
    ) -> Spectrum | None:
        """Do as `solve`, but give up, with None, once more landmarks are foreseen than that."""
        if isinstance(operator, DiffusionOperator) and operator.storage == "streamed":
            return self._streamed(operator, n_eigenvalues, accuracy, rng)
        kernel = _kernel(operator)
        count = min(n_eigenvalues, operator.n_samples)
        capacity = min(operator.n_samples, self.max_landmarks or max(2000, 10 * count))
        run = Run(operator, PivotedCholesky(kernel, capacity), count, accuracy, rng)
        while run.growing:
            run.grow(self.block_size)
            if run.due() and run.good_enough(run.estimate()) and run.good_enough(run.spectrum()):
                return run.finish()
            if run.foreseen(affordable) > affordable:
                return None
        return run.finish() if np.isinf(affordable) or run.factor.exhausted else None

    def _streamed(
        self,
        operator: DiffusionOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
    ) -> Spectrum:
        """Return the spectrum of points that are read by blocks; nothing else could."""
        from ._stream import Streamed

        capacity = min(operator.n_samples, self.max_landmarks or max(2000, 10 * n_eigenvalues))
        run = Streamed(operator, operator.affinity, n_eigenvalues, accuracy, capacity, rng, Run)
        spectrum, exhausted = run.run()
        bound = spectrum.total_log_error(accuracy.gamma)
        if bound > accuracy.tol:
            _warn(bound, accuracy.tol, spectrum.stats["landmarks"], rounding=exhausted)
        return replace(spectrum, stats={**spectrum.stats, "converged": bound <= accuracy.tol})


class Run:
    """One factorisation on its way to the certificate that was asked for."""

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
        rounding = self._rounding(spectrum.eigenvalues)
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

    def _rounding(self, eigenvalues: FloatArray) -> float:
        """Return what floating point alone may do to an eigenvalue: (8 + √r) · eps · λ₁.

        The matrix that LAPACK sees is of order r, whatever N; against long double the error
        was at most 6 eps for N from 10³ to 2·10⁵.
        """
        units = 8.0 + np.sqrt(self.factor.rank)
        return float(units * np.finfo(np.float64).eps * eigenvalues[0])

    def _certify(self, small: FloatArray) -> Spectrum:
        """Return the eigenvalues of the small matrix with their limits and slack."""
        squares, factor, n = self.squares, self.factor, self.operator.n_samples
        found = descending(eigvalsh(small, check_finite=False))[: self.n_eigenvalues]
        found = np.pad(found, (0, self.n_eigenvalues - found.size))
        rounding = self._rounding(found)
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
            solver=Landmarks.name,
        )

    def finish(self) -> Spectrum:
        """Return the spectrum with its statistics; warn where `tol` was not met."""
        spectrum, factor = self.spectrum(), self.factor
        bound = spectrum.total_log_error(self.accuracy.gamma)
        converged = bound <= self.accuracy.tol
        if not converged:
            rounding = factor.exhausted or self.good_enough(spectrum)
            _warn(bound, self.accuracy.tol, factor.rank, rounding=rounding)
        stats = {
            "converged": converged,
            "landmarks": factor.rank,
            "entries_evaluated": factor.rows_read * self.operator.n_samples,
            "residual_trace": float(factor.residual.sum()),
            "passes": self.passes,
        }
        return replace(spectrum, stats=stats)


def _kernel(operator: PSDOperator) -> PSDOperator:
    """Return the matrix to factor, refusing what is not positive semi-definite."""
    kernel = operator.affinity if isinstance(operator, DiffusionOperator) else operator
    if not kernel.definite:
        raise InputError(
            "solver='landmarks' needs a positive semi-definite affinity; this one may have "
            "negative eigenvalues (its metric is not Euclidean, or it keeps only neighbours). "
            "Take solver='krylov' or 'exact'."
        )
    if isinstance(operator, DiffusionOperator) and not (kernel.diagonal() > 0).all():
        bad = np.flatnonzero(~(kernel.diagonal() > 0))
        raise DegenerateDataError(
            f"{bad.size} rows of the affinity are zero (row {bad[0]}), so Eqs. 2-3 cannot divide "
            "by their sums. Leave these rows out, or give them an affinity to themselves."
        )
    return kernel


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


def _warn(bound: float, tol: float, landmarks: int, *, rounding: bool) -> None:
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
