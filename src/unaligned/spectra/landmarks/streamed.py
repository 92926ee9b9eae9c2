"""Landmarks for rows that are read by blocks: chosen in a sample, judged by all rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..._check import FloatArray
from ...engine import limited_blas
from ...engine.threads import Workers
from ...errors import AccuracyWarning, warn
from ...operators.affinity import GaussianAffinity
from ...operators.diffusion import DiffusionOperator
from ...operators.streamed import CrossKernel, StreamedAffinity
from ...rows.reduce import numbers_from
from ..base import Accuracy, Spectrum
from .cholesky import RESIDUAL_FLOOR, Basis, PivotedCholesky
from .growth import SOLVER, Forecast, Run, gram_rounding, leading_eigenvalues, warn_of_bound

_TILE = 1024  # rows worked on together by one thread: 8 r · 1024 bytes
_KERNEL_TILE = 512  # of kernels only: these stay in the cache
_EPS = float(np.finfo(np.float64).eps)


class Broadcast(NamedTuple):
    """What every block needs to know."""

    basis: Basis
    density: FloatArray | None = None  # (r,): d̂ = kᵀ times this; None while it is unknown
    degree: FloatArray | None = None  # (r,): ĝ = φᵀ times this
    seed: int = 0  # of the draw of rows
    n_drawn: int = 0


class Totals(NamedTuple):
    """Sums over rows; ρ is what is left of the diagonal, and what rounding took, twice."""

    roots: float  # Σ √ρ
    weighted_roots: float  # Σ √ρ / d̂
    inverse_densities: float  # Σ 1 / d̂
    squares: float  # Σ ŝ²
    charged: float  # Σ ŝ² ρ
    lost: float  # the part of it that rounding took
    remaining: float  # Σ ŝ² max(left, 0)
    residual: float  # Σ ρ
    positive: float  # Σ max(left, 0)
    negative: float  # Σ max(-left, 0)


class Peaks(NamedTuple):
    """Maxima over rows."""

    density: float  # √ρ / d̂
    degree: float  # √ρ / ĝ
    inverse_density: float  # 1 / d̂
    inverse_degree: float  # 1 / ĝ
    rounding: float  # of d̂, relative
    left: float  # of the diagonal


class Drawn(NamedTuple):
    """Rows drawn by their residual, without replacement: those with the largest keys."""

    keys: FloatArray  # (m,)
    points: FloatArray  # (m, d)

    def joined(self, other: Drawn, most: int) -> Drawn:
        """Return the `most` rows with the largest keys of both, largest first."""
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(-keys, kind="stable")[:most]
        return Drawn(keys[order], np.concatenate([self.points, other.points])[order])


class Gathered(NamedTuple):
    """What the third pass brings home from some rows."""

    gram: FloatArray  # (r, r): F diag(ŝ²) Fᵀ
    totals: Totals
    peaks: Peaks
    drawn: Drawn
    n_drawn: int

    @property
    def exhausted(self) -> bool:
        """Whether nothing but rounding is left."""
        return _exhausted(self.totals, self.peaks)

    def __add__(self, other: Gathered) -> Gathered:  # type: ignore[override]
        """Return what both bring home; the matrix of the first is overwritten."""
        return Gathered(
            np.add(self.gram, other.gram, out=self.gram),
            Totals(*map(sum, zip(self.totals, other.totals, strict=True))),
            Peaks(*map(max, zip(self.peaks, other.peaks, strict=True))),
            self.drawn.joined(other.drawn, self.n_drawn),
            self.n_drawn,
        )


def kernel_sums(points: FloatArray, _start: int, known: Broadcast) -> FloatArray:
    """Return Σ k over rows, (r,), or Σ k/d̂ once d̂ is known: O(n r d), and one tile in memory."""
    sums = np.zeros(known.basis.rank)
    for rows in _tiles(points, _KERNEL_TILE):
        kernel = known.basis.affinities(points[rows])
        if known.density is None:
            sums += kernel.sum(axis=1)
        else:
            sums += kernel @ (1.0 / _densities(kernel, known.density)[0])
    return sums


def gather(points: FloatArray, start: int, known: Broadcast) -> Gathered:
    """Return what the third pass is after: O(n r (d + r)), and a tile and (r, r) in memory.

    `start` is the place of the first of these rows among all.
    """
    parts = (_tile(points[rows], start + rows.start, known) for rows in _tiles(points))
    found = next(parts)
    for part in parts:
        found += part
    return found


def _tile(points: FloatArray, start: int, known: Broadcast) -> Gathered:
    if known.density is None or known.degree is None:
        raise ValueError("the third pass needs what the first two found")
    kernel = known.basis.affinities(points)
    densities, rounding = _densities(kernel, known.density)
    features = known.basis.solve(kernel)
    left = 1.0 - np.einsum("ij,ij->j", features, features)
    # g is at least the diagonal's share; s² at most 1, as a diagonal entry of W is.
    degrees = np.maximum(known.degree @ features, 1.0 / densities)
    squares = np.minimum(1.0 / (densities * degrees), 1.0)
    features *= np.sqrt(squares)
    totals, peaks = _extremes(left, densities, rounding, degrees, squares)
    # Row i has the i-th number of one stream, however the rows are cut into blocks.
    numbers = numbers_from(known.seed, start, left.size)
    drawn = _drawn(points, left, numbers, known.n_drawn)
    return Gathered(features @ features.T, totals, peaks, drawn, known.n_drawn)


def _densities(kernel: FloatArray, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return d̂ = max(kᵀc, 1), (n,), and (8 + √r) eps kᵀ|c|, what rounding may do to it."""
    both = np.stack([coefficients, np.abs(coefficients)]) @ kernel
    # A row sums to 1, its diagonal entry, at the least: to cut there brings d̂ nearer to it.
    return np.maximum(both[0], 1.0), (8.0 + np.sqrt(coefficients.size)) * _EPS * both[1]


