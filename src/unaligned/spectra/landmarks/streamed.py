"""Landmarks for rows that are read by blocks: chosen in a sample, certified on all rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ..._check import FloatArray
from ...engine import limited_blas
from ...engine.threads import Workers
from ...operators.affinity import CrossKernel, KernelAffinity, StreamedAffinity
from ...operators.diffusion import DiffusionOperator
from ...rows.reduce import numbers_from
from ..base import Accuracy, Spectrum
from ..prices import announce, landmark_price
from .certificate import RESIDUAL_FLOOR, RowStatistics, Scaling
from .cholesky import CertifiedCholesky, Forecast, PivotedCholesky, pivoted_factor, warn_of_bound

# Rows in memory on which landmarks are chosen: with 1000 landmarks their features take 80 MB.
# As many rows are held out; their mean residual is that of all rows to a few percent.
CHOICE_ROWS = 10_240


class Basis:
    r"""Landmarks S with the triangle of :math:`K_{S,S} = L L^T`: features :math:`L^{-1} k(S, x)`.

    The triangle is solved by halves with products only (NumPy releases the GIL during those), the
    smallest blocks by their inverses. O(n r (d + r)) time for n rows.
    """

    leaf_rows = 48  # of the triangle that are solved by their inverse: few beside r

    def __init__(self, kernel: CrossKernel, triangle: FloatArray) -> None:
        self.kernel, self.triangle = kernel, triangle
        self._inverses: dict[int, FloatArray] = {}
        self._invert_leaves(0, self.rank)

    @property
    def rank(self) -> int:
        """The number of landmarks, r."""
        return int(self.triangle.shape[0])

    def affinities(self, rows: FloatArray) -> FloatArray:
        """Return k(S, x) of n rows, (r, n)."""
        return self.kernel.fill(rows, np.empty((self.rank, rows.shape[0])))

    def features(self, rows: FloatArray) -> FloatArray:
        """Return L⁻¹ k(S, x) of n rows, (r, n)."""
        return self.solve(self.affinities(rows))

    def solve(self, right: FloatArray) -> FloatArray:
        """Overwrite `right`, (r, n), with L⁻¹ times it."""
        self._solve(right, 0, self.rank)
        return right

    def _solve(self, right: FloatArray, start: int, stop: int) -> None:
        if stop - start <= self.leaf_rows:
            right[start:stop] = self._inverses[start] @ right[start:stop]
            return
        middle = (start + stop) // 2
        self._solve(right, start, middle)
        right[middle:stop] -= self.triangle[middle:stop, start:middle] @ right[start:middle]
        self._solve(right, middle, stop)

    def _invert_leaves(self, start: int, stop: int) -> None:
        if stop - start <= self.leaf_rows:
            leaf = self.triangle[start:stop, start:stop]
            self._inverses[start] = solve_triangular(leaf, np.eye(stop - start), lower=True)
            return
        middle = (start + stop) // 2
        self._invert_leaves(start, middle)
        self._invert_leaves(middle, stop)

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """Return L⁻ᵀ times `right`, (r, n)."""
        return np.asarray(solve_triangular(self.triangle, right, lower=True, trans=1))

    def extended(self, candidates: FloatArray, room: int) -> Basis:
        """Return a basis with up to `room` of these rows besides, those that add most."""
        features = self.features(candidates)
        among = self.kernel.of(candidates)
        inner = among.fill(candidates, np.empty((candidates.shape[0],) * 2))
        inner -= features.T @ features
        if not inner.diagonal().max() > RESIDUAL_FLOOR:  # nothing but rounding to add
            return self
        triangle, kept = pivoted_factor(0.5 * (inner + inner.T), RESIDUAL_FLOOR, room)
        below = np.hstack([features[:, kept].T, triangle])
        above = np.pad(self.triangle, ((0, 0), (0, kept.size)))
        points = np.vstack([self.kernel.points, candidates[kept]])
        return Basis(self.kernel.of(points), np.vstack([above, below]))


class PassSettings(NamedTuple):
    """What every block of a pass needs."""

    basis: Basis
    density: FloatArray | None = None  # (r,): d̂ = kᵀ times this; None in the first pass
    degree: FloatArray | None = None  # (r,): ĝ = φᵀ times this
    seed: int = 0  # of the draw of rows
    n_drawn: int = 0


class RowDraw(NamedTuple):
    """Rows drawn by residual without replacement: those with the largest keys."""

    keys: FloatArray  # (m,)
    points: FloatArray  # (m, d)

    @classmethod
    def of(cls, points: FloatArray, left: FloatArray, numbers: FloatArray, count: int) -> RowDraw:
        """Draw rows by residual: the largest log(u)/ρ (Efraimidis and Spirakis, 2006)."""
        rows = np.flatnonzero(left > RESIDUAL_FLOOR)
        keys = np.log(numbers[rows]) / left[rows]
        return cls(keys[:0], points[:0]).merge(cls(keys, points[rows]), count)

    def merge(self, other: RowDraw, most: int) -> RowDraw:
        """Return the `most` rows with the largest keys of both, largest first."""
        keys = np.concatenate([self.keys, other.keys])
        order = np.argsort(-keys, kind="stable")[:most]
        return RowDraw(keys[order], np.concatenate([self.points, other.points])[order])


class PassResult(NamedTuple):
    """What the third pass computes of some rows; results of disjoint rows add up."""

    gram: FloatArray  # (r, r): F diag(ŝ²) Fᵀ
    statistics: RowStatistics
    drawn: RowDraw
    n_drawn: int

    def __add__(self, other: PassResult) -> PassResult:  # type: ignore[override]
        """Return the result of both; the matrix of the first is overwritten."""
        return PassResult(
            np.add(self.gram, other.gram, out=self.gram),
            self.statistics + other.statistics,
            self.drawn.merge(other.drawn, self.n_drawn),
            self.n_drawn,
        )


def kernel_sums(points: FloatArray, _start: int, settings: PassSettings) -> FloatArray:
    """Return Σ k over rows, (r,), or Σ k/d̂ once d̂ is known: O(n r d), and one tile in memory."""
    sums = np.zeros(settings.basis.rank)
    for rows in _tiles(points, 512):  # kernels of these stay in the cache
        kernel = settings.basis.affinities(points[rows])
        if settings.density is None:
            sums += kernel.sum(axis=1)
        else:
            sums += kernel @ (1.0 / _densities(kernel, settings.density)[0])
    return sums


def scaled_gram(points: FloatArray, start: int, settings: PassSettings) -> PassResult:
    """Return the result of the third pass: O(n r (d + r)), and a tile and (r, r) in memory.

    `start` is the position of the first of these rows among all.
    """
    tiles = (_tile(points[rows], start + rows.start, settings) for rows in _tiles(points))
    found = next(tiles)
    for tile in tiles:
        found += tile
    return found


def _tile(points: FloatArray, start: int, settings: PassSettings) -> PassResult:
    if settings.density is None or settings.degree is None:
        raise ValueError("the third pass needs the results of the first two")
    kernel = settings.basis.affinities(points)
    density, rounding = _densities(kernel, settings.density)
    features = settings.basis.solve(kernel)
    left = 1.0 - np.einsum("ij,ij->j", features, features)
    ones = np.ones_like(left)
    scaling = Scaling.of(density, settings.degree @ features, ones, rounding, nonnegative=True)
    features *= np.sqrt(scaling.squares)
    # Row i has the i-th number of one stream, whatever the blocks.
    numbers = numbers_from(settings.seed, start, left.size)
    return PassResult(
        features @ features.T,
        RowStatistics.of(left, ones, scaling),
        RowDraw.of(points, left, numbers, settings.n_drawn),
        settings.n_drawn,
    )


def _densities(kernel: FloatArray, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return d̂ = max(kᵀc, 1), (n,), and its rounding error, (8 + √r) eps kᵀ|c|."""
    both = np.stack([coefficients, np.abs(coefficients)]) @ kernel
    eps = float(np.finfo(np.float64).eps)
    # A row sums to at least 1, its diagonal entry, so clipping only reduces the error.
    return np.maximum(both[0], 1.0), (8.0 + np.sqrt(coefficients.size)) * eps * both[1]


