"""What landmarks prove about the eigenvalues of W, from sums and maxima over rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh

from ..._check import FloatArray
from ..base import Spectrum, descending

# Relative to K_ii: subtracting the squares of a feature column from K_ii leaves a few eps of K_ii,
# so a smaller residual is noise.
RESIDUAL_FLOOR = 64 * float(np.finfo(np.float64).eps)


class Scaling(NamedTuple):
    """Estimates of the sums in Eqs. 2-4 for n rows, each (n,), with errors due to rounding."""

    density: FloatArray  # d̂ of K 1
    degree: FloatArray  # ĝ of K (1/d̂)
    squares: FloatArray  # ŝ² = 1 / (d̂ ĝ)
    density_error: FloatArray | float = 0.0
    degree_error: FloatArray | float = 0.0

    @classmethod
    def of(
        cls,
        density: FloatArray,
        degree: FloatArray,
        diagonal: FloatArray,
        density_error: FloatArray | float,
        *,
        nonnegative: bool,
    ) -> Scaling:
        """Return the scaling from estimates of both sums, `density` being at least K_ii.

        If no entry of K is negative, g is at least K_ii/d̃, and s² K_ii, a diagonal entry of W,
        at most λ₁ = 1: clipping to that only reduces the error.
        """
        clipped = np.maximum(degree, diagonal / density)
        squares = 1.0 / (density * clipped)
        if nonnegative:
            return cls(density, clipped, np.minimum(squares, 1.0 / diagonal), density_error)
        return cls(density, clipped, squares, density_error, clipped - degree)


class RowSums(NamedTuple):
    """Sums over rows; ρ is the residual diagonal, twice its negative part included."""

    rows: float  # Σ 1
    roots: float  # Σ √ρ
    weighted_roots: float  # Σ √ρ / d̂
    inverse_densities: float  # Σ 1 / d̂
    weighted_diagonal: float  # Σ √K_ii / d̂
    squares: float  # Σ ŝ²
    scaled_residual: float  # Σ ŝ² ρ
    scaled_loss: float  # Σ ŝ² 2 max(-left, 0), and what negative eigenvalues of K may take
    scaled_left: float  # Σ ŝ² max(left, 0)
    residual: float  # Σ ρ
    positive: float  # Σ max(left, 0)
    negative: float  # Σ max(-left, 0)


class RowMaxima(NamedTuple):
    """Maxima over rows."""

    density: float  # √ρ / d̂
    degree: float  # √ρ / ĝ
    inverse_density: float  # 1 / d̂
    inverse_degree: float  # 1 / ĝ
    weighted_diagonal: float  # √K_ii / ĝ
    density_error: float  # relative
    degree_error: float  # relative
    left: float  # of the residual diagonal above its floor


class RowStatistics(NamedTuple):
    r"""What the certificate needs to know of a set of rows; statistics of disjoint sets add up.

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
            \eta = \max_i \frac{\sqrt{\rho_i}}{\hat g_i} \sum_j \frac{\sqrt{\rho_j}}{\hat d_j} \\
        s_i^2 = \frac{1}{\tilde d_i g_i} &\;\Rightarrow\; \frac{s_i^2}{\hat s_i^2} \in
            \Big[\frac{1 - \delta}{(1 + \delta)(1 + \eta)},
            \frac{1 + \delta}{(1 - \delta)(1 - \eta)}\Big] .

    Where entries of K may be negative, g is off by at most
    :math:`\sqrt{K_{ii}} \sum_j \sqrt{K_{jj}}\, |1/\tilde d_j - 1/\hat d_j|` instead, which goes
    into η. Only sums and maxima occur, so one pass over the rows is enough.

    Rounding makes R slightly indefinite. A diagonal entry below 0 is charged twice, and every row
    twice the mean ε of these; as ε is known last, :math:`\sqrt{\rho + 2ε} \le \sqrt\rho +
    \sqrt{2ε}` accounts for it.
    """

    sums: RowSums
    maxima: RowMaxima

    @classmethod
    def of(
        cls,
        left: FloatArray,
        diagonal: FloatArray,
        scaling: Scaling,
        floor: FloatArray | None = None,
    ) -> RowStatistics:
        """Return the statistics of n rows from the diagonals of K - FᵀF and K, (n,)."""
        rounding = RESIDUAL_FLOOR * np.abs(diagonal)
        floor = rounding if floor is None else floor  # above: K may have negative eigenvalues
        positive, negative = np.maximum(left, 0.0), np.maximum(-left, 0.0)
        residual = positive + floor + 2.0 * negative
        roots, diagonal_roots = np.sqrt(residual), np.sqrt(diagonal)
        squares = scaling.squares
        inverse, inverse_degree = 1.0 / scaling.density, 1.0 / scaling.degree
        sums = RowSums(
            rows=left.size,
            roots=roots.sum(),
            weighted_roots=(roots * inverse).sum(),
            inverse_densities=inverse.sum(),
            weighted_diagonal=(diagonal_roots * inverse).sum(),
            squares=squares.sum(),
            scaled_residual=(squares * residual).sum(),
            scaled_loss=(squares * (2.0 * negative + floor - rounding)).sum(),
            scaled_left=(squares * positive).sum(),
            residual=residual.sum(),
            positive=positive.sum(),
            negative=negative.sum(),
        )
        maxima = RowMaxima(
            density=(roots * inverse).max(),
            degree=(roots * inverse_degree).max(),
            inverse_density=inverse.max(),
            inverse_degree=inverse_degree.max(),
            weighted_diagonal=(diagonal_roots * inverse_degree).max(),
            density_error=(scaling.density_error * inverse).max(),
            degree_error=(scaling.degree_error * inverse_degree).max(),
            left=(left - floor).max(),
        )
        return cls(sums, maxima)

    def __add__(self, other: RowStatistics) -> RowStatistics:  # type: ignore[override]
        return RowStatistics(
            RowSums(*map(sum, zip(self.sums, other.sums, strict=True))),
            RowMaxima(*map(max, zip(self.maxima, other.maxima, strict=True))),
        )

    @property
    def exhausted(self) -> bool:
        """Whether nothing but rounding is left to factor."""
        # Once more is lost below 0 than is left above, further landmarks only fit noise.
        return bool(self.sums.negative > self.sums.positive or not self.maxima.left > 0)

    @property
    def residual_trace(self) -> float:
        """An upper bound of Σ ρ."""
        return float(self.sums.residual + 2.0 * self.sums.negative)

    @property
    def shift(self) -> float:
        """The trace of the scaled residual per row, added to each eigenvalue.

        The residual's trace is known and its eigenvectors are not: spread over all N directions
        it removes a seventh (3-torus) to three quarters (digits, noise) of the error.
        """
        return self.sums.scaled_left / self.sums.rows

    def scaling_limits(self, *, nonnegative: bool) -> tuple[float, float]:
        """Return limits of s²/ŝ²; the upper one is inf where there are too few landmarks.

        `nonnegative` says that no entry of K is below 0.
        """
        sums, maxima = self.sums, self.maxima
        root = math.sqrt(2.0 * sums.negative / sums.rows)
        delta = (sums.roots + sums.rows * root) * (maxima.density + root * maxima.inverse_density)
        delta += maxima.density_error + RESIDUAL_FLOOR
        eta = sums.weighted_roots + root * sums.inverse_densities
        eta *= maxima.degree + root * maxima.inverse_degree
        eta += maxima.degree_error + RESIDUAL_FLOOR
        if not delta < 1.0:
            return 0.0, math.inf
        if nonnegative:
            below, above = (1.0 + delta) / (1.0 - delta), (1.0 - delta) / (1.0 + delta)
        else:
            eta += sums.weighted_diagonal * maxima.weighted_diagonal * delta / (1.0 - delta)
            below, above = 1.0 + delta, 1.0 - delta
        high = 1.0 / (above * (1.0 - eta)) if eta < 1.0 else math.inf
        return 1.0 / (below * (1.0 + eta)), high

    def spectrum(
        self, gram: FloatArray, n_eigenvalues: int, limits: tuple[float, float], largest: float
    ) -> Spectrum:
        r"""Return the K largest eigenvalues of F diag(ŝ²) Fᵀ with the limits that the rows prove.

        .. math:: \text{low}\, \hat\lambda_i \le \lambda_i \le \text{high}\, \hat\lambda_i + e_i,
                  \qquad \sum_i e_i \le \text{high} \sum_n \hat s_n^2 \rho_n

        `gram` is that matrix, (r, r), or one with about the same eigenvalues; `limits` are those
        of s²/ŝ² (Ostrowski); `largest` is an upper bound of all eigenvalues, or inf.
        """
        found = descending(eigvalsh(gram, check_finite=False))[:n_eigenvalues]
        found = np.pad(found, (0, n_eigenvalues - found.size))
        rounding = gram_rounding(gram.shape[0], float(found[0]))
        sums, (low, high) = self.sums, limits
        # With too few landmarks nothing but `largest` is known.
        lower, upper, slack = np.zeros_like(found), np.full_like(found, largest), 0.0
        if math.isfinite(high):
            charge = 2.0 * sums.negative / sums.rows * sums.squares
            lower = low * found - rounding - high * (sums.scaled_loss + charge)
            upper = np.minimum(high * found, largest)
            slack = float(high * (sums.scaled_residual + charge))
        return Spectrum(
            np.minimum(found + self.shift, largest),
            lower=np.maximum(lower, 0.0),
            upper=upper + rounding,
            slack=slack,
            bound_kind="certified",
            solver="landmarks",
        )


def gram_rounding(rank: int, largest: float) -> float:
    """Return the rounding error of an eigenvalue: (8 + √r) · eps · λ₁.

    The matrix that LAPACK sees is of order r, whatever N; against long double the error
    was at most 6 eps for N from 10³ to 2·10⁵.
    """
    return float((8.0 + np.sqrt(rank)) * np.finfo(np.float64).eps * largest)
