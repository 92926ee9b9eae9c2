"""Landmarks for rows that are read by blocks: chosen in a sample, judged by all rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigvalsh
from threadpoolctl import threadpool_limits

from ..operators.diffusion import DiffusionOperator
from ..operators.gaussian import GaussianAffinity
from ..operators.streamed import StreamedAffinity
from ..operators.threads import Workers
from ._basis import Basis
from ._cholesky import PivotedCholesky
from ._forecast import Forecast
from ._passes import Passes, Small
from .base import Accuracy, Spectrum, descending

if TYPE_CHECKING:
    from ._growth import Run

SAMPLE_ROWS = 10_240  # with 1000 landmarks their features take 80 MB, more than all else
# The sample is asked for this share of `tol`: rows outside of it have larger residuals.
_SHARE = 0.6
# So much more residual than foreseen is worth more landmarks before the dearer passes.
_EXCESS = 1.2
_ROUNDS = 6


@dataclass
class Streamed:
    r"""One run of streaming landmarks.

    1. Randomly pivoted Cholesky on a random sample of rows in memory chooses the landmarks.
    2. A pass over all rows gives the residual of every row and Σφ, hence d̃.
    3. A pass gives Σφ/d̃, hence d, and s² = 1/(d̃² d).
    4. A pass gives the Gram matrix of φ s, whose eigenvalues are W's, and the certificate of
       `Landmarks`, over all rows.

    Where the residual (2) or the certificate (4) falls short, rows drawn by their residual
    become landmarks and the passes are repeated. O(N r (d + 3 r/2)) time a round; one block, a
    few (r, r) matrices and 4 N bytes of memory.
    """

    operator: DiffusionOperator
    affinity: StreamedAffinity
    n_eigenvalues: int
    accuracy: Accuracy
    capacity: int
    rng: np.random.Generator
    start: Callable[..., Run]  # the factorisation of `Landmarks`, for the sample

    def run(self) -> tuple[Spectrum, bool]:
        """Return the spectrum, and whether nothing but rounding is left."""
        basis, forecast, goal = self._begin()
        workers = Workers()
        with workers, threadpool_limits(1, user_api="blas"):
            for left in range(_ROUNDS - 1, -1, -1):
                passes = Passes(basis, workers)
                final = passes.exhausted or left == 0 or basis.rank >= self.capacity
                # The sample's residual per row stands for its slack, which is a goal's measure.
                ahead = passes.residual_trace / self.affinity.n_samples / goal
                forecast.note(basis.rank, ahead)
                if ahead <= _EXCESS or final:
                    spectrum = self._certified(passes.small(), basis.rank, passes)
                    bound = spectrum.total_log_error(self.accuracy.gamma)
                    if bound <= self.accuracy.tol or final:
                        return spectrum, passes.exhausted
                    ahead = max(ahead, bound / self.accuracy.tol)
                basis = self._grown(basis, passes, forecast, ahead)
        raise AssertionError("the last round is final")

    def _begin(self) -> tuple[Basis, Forecast, float]:
        """Return landmarks from a sample, its residuals by rank, and the residual wanted."""
        points = self.affinity.sample(SAMPLE_ROWS, self.rng)
        scale = self.affinity.sigma_squared
        assert scale is not None  # a Gaussian kernel has one
        small = DiffusionOperator(GaussianAffinity(points, scale))
        capacity = max(min(self.capacity, points.shape[0] // 2), 1)
        accuracy = Accuracy(self.accuracy.gamma, _SHARE * self.accuracy.tol)
        factor = PivotedCholesky(small.affinity, capacity)
        run = self.start(
            small, factor, min(self.n_eigenvalues, points.shape[0]), accuracy, self.rng
        )
        run.to_tolerance()
        triangle = np.tril(factor.features[:, factor.landmarks].T)
        basis = Basis(self.affinity, points[factor.landmarks].copy(), triangle)
        spectrum = run.estimate()
        wanted = self.accuracy.tol * (float(spectrum.upper[-1]) + self.accuracy.gamma)
        residual = float(factor.residual.mean())
        goal = residual * max(wanted / run.slack, 1e-3) if run.slack > 0 else residual
        forecast = Forecast(
            run.forecast.ranks, [x - math.log(run.slack) for x in run.forecast.logs]
        )
        forecast.logs = [x + math.log(residual / goal) for x in forecast.logs]
        return basis, forecast, goal

    def _grown(self, basis: Basis, passes: Passes, forecast: Forecast, ahead: float) -> Basis:
        """Return the basis with as many landmarks more as the forecast asks for."""
        forecast.note(basis.rank, ahead)
        wanted = forecast.rank_for(0.8) - basis.rank
        room = self.capacity - basis.rank
        count = int(min(max(wanted, 16.0), 0.5 * basis.rank, room))
        chosen = passes.candidates(2 * max(count, 16), self.rng)
        return basis.extended(self.affinity.take(chosen), max(count, 1))

    def _certified(self, small: Small, rank: int, passes: Passes) -> Spectrum:
        """Return the eigenvalues of the small matrix with the limits that `Landmarks` has."""
        found = descending(eigvalsh(small.gram, check_finite=False))[: self.n_eigenvalues]
        found = np.pad(found, (0, self.n_eigenvalues - found.size))
        rounding = float((8.0 + np.sqrt(rank)) * np.finfo(np.float64).eps * found[0])
        shift = small.remaining / self.affinity.n_samples
        return Spectrum(
            np.minimum(found + shift, 1.0),
            lower=np.maximum(small.lowest * found - rounding - small.hidden, 0.0),
            upper=np.minimum(small.highest * found, 1.0) + rounding,
            slack=small.slack,
            bound_kind="certified",
            solver="landmarks",
            stats={"landmarks": rank, "residual_trace": passes.residual_trace},
        )