def _extremes(
    left: FloatArray,
    densities: FloatArray,
    rounding: FloatArray,
    degrees: FloatArray,
    squares: FloatArray,
) -> tuple[Totals, Peaks]:
    """Return the sums and maxima of one tile."""
    remaining, below = np.maximum(left, 0.0), np.maximum(-left, 0.0)
    residual = remaining + RESIDUAL_FLOOR + 2.0 * below
    roots, inverse = np.sqrt(residual), 1.0 / densities
    sums = (
        roots.sum(),
        roots @ inverse,
        inverse.sum(),
        squares.sum(),
        squares @ residual,
        2.0 * squares @ below,
        squares @ remaining,
        residual.sum(),
        remaining.sum(),
        below.sum(),
    )
    most = (roots * inverse, roots / degrees, inverse, 1.0 / degrees, rounding / densities, left)
    return Totals(*map(float, sums)), Peaks(*(float(values.max()) for values in most))


def _drawn(points: FloatArray, left: FloatArray, numbers: FloatArray, count: int) -> Drawn:
    """Draw rows by residual: the largest log(u)/ρ (Efraimidis and Spirakis, 2006)."""
    worth = np.flatnonzero(left > RESIDUAL_FLOOR)
    keys = np.log(numbers[worth]) / left[worth]
    return Drawn(keys[:0], points[:0]).joined(Drawn(keys, points[worth]), count)


def _tiles(points: FloatArray, size: int = _TILE) -> Iterator[slice]:
    n = points.shape[0]
    return (slice(a, min(a + size, n)) for a in range(0, n, size))


