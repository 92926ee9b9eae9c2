r"""Three passes over blocks of rows: densities, degrees, and the small matrix with W's values.

Every pass is a sum of what single blocks of rows give, given the landmarks: `kernel_sums` for
the first two, `gather` for the third. Both are plain functions of rows and a `Broadcast`, so
they run wherever the rows are, and only sums of r or r² numbers travel.

With features φ = L⁻¹k the first two passes need no features at all:

.. math:: \hat d = k^T c, \quad c = L^{-T} L^{-1} \textstyle\sum_j k_j, \qquad
          \hat g = \phi^T L^{-1} \textstyle\sum_j k_j / \hat d_j, \qquad
          \hat s^2 = 1 / (\hat d \hat g) ,

so the triangle is solved once a row, in the third pass, where ‖φ‖² gives the residual ρ too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .._check import FloatArray
from ..engine import limited_blas
from ..operators.passes import numbers_from
from ..operators.threads import Workers
from ._basis import Basis
from ._cholesky import RESIDUAL_FLOOR

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
