"""Landmarks for rows that are read by blocks: chosen in a sample, judged by all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .._check import FloatArray
from ..errors import AccuracyWarning, warn
from ..operators.diffusion import DiffusionOperator
from ..operators.gaussian import GaussianAffinity
from ..operators.streamed import CrossKernel, StreamedAffinity
from ._basis import Basis
from ._cholesky import PivotedCholesky
from ._forecast import Forecast
from ._growth import SOLVER, Run, gram_rounding, leading_eigenvalues, warn_of_bound
from ._passes import Broadcast, Gathered, Held, Limits, gather, kernel_sums, residual_trace
from .base import Accuracy, Spectrum

SAMPLE_ROWS = 10_240  # with 1000 landmarks their features take 80 MB, more than all else
HELD_ROWS = 10_240  # their mean residual is that of all rows to a few percent
_HELD_BYTES = 1 << 25
# The sample is asked for this share of `tol`: rows outside of it have larger residuals.
_SHARE = 0.6
# So much more residual than foreseen is worth more landmarks before the dear pass.
_EXCESS = 1.2
_ROUNDS = 6


@dataclass
class Streamed:
    r"""One run of streaming landmarks.

    1. Randomly pivoted Cholesky on a random sample of rows in memory chooses the landmarks.
    2. Rows held out tell whether these do for rows that were not in the sample; where they do
       not, some of them become landmarks.
    3. Two passes over all rows, of kernels only, give d̃ and d, hence s² = 1/(d̃² d).
    4. A pass gives the Gram matrix of φ s, whose eigenvalues are W's, and the certificate of
       `Landmarks` over all rows (see `_passes.Limits`).

    Where the certificate (4) falls short, rows that it drew by their residual become landmarks
    and all is repeated from 2 on. O(N r (3 d + 3 r/2)) time a round; one block, a tile and a few
    (r, r) matrices of memory, nothing that grows with N.
    """

    affinity: StreamedAffinity
    n_eigenvalues: int
    accuracy: Accuracy
    capacity: int
    rng: np.random.Generator

    def run(self, affordable: float = math.inf) -> Spectrum | None:
        """Return the spectrum; None if more landmarks are foreseen than `affordable`.

        That is known before the first pass over all rows.
        """
        basis, forecast, goal, others = self._begin()
        for left in range(_ROUNDS - 1, -1, -1):
            basis = self._sufficient(basis, forecast, goal, others)
            foreseen = forecast.rank_for(_EXCESS)
            if foreseen > affordable:
                return None
            found = self._passes(basis)
            spectrum = self._certified(found, basis.rank)
            bound = spectrum.total_log_error(self.accuracy.gamma)
            spent = found.exhausted or left == 0 or basis.rank >= self.capacity
            if bound <= self.accuracy.tol or spent:
                if bound > self.accuracy.tol:
                    self._warn(bound, basis.rank, foreseen, found.exhausted)
                stats = {**spectrum.stats, "converged": bound <= self.accuracy.tol}
                return replace(spectrum, stats=stats)
            basis = self._grown(basis, forecast, bound / self.accuracy.tol, found.drawn.points)
        raise AssertionError("the last round is final")

    def _warn(self, bound: float, rank: int, foreseen: float, exhausted: bool) -> None:
        """Say that `tol` was not met, by how much, and what can be done."""
        if exhausted or foreseen <= rank:
            warn_of_bound(bound, self.accuracy.tol, rank, rounding=exhausted)
            return
        many = (
            f"about {foreseen:.1g}" if foreseen <= self.affinity.n_samples else "nearly all rows"
        )
        warn(
            f"solver='landmarks' bounds the error of log(λ + γ) by {bound:.2g} with {rank} "
            f"landmarks; tol={self.accuracy.tol:g} would take {many}. The kernel of these "
            "points has a heavy tail, as that of noise in many dimensions has. Ask for fewer "
            "eigenvalues, raise tol or gamma, bring the points to fewer dimensions "
            "(preprocess='pca:10'), or take a subsample of the rows.",
            AccuracyWarning,
        )

    def _begin(self) -> tuple[Basis, Forecast, float, FloatArray]:
        """Return landmarks from a sample, its residuals by rank, the residual wanted, and rows."""
        held = min(HELD_ROWS, _HELD_BYTES // (8 * self.affinity.passes.source.n_features))
        rows = self.affinity.sample(SAMPLE_ROWS + held, self.rng)
        points, others = rows[:SAMPLE_ROWS], rows[SAMPLE_ROWS:].copy()
        scale = self.affinity.scale
        small = DiffusionOperator(GaussianAffinity(points, scale))
        capacity = max(min(self.capacity, points.shape[0] // 2), 1)
        accuracy = Accuracy(self.accuracy.gamma, _SHARE * self.accuracy.tol)
        factor = PivotedCholesky(small.affinity, capacity)
        run = Run(small, factor, min(self.n_eigenvalues, points.shape[0]), accuracy, self.rng)
        run.to_tolerance()
        triangle = np.tril(factor.features[:, factor.landmarks].T)
        basis = Basis(CrossKernel(points[factor.landmarks].copy(), scale), triangle)
        return basis, *self._aims(run), others

    def _aims(self, run: Run) -> tuple[Forecast, float]:
        """Return the sample's mean residuals by rank, as multiples of the one wanted, and that."""
        spectrum = run.estimate()
        wanted = self.accuracy.tol * (float(spectrum.upper[-1]) + self.accuracy.gamma)
        residual = float(run.factor.residual.mean())
        goal = residual * max(wanted / run.slack, 1e-3) if run.slack > 0 else residual
        shift = math.log(residual / goal) - math.log(run.slack)
        return Forecast(run.forecast.ranks, [x + shift for x in run.forecast.logs]), goal

    def _sufficient(
        self, basis: Basis, forecast: Forecast, goal: float, others: FloatArray
    ) -> Basis:
        """Return the basis with as many landmarks more as the rows held out ask for."""
        for _ in range(_ROUNDS if others.size else 0):
            held = Held.of(basis, others)
            ahead = held.mean / goal
            forecast.note(basis.rank, ahead)
            if ahead <= _EXCESS or held.exhausted or basis.rank >= self.capacity:
                break
            drawn = held.drawn(others, basis.rank, self.rng)
            basis = self._grown(basis, forecast, ahead, drawn)
        return basis

    def _grown(self, basis: Basis, forecast: Forecast, ahead: float, drawn: FloatArray) -> Basis:
        """Return the basis with as many landmarks more as the forecast asks for."""
        forecast.note(basis.rank, ahead)
        wanted = forecast.rank_for(0.8) - basis.rank
        room = self.capacity - basis.rank
        count = max(int(min(max(wanted, 16.0), 0.5 * basis.rank, room)), 1)
        return basis.extended(drawn[: 2 * max(count, 16)], count) if drawn.size else basis

    def _passes(self, basis: Basis) -> Gathered:
        """Return what three passes over all rows find."""
        reduce = self.affinity.passes.reduce
        known = Broadcast(basis, seed=int(self.rng.integers(2**63)), n_drawn=max(basis.rank, 32))
        ones = basis.solve(reduce(kernel_sums, known, "row sums")[:, None])
        known = known._replace(density=basis.solve_transposed(ones)[:, 0])
        inverse = basis.solve(reduce(kernel_sums, known, "degrees")[:, None])[:, 0]
        found = reduce(gather, known._replace(degree=inverse), "eigenvalues")
        self.affinity.entries_evaluated += 3 * self.affinity.n_samples * basis.rank
        return found

    def _certified(self, found: Gathered, rank: int) -> Spectrum:
        """Return the eigenvalues of the small matrix with the limits that `Landmarks` has."""
        n = self.affinity.n_samples
        limits = Limits.of(found, n)
        values = leading_eigenvalues(found.gram, self.n_eigenvalues)
        rounding = gram_rounding(rank, float(values[0]))
        # 1 where there is no limit: W is similar to a stochastic matrix.
        upper = np.minimum(limits.high * values, 1.0) if limits.high < np.inf else 1.0
        return Spectrum(
            np.minimum(values + found.totals.remaining / n, 1.0),
            lower=np.maximum(limits.low * values - rounding - limits.lost, 0.0),
            upper=np.full_like(values, upper) + rounding,
            slack=limits.slack,
            bound_kind="certified",
            solver=SOLVER,
            stats={"landmarks": rank, "residual_trace": residual_trace(found)},
        )