class Limits(NamedTuple):
    r"""What the third pass proves: λ in [low λ̂ - lost, high λ̂ + e], Σ e ≤ slack.

    R = K - FᵀF is positive semi-definite, so :math:`|R_{ij}| \le \sqrt{\rho_i \rho_j}`. With
    the true row sums d̃ and g = K(1/d̃), and all entries of K at least 0,

    .. math::
        |\tilde d_i - \hat d_i| \le \sqrt{\rho_i} \textstyle\sum_j \sqrt{\rho_j}
            &\;\Rightarrow\; \tilde d_i \in \hat d_i\, [1 - \delta, 1 + \delta], \quad
            \delta = \max_i \frac{\sqrt{\rho_i}}{\hat d_i} \sum_j \sqrt{\rho_j} \\
        |(K \tfrac{1}{\hat d})_i - \hat g_i|
            \le \sqrt{\rho_i} \textstyle\sum_j \sqrt{\rho_j} / \hat d_j
            &\;\Rightarrow\; g_i \in \hat g_i \Big[\frac{1 - \eta}{1 + \delta},
            \frac{1 + \eta}{1 - \delta}\Big], \quad
            \eta = \max_i \frac{\sqrt{\rho_i}}{\hat g_i} \sum_j \frac{\sqrt{\rho_j}}{\hat d_j}

    and therefore, as s² = 1/(d̃ g),

    .. math:: \frac{s_i^2}{\hat s_i^2} \in \Big[\frac{1 - \delta}{(1 + \delta)(1 + \eta)},
              \frac{1 + \delta}{(1 - \delta)(1 - \eta)}\Big] .

    These are the factors low and high (Ostrowski). The sums and the maxima are known only when
    the pass is over, and only they are needed: no row is looked at again. Rounding: a diagonal
    entry that went below 0 is charged twice, and every row twice the mean of these, ε (as in
    `PivotedCholesky.hidden`); as ε is known last, :math:`\sqrt{\rho + 2ε} \le \sqrt\rho +
    \sqrt{2ε}` brings it in.
    """

    low: float
    high: float
    lost: float
    slack: float

    @classmethod
    def of(cls, found: Gathered, n_rows: int) -> Limits:
        """Return the limits that all rows together prove."""
        totals, peaks = found.totals, found.peaks
        charge = 2.0 * totals.negative / n_rows
        root = math.sqrt(charge)
        delta = (totals.roots + n_rows * root) * (peaks.density + root * peaks.inverse_density)
        delta += peaks.rounding + RESIDUAL_FLOOR
        eta = totals.weighted_roots + root * totals.inverse_densities
        eta = eta * (peaks.degree + root * peaks.inverse_degree) + RESIDUAL_FLOOR
        low = max(1.0 - delta, 0.0) / ((1.0 + delta) * (1.0 + eta))
        if not (delta < 1.0 and eta < 1.0):
            # Far too few landmarks: no eigenvalue is above 1, so nothing comes on top of that,
            # and s² is at most 1 too.
            return cls(low, np.inf, 4.0 * totals.negative, 0.0)
        high = (1.0 + delta) / ((1.0 - delta) * (1.0 - eta))
        lost = high * (totals.lost + charge * totals.squares)
        return cls(low, high, lost, high * (totals.charged + charge * totals.squares))


def residual_trace(found: Gathered) -> float:
    """Return an upper bound of Σ ρ."""
    return float(found.totals.residual + 2.0 * found.totals.negative)


class Held(NamedTuple):
    """What is left of the diagonal of some rows, (n,), given landmarks."""

    left: FloatArray

    @classmethod
    def of(cls, basis: Basis, points: FloatArray) -> Held:
        """Work it out tile by tile: O(n r (d + r))."""

        def task(rows: slice) -> FloatArray:
            features = basis.features(points[rows])
            left: FloatArray = 1.0 - np.einsum("ij,ij->j", features, features)
            return left

        with Workers() as workers, limited_blas(1):
            return cls(np.concatenate(workers.each(_tiles(points), task)))

    @property
    def mean(self) -> float:
        """The mean residual, with what rounding may hide."""
        return float(np.abs(self.left).mean()) + RESIDUAL_FLOOR

    @property
    def exhausted(self) -> bool:
        """Whether nothing but rounding is left."""
        totals = _extremes(self.left, *(np.ones_like(self.left) for _ in range(4)))
        return _exhausted(*totals)

    def drawn(self, points: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Return up to `count` of the rows, drawn by their residual."""
        return _drawn(points, self.left, rng.random(self.left.size), count).points


def _exhausted(totals: Totals, peaks: Peaks) -> bool:
    """Whether nothing but rounding is left: as `PivotedCholesky.exhausted`."""
    return bool(totals.negative > totals.positive or not peaks.left > RESIDUAL_FLOOR)


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
