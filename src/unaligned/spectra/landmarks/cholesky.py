"""Randomly pivoted block Cholesky, grown until its certificate meets a tolerance."""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from ..._check import FloatArray, IndexArray
from ...engine.threads import inner, workers_for
from ...errors import AccuracyWarning, warn
from ...operators.base import PSDOperator
from ...operators.diffusion import DiffusionOperator
from ..base import Accuracy, Spectrum
from .certificate import RESIDUAL_FLOOR, RowStatistics, Scaling, gram_rounding


class PivotedCholesky:
    r"""A growing factorisation :math:`K \approx F^T F` with pivots drawn from the residual.

    With landmarks S, :math:`F = L^{-1} K_{S,:}` and :math:`L L^T = K_{S,S}`, the residual
    :math:`R = K - F^T F` is positive semi-definite, so its diagonal bounds all of it:

    .. math:: |R_{ij}| \le \sqrt{\rho_i \rho_j}, \qquad \rho_i = K_{ii} - \|F_{:,i}\|^2 .

    Pivots are proposed in blocks, with probability ρᵢ/Σρ (Chen, Epperly, Tropp and Webber,
    2022), and a pivoted factorisation within the block drops those that the others made
    nearly redundant. O(N r²) time for r landmarks, at most `capacity`, besides r rows of the
    matrix; 8 N r bytes.
    """

    def __init__(self, operator: PSDOperator, capacity: int) -> None:
        self.operator = operator
        self.capacity = capacity
        self.diagonal = np.asarray(operator.diagonal(), dtype=np.float64)
        self.landmarks: IndexArray = np.empty(0, dtype=np.int64)
        self.rows_read = 0
        self.left = self.diagonal.copy()  # the diagonal of K - FᵀF as computed, (N,)
        self.floor = (RESIDUAL_FLOOR + operator.negative_share) * np.abs(self.diagonal)
        # Features lie landmark by landmark, so a block is appended without copying. Memory
        # that is never written is never allocated: unused capacity costs nothing.
        self._store = np.empty((capacity, operator.n_samples))

    @property
    def rank(self) -> int:
        """The number of landmarks, r."""
        return int(self.landmarks.size)

    @property
    def features(self) -> FloatArray:
        """F, (r, N)."""
        return self._store[: self.rank]

    @property
    def residual(self) -> FloatArray:
        """An upper bound of ρ, (N,), rounding included (see `RowStatistics`)."""
        excess = np.maximum(-self.left, 0.0)
        bound: FloatArray = np.maximum(self.left, 0.0) + self.floor
        bound += 2.0 * (excess + excess.mean())
        return bound

    @property
    def exhausted(self) -> bool:
        """Whether nothing but rounding is left to factor."""
        left = self.left
        if not (left > self.floor).any():
            return True
        return bool(-left[left < 0].sum() > left[left > 0].sum())

    def grow(self, n_proposals: int, rng: np.random.Generator) -> None:
        """Add a block of at most `n_proposals` landmarks."""
        # Rows drawn with probability proportional to their residual, each at most once.
        weights = np.where(self.left > self.floor, self.left, 0.0)
        cumulative = np.cumsum(weights)
        if not cumulative[-1] > 0 or self.rank == self.capacity:
            return
        draws = rng.random(n_proposals) * cumulative[-1]
        found = np.searchsorted(cumulative, draws, side="right")
        proposals = np.unique(np.minimum(found, weights.size - 1))
        # Rounding in the cumulative sum can hit a row of no weight.
        proposals = proposals[weights[proposals] > 0]
        if proposals.size == 0:
            return
        rows = np.ascontiguousarray(self.operator.rows(proposals), dtype=np.float64)
        self.rows_read += proposals.size
        known = self.features[:, proposals]
        inner = rows[:, proposals] - known.T @ known
        room = self.capacity - self.rank
        triangle, kept = pivoted_factor(inner, float(self.floor[proposals].max()), room)
        start, stop = self.rank, self.rank + kept.size
        block = self._store[start:stop]
        np.take(rows, kept, axis=0, out=block)
        # block := L⁻¹ (block - knownᵀ F), in place: to Fortran the transpose is contiguous.
        features, among = self.features, np.ascontiguousarray(known[:, kept].T)

        def subtract(columns: slice) -> None:
            block[:, columns] -= among @ features[:, columns]

        workers = workers_for(features.size * kept.size)
        if workers is None:
            subtract(slice(None))
        else:
            workers.over_rows(block.shape[1], subtract)
        dtrsm(1.0, triangle, block.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        self.landmarks = np.concatenate([self.landmarks, proposals[kept]])
        self.left -= np.einsum("ij,ij->j", block, block)
        self.left[self.landmarks] = 0.0


def pivoted_factor(inner: FloatArray, floor: float, most: int) -> tuple[FloatArray, IndexArray]:
    """Return the Cholesky factor of the rows worth keeping, and which, largest pivot first.

    A proposal must keep 5 % of the proposals' mean residual once the better ones of its block are
    taken. This replaces the rejection of Epperly, Tropp and Webber (2024): theirs needs only the
    small matrix between proposals, but an operator is read by whole rows, so a rejected row has
    been paid for. On 3-tori 5 % costs 2-4 % more landmarks than pivots taken one at a time, and a
    tenth of the proposals; their coin flips reject a half.
    """
    least = max(floor, 0.05 * float(np.diagonal(inner).mean()))
    factor, order, rank, _ = dpstrf(inner, tol=least, lower=1)
    rank = max(1, min(int(rank), most))
    kept: IndexArray = np.asarray(order[:rank], dtype=np.int64) - 1
    return np.asfortranarray(np.tril(factor[:rank, :rank])), kept


@dataclass
class Forecast:
    r"""Residuals by rank, and their extrapolation.

    Kernels of smooth sets have residuals that fall like :math:`\exp(-B r^p)`, p being about one
    over the dimension. The last two halvings of the rank give B and p.
    """

    ranks: list[int] = field(default_factory=list)
    logs: list[float] = field(default_factory=list)

    def add(self, rank: int, residual: float) -> None:
        """Add one observation."""
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


# The scaling is refreshed whenever the landmarks have grown by this factor: often enough to
# see convergence coming, and all refreshes together cost a few percent of the factorisation.
REFRESH = 1.5


class CertifiedCholesky:
    """A pivoted Cholesky factorisation that grows until its certificate meets `tol`."""

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
        self.diffusion = isinstance(operator, DiffusionOperator)
        # Only a kernel has a scale, and kernels have no negative entries.
        self.nonnegative = self.diffusion and operator.sigma_squared is not None
        # Eigenvalues of a sample of rows tell when the certificate is worth its N r² flops.
        self.sample = np.sort(rng.permutation(n)[: max(1000, 4 * n_eigenvalues)])
        self.squares = np.ones(n)  # ŝ² of Eqs. 2-4, as of the last refresh
        self.limits = 1.0, 1.0  # of s²/ŝ²
        self.statistics: RowStatistics | None = None
        self.slack = float(factor.residual.sum())  # Σ s² ρ
        self.wanted_slack = np.inf  # at which `tol` may be met
        self.decay = 0.0  # of log(slack) per landmark, in the last block
        self.settled = False  # the K-th eigenvalue is far above the slack: no refresh needed
        self.refreshed = self.passes = 0
        self.forecast = Forecast()
        self.next_forecast = 96  # landmarks; fewer do not show how the residuals fall
        self.latest: Spectrum | None = None

    def reach_tolerance(
        self, block_size: int | None = None, affordable: float = np.inf, *, sampled: bool = False
    ) -> bool:
        """Add landmarks until the bound meets `tol` (that of `estimate` only, if `sampled`).

        Return False if none are left, or more than `affordable` are expected to be needed.
        """
        factor = self.factor
        while factor.rank < factor.capacity and not factor.exhausted:
            self._grow(block_size)
            if not self.settled and factor.rank >= REFRESH * self.refreshed:
                self.refresh()
            if (
                self.slack <= self.wanted_slack
                and self._meets_tol(self.estimate())
                and (sampled or self._meets_tol(self.spectrum()))
            ):
                return True
            if np.isfinite(affordable) and factor.rank >= self.next_forecast:
                self.next_forecast = int(REFRESH * factor.rank)
                if self._expected_rank() > affordable:
                    break
        return False

    def _grow(self, block_size: int | None) -> None:
        """Add one block of landmarks, a smaller one where the goal is near."""
        factor = self.factor
        size = block_size or min(max(16, factor.rank // 8), factor.capacity)
        if block_size is None and self.decay > 0 and 0 < self.wanted_slack < self.slack:
            # A tenth more, as proposals are dropped and blocks differ.
            needed = 1.1 * np.log(self.slack / self.wanted_slack) / self.decay
            size = min(size, 4 + int(needed))
        before, slack = factor.rank, self.slack
        factor.grow(size, self.rng)
        self._update_slack()
        self.decay = np.log(slack / self.slack) / max(factor.rank - before, 1)
        self.latest = None
        self.forecast.add(factor.rank, self.slack)

    def _update_slack(self) -> None:
        high = self.limits[1] if np.isfinite(self.limits[1]) else 1.0
        self.slack = high * float(self.factor.residual @ self.squares)

    def _expected_rank(self) -> float:
        """Return how many landmarks it may take, on an optimistic view."""
        self.refresh()
        # Fewer landmarks than eigenvalues cannot show the K-th; the trace bounds it.
        smallest = float(self.squares @ self.factor.diagonal) / self.n_eigenvalues
        if self.factor.rank >= 1.25 * self.n_eigenvalues:
            smallest = float(self.estimate().eigenvalues[-1])
        return self.forecast.rank_for(self.accuracy.tol * (smallest + self.accuracy.gamma))

    def refresh(self) -> None:
        """Compute ŝ² and its limits from the features: two passes, O(N r)."""
        if self.statistics is not None and self.refreshed == self.factor.rank:
            return
        factor, diagonal = self.factor, self.factor.diagonal
        scaling = Scaling(self.squares, self.squares, self.squares)  # ones
        if self.diffusion:
            features, residual = factor.features, factor.residual
            # The residual's diagonal is known, so it is added and only the rest is an error.
            row_sums = features.sum(axis=1) @ features + residual
            # Far from convergence features can sum to anything.
            density = np.maximum(row_sums, diagonal)
            degree = features @ (1.0 / density) @ features + residual / density
            error = 0.0 if self.nonnegative else density - row_sums
            scaling = Scaling.of(density, degree, diagonal, error, nonnegative=self.nonnegative)
        self.squares = scaling.squares
        self.statistics = RowStatistics.of(factor.left, diagonal, scaling, factor.floor)
        if self.diffusion:
            self.limits = self.statistics.scaling_limits(nonnegative=self.nonnegative)
        self._update_slack()
        self.refreshed = factor.rank
        self.passes += 2

    def estimate(self) -> Spectrum:
        """Return the spectrum estimated from a sample of the rows."""
        if self.settled or self.sample.size == self.operator.n_samples:
            return self.spectrum()
        self.refresh()
        share = self.operator.n_samples / self.sample.size
        rows = self.factor.features[:, self.sample] * np.sqrt(self.squares[self.sample] * share)
        return self._certify(rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows)

    def spectrum(self) -> Spectrum:
        """Return the eigenvalues and their certificate: three passes, O(N r²)."""
        if self.latest is None:
            self.refresh()
            gram = np.zeros((self.factor.rank, self.factor.rank))
            rows_per_block = 4096  # a scaled copy of these is all the memory needed
            for start in range(0, self.operator.n_samples, rows_per_block):
                rows = slice(start, start + rows_per_block)
                scaled = self.factor.features[:, rows] * np.sqrt(self.squares[rows])
                gram += inner(scaled.T, scaled.T)
            self.latest = self._certify(gram)
            self.passes += 1
        return self.latest

    def _certify(self, gram: FloatArray) -> Spectrum:
        assert self.statistics is not None  # for the type checker: refreshed before
        # W is similar to a stochastic matrix where no affinity is negative.
        largest = 1.0 if self.nonnegative else np.inf
        return self.statistics.spectrum(gram, self.n_eigenvalues, self.limits, largest)

    def _meets_tol(self, spectrum: Spectrum) -> bool:
        """Whether the bound meets `tol`; if not, set the slack at which to check again."""
        gamma, slack = self.accuracy.gamma, self.slack
        rounding = gram_rounding(self.factor.rank, float(spectrum.eigenvalues[0]))
        alone = float(np.linalg.norm(rounding / (spectrum.eigenvalues + gamma + rounding)))
        # Where rounding alone exceeds `tol` nothing is gained by going far below it.
        room = max(self.accuracy.tol, 2.0 * alone) - alone
        excess = spectrum.total_log_error(gamma) - alone
        if excess <= room:
            return True
        smallest = float(spectrum.upper[-1]) + gamma
        self.settled = bool(np.isfinite(self.limits[1])) and slack < 0.1 * smallest
        # The K-th eigenvalue may still grow by the slack, and then allows more. If that
        # was tried already: all of the bound but rounding shrinks with the residual.
        self.wanted_slack = room * (smallest + slack)
        if not self.wanted_slack < slack:
            self.wanted_slack = slack * max(0.1, room / excess)
        return False

    def finish(self) -> Spectrum:
        """Return the spectrum with its statistics; warn where `tol` was not met."""
        spectrum, factor = self.spectrum(), self.factor
        bound = spectrum.total_log_error(self.accuracy.gamma)
        converged = bound <= self.accuracy.tol
        if not converged:
            rounding = factor.exhausted or self._meets_tol(spectrum)
            warn_of_bound(bound, self.accuracy.tol, factor.rank, rounding=rounding)
        stats = {
            "converged": converged,
            "landmarks": factor.rank,
            "entries_evaluated": factor.rows_read * self.operator.n_samples,
            "residual_trace": float(factor.residual.sum()),
            "passes": self.passes,
        }
        return replace(spectrum, stats=stats)


def warn_of_bound(
    bound: float, tol: float, landmarks: int, *, rounding: bool, remedy: str | None = None
) -> None:
    """Warn that `tol` was not met, by how much, and what can be done."""
    if rounding:
        remedy = "Only rounding error is left: raise gamma or tol."
    remedy = remedy or "Raise max_landmarks or tol, or use solver='krylov' or 'exact'."
    warn(
        f"solver='landmarks' bounds the error of log(λ + γ) by {bound:.2g} with "
        f"{landmarks} landmarks, above tol={tol:g}. {remedy}",
        AccuracyWarning,
        severity=bound,
    )