def _tiles(points: FloatArray, size: int = 1024) -> Iterator[slice]:
    """Yield tiles of rows; a thread needs 8 r · 1024 bytes for the features of one."""
    n = points.shape[0]
    return (slice(a, min(a + size, n)) for a in range(0, n, size))


def residual_diagonal(basis: Basis, points: FloatArray) -> FloatArray:
    """Return the diagonal of K - FᵀF on n rows, (n,), tile by tile: O(n r (d + r))."""

    def task(rows: slice) -> FloatArray:
        features = basis.features(points[rows])
        return np.asarray(1.0 - np.einsum("ij,ij->j", features, features))

    with Workers() as workers, limited_blas(1):
        return np.concatenate(workers.each(_tiles(points), task))


@dataclass
class StreamedLandmarks:
    r"""Landmarks for points that are read by blocks.

    1. Randomly pivoted Cholesky on a random sample of rows in memory chooses the landmarks.
    2. Held-out rows become landmarks where these do not suffice for rows outside of the sample.
    3. Two passes over all rows, of kernels only, give d̃ and d, hence s² = 1/(d̃² d).
    4. A pass gives the Gram matrix of φ s, whose eigenvalues are W's, and `RowStatistics`.

    If the bound exceeds `tol`, rows drawn by their residual become landmarks and steps 2 to 4 are
    repeated. O(N r (3 d + 3 r/2)) time a round; the memory does not grow with N.
    """

    affinity: StreamedAffinity
    n_eigenvalues: int
    accuracy: Accuracy
    capacity: int
    rng: np.random.Generator

    def solve(self, affordable: float = math.inf) -> Spectrum | None:
        """Return the spectrum; None if more than `affordable` landmarks are expected.

        That is known before the first pass over all rows.
        """
        n, tol = self.affinity.n_samples, self.accuracy.tol
        basis, forecast, goal, held_out = self._sampled_basis()
        for is_last in (False,) * 5 + (True,):
            basis = self._extend_for(held_out, basis, forecast, goal)
            expected = forecast.rank_for(1.2)
            if expected > affordable:
                return None
            announce("landmarks", n, self.n_eigenvalues, landmark_price(n, basis.rank))
            found = self._passes(basis)
            limits = found.statistics.scaling_limits(nonnegative=True)
            # 1 is the largest eigenvalue: W is similar to a stochastic matrix.
            spectrum = found.statistics.spectrum(found.gram, self.n_eigenvalues, limits, 1.0)
            bound = spectrum.total_log_error(self.accuracy.gamma)
            exhausted = found.statistics.exhausted
            if bound <= tol or exhausted or is_last or basis.rank >= self.capacity:
                break
            before, basis = basis, self._extend(basis, forecast, bound / tol, found.drawn.points)
            if basis is before:
                break
        if bound > tol:
            remedy = None
            if expected > basis.rank:
                remedy = (
                    f"It would take {f'about {expected:.1g}' if expected <= n else 'nearly all'} "
                    "rows: the kernel has a heavy tail, as for noise in many dimensions. Lower "
                    "n_eigenvalues, raise tol or gamma, reduce the dimension "
                    "(preprocess='pca:10'), or subsample the rows."
                )
            warn_of_bound(bound, tol, basis.rank, rounding=exhausted, remedy=remedy)
        stats = {
            "landmarks": basis.rank,
            "residual_trace": found.statistics.residual_trace,
            "converged": bound <= tol,
        }
        return replace(spectrum, stats=stats)

    def _sampled_basis(self) -> tuple[Basis, Forecast, float, FloatArray]:
        """Return landmarks from a sample, a forecast, the mean residual wanted, held-out rows.

        The forecast is of the mean residual as a multiple of the wanted one.
        """
        gamma, tol = self.accuracy.gamma, self.accuracy.tol
        # At most 32 MiB of held-out rows.
        held = min(CHOICE_ROWS, (1 << 25) // (8 * self.affinity.passes.source.n_features))
        rows = self.affinity.sample(CHOICE_ROWS + held, self.rng)
        points, held_out = rows[:CHOICE_ROWS], rows[CHOICE_ROWS:].copy()
        kernel = self.affinity.kernel
        operator = DiffusionOperator(KernelAffinity(points, kernel))
        capacity = max(min(self.capacity, points.shape[0] // 2), 1)
        factor = PivotedCholesky(operator.affinity, capacity)
        k = min(self.n_eigenvalues, points.shape[0])
        # 0.6: rows outside of the sample have larger residuals.
        sampled = CertifiedCholesky(operator, factor, k, Accuracy(gamma, 0.6 * tol), self.rng)
        sampled.reach_tolerance(sampled=True)
        triangle = np.tril(factor.features[:, factor.landmarks].T)
        centre = np.median(points, axis=0)
        basis = Basis(CrossKernel(points[factor.landmarks].copy(), kernel, centre), triangle)
        wanted = tol * (float(sampled.estimate().upper[-1]) + gamma)
        residual, slack = float(factor.residual.mean()), sampled.slack
        goal = residual * max(wanted / slack, 1e-3) if slack > 0 else residual
        shift = math.log(residual / goal) - math.log(slack)
        logs = [log + shift for log in sampled.forecast.logs]
        return basis, Forecast(sampled.forecast.ranks, logs), goal, held_out

    def _extend_for(
        self, held_out: FloatArray, basis: Basis, forecast: Forecast, goal: float
    ) -> Basis:
        """Return the basis with as many more landmarks as the held-out rows require."""
        for _ in range(6 if held_out.size else 0):
            left = residual_diagonal(basis, held_out)
            excess = (float(np.abs(left).mean()) + RESIDUAL_FLOOR) / goal
            forecast.add(basis.rank, excess)
            exhausted = left.sum() < 0.0 or not left.max() > RESIDUAL_FLOOR
            if excess <= 1.2 or exhausted or basis.rank >= self.capacity:
                break
            drawn = RowDraw.of(held_out, left, self.rng.random(left.size), basis.rank)
            basis = self._extend(basis, forecast, excess, drawn.points)
        return basis

    def _extend(self, basis: Basis, forecast: Forecast, excess: float, drawn: FloatArray) -> Basis:
        """Return the basis with as many more landmarks as the forecast requires."""
        forecast.add(basis.rank, excess)
        wanted = forecast.rank_for(0.8) - basis.rank
        room = self.capacity - basis.rank
        count = max(int(min(max(wanted, 16.0), 0.5 * basis.rank, room)), 1)
        return basis.extended(drawn[: 2 * max(count, 16)], count) if drawn.size else basis

    def _passes(self, basis: Basis) -> PassResult:
        """Return the result of three passes over all rows."""
        reduce = self.affinity.passes.reduce
        seed = int(self.rng.integers(2**63))
        settings = PassSettings(basis, seed=seed, n_drawn=max(basis.rank, 32))
        ones = basis.solve(reduce(kernel_sums, settings, "row sums")[:, None])
        settings = settings._replace(density=basis.solve_transposed(ones)[:, 0])
        inverse = basis.solve(reduce(kernel_sums, settings, "degrees")[:, None])[:, 0]
        found = reduce(scaled_gram, settings._replace(degree=inverse), "eigenvalues")
        self.affinity.entries_evaluated += 3 * self.affinity.n_samples * basis.rank
        return found
