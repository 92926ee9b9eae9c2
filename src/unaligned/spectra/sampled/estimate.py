"""Eigenvalues from sampled rows of WQ, and how far they may be off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._check import FloatArray
from ..base import Spectrum

# What is left of the correction for the missing subspace after it was made, at least: at most 0.13
# of it on eleven families at N = 3000 with all rows sampled. The same of the correction for
# degrees, chosen such that stated errors are 1 to 4 times the true ones on heavy tails.
SUBSPACE_SHARE = 0.2
DEGREES_SHARE = 0.15


@dataclass(frozen=True)
class SampledSpectrum:
    r"""Eigenvalues of W by a Rayleigh-Ritz step of which only some rows are known.

    With Q orthonormal, (N, m), WQ = QH + R and R ⊥ Q, so that H is the regression of the rows of
    WQ on those of Q, and any sample of rows estimates it; R is the noise:

    .. math:: H_0 = (Q_r^T w\, Q_r)^{-1} Q_r^T w\, (WQ)_r, \qquad
              \hat H = H_0 + \textstyle\sum_r w\, q_r^T \hat R_r / (1 - h_r)

    H₀ is biased by m/n: rows of large leverage h pull it towards themselves, and there Q is too
    large, above all on landmarks. The sum removes that: :math:`\hat R_r / (1 - h_r)` is the
    residual of a row from the regression without it, so each term is an unbiased estimate of
    :math:`H - H_0` (a difference estimator, cross-fitted row by row). Of a sample that is a large
    part of all rows, a share 1/w of the residual stays as it is.

    Sampled degrees scale the rows and columns of W by exp(-ε), where the errors ε = log(s/ŝ) are
    known at the sampled rows. That is undone first, for H becomes :math:`e^D H e^D` with
    :math:`D = Q_r^T w\, \epsilon\, Q_r`. To second order, the eigenvalues λ are then those of

    .. math:: \mathrm{diag}\Big(\theta_i - \sum_j \frac{A_{ij}^2}{\theta_i - \theta_j}\Big)
              + \frac{E_{ij}}{\sqrt{(\lambda_i - c)(\lambda_j - c)}}

    with θ the eigenvalues of the symmetric part of H, A its antisymmetric part and E an estimate
    of :math:`R^T R` from the residuals with and without their rows, all in the eigenbasis of the
    symmetric part. The sum is what the noise adds to the eigenvalues of a symmetric matrix: A is
    as large as the noise of the symmetric part. The last term is what W has outside of span(Q),
    where its eigenvalues are about c, the last ones of H; taken of 2 K functions, as it also
    mixes close eigenvalues. It is in doubt by how much smaller it is for c = 0, and by a share of
    it at least. Functions that vanish on all sampled rows, such as those of a point with few
    copies, have no estimate.
    """

    values: FloatArray  # (K,), λ
    noise: FloatArray  # (K,), relative standard errors from the choice of the rows
    curvature: FloatArray  # (K,), the first sum, relative
    missing: FloatArray  # (K,), the diagonal of the last term, relative
    doubt: FloatArray  # (K,), of that term, relative
    unseen: FloatArray  # (K,), log of the largest effect of functions that no sampled row shows
    degrees: FloatArray  # (K,), first-order effect of the errors of sampled degrees, undone
    residual: float  # mean of E_ii over i ≤ K
    ritz_values: FloatArray  # (m,), θ, descending

    @property
    def half_widths(self) -> FloatArray:
        """95 % half widths of log λ, (K,): all parts in quadrature."""
        parts = [2.0 * self.noise, self.curvature, self.doubt, self.unseen]
        parts.append(DEGREES_SHARE * self.degrees)
        return np.asarray(np.linalg.norm(parts, axis=0))

    def spectrum(self, n_eigenvalues: int, rounding: float) -> Spectrum:
        """Return the values with 95 % limits; those that were not computed are 0 but rounding."""
        order = np.argsort(-self.values, kind="stable")
        values, widths = self.values[order], self.half_widths[order]
        rest = n_eigenvalues - values.size
        values = np.concatenate([np.maximum(values, 0.0), np.zeros(rest)])
        widths = np.pad(widths, (0, rest))
        factors = np.exp(np.minimum(widths, 600.0))  # of values that no sampled row shows
        lower = np.maximum(values / factors - rounding, 0.0)
        upper = values * factors + rounding
        return Spectrum(values, lower, upper, 0.0, "statistical", "sampled")


def estimate(
    gram: FloatArray,
    features: FloatArray,
    products: FloatArray,
    weights: FloatArray,
    degree_errors: FloatArray,
    n_eigenvalues: int,
) -> SampledSpectrum:
    """Return the K largest eigenvalues from n sampled rows: O(n m² + m³).

    Parameters
    ----------
    gram
        FᵀF over all rows, (m, m), of functions F that need not be orthonormal.
    features, products
        Rows of F and of WF, (n, m).
    weights
        Rows that each of these stands for, (n,); 1 for those that are not sampled.
    degree_errors
        log(s/ŝ) of these rows, (n,).
    n_eigenvalues
        K.
    """
    sizes, turn = np.linalg.eigh(gram)
    kept = sizes > 1e-10 * sizes[-1]
    turn = turn[:, kept] / np.sqrt(sizes[kept])
    Q, Z = features @ turn, products @ turn
    weighted = weights[:, None] * Q
    # Eigenvalues are near 1, and 0 for functions that vanish on all sampled rows.
    lengths, axes = np.linalg.eigh(weighted.T @ Q)
    seen = lengths > 1e-3
    inverse = (axes[:, seen] / lengths[seen]) @ axes[:, seen].T
    H = inverse @ (weighted.T @ Z)
    R = Z - Q @ H
    # What the regression without a row leaves of it; in the whole population it is R.
    sampled = 1.0 - 1.0 / weights
    leverage = np.einsum("ij,ij->i", weighted @ inverse, Q)
    free = 1.0 + sampled * leverage / np.maximum(1.0 - leverage, 0.05)
    H += weighted.T @ (free[:, None] * R)
    tilt = weighted.T @ (degree_errors[:, None] * Q)
    tilt += np.eye(tilt.shape[0]) + 0.5 * tilt @ tilt
    H = tilt @ H @ tilt
    theta, U = np.linalg.eigh(0.5 * (H + H.T))
    theta, U = theta[::-1], U[:, ::-1]
    leading = U[:, : 2 * n_eigenvalues]
    k = leading.shape[1]
    left = R @ leading
    apart = free[:, None] * left
    outside = (weights[:, None] * left).T @ apart  # E
    squares = np.maximum(np.diagonal(outside), 0.0)
    skew = U.T @ (0.5 * (H - H.T)) @ leading  # (m, k)
    gaps = theta[:k] - theta[:, None]
    blur = 8.0 * np.mean(skew**2)  # gaps below the noise are not gaps
    curvature = np.sum(skew**2 * gaps / (gaps**2 + blur + np.finfo(float).tiny), axis=0)
    # The mean of the last twentieth: single ones are noise.
    rest = max(float(theta[-max(theta.size // 20, 1) :].mean()), 0.0) if theta.size > k else 0.0
    least, missing = (
        0.5 * (np.sqrt(above**2 + 4.0 * squares) - above)
        for above in (np.maximum(theta[:k] - c, 0.0) for c in (0.0, rest))
    )
    gain = np.sqrt(missing / np.maximum(squares, np.finfo(float).tiny))
    outside *= gain[:, None] * gain
    outside[np.diag_indices(k)] = theta[:k] - curvature + missing
    values = np.linalg.eigvalsh(0.5 * (outside + outside.T))[::-1]
    k = min(k, n_eigenvalues)
    leading, apart, values = leading[:, :k], apart[:, :k], values[:k]
    curvature, missing, least = curvature[:k], missing[:k], least[:k]
    shares = weights[:, None] * (Q @ leading) ** 2
    degrees = 2.0 * degree_errors @ shares
    scale = np.maximum(values, np.finfo(float).tiny)
    # An unseen function may have an eigenvalue, at most the second, that moves smaller ones down.
    places = np.arange(k)
    higher = np.minimum(places, np.maximum(places - np.count_nonzero(~seen), 1))
    logs = np.log(np.maximum(theta, np.finfo(float).tiny))
    influence = (weighted @ leading) * apart / scale
    influence += shares * (2.0 * degree_errors[:, None] - degrees)
    squared = influence**2 * sampled[:, None]
    # Few rows carry the noise of functions of small clusters. It is then uncertain itself, with ν
    # degrees of freedom: the variance of Student's t is about 1 + 2/ν.
    variance = squared.sum(axis=0)
    few = (squared**2).sum(axis=0) / np.maximum(variance**2, np.finfo(float).tiny)  # 1/ν
    noise = np.sqrt(variance * (1.0 + 2.0 * few))
    return SampledSpectrum(
        values,
        noise,
        curvature / scale,
        missing / scale,
        np.maximum(missing - least, SUBSPACE_SHARE * missing) / scale,
        logs[higher] - logs[:k],
        degrees,
        float(squares[:k].mean()),
        theta,
    )
