"""Block Lanczos and Rayleigh-Ritz, grown until a bound on the ordered eigenvalues says stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ... import _check
from ...errors import AccuracyWarning, warn
from ...operators.base import PSDOperator
from ..base import Accuracy, EigenSolver, Spectrum
from .certificate import SOLVER, Judge
from .lanczos import PROBE_STEPS, PROBE_WIDTH, BlockLanczos


@dataclass(frozen=True)
class Krylov(EigenSolver):
    r"""The K largest eigenvalues from a block Krylov space, with a bound on what it missed.

    Ritz values θ of T = QᵀWQ lie below the eigenvalues, θᵢ ≤ λᵢ (Cauchy). Residuals of Ritz
    pairs say nothing about an eigenvalue that the space never met, so the bound from above asks
    the complement. Let B be the part of WQ outside of Q, BᵀB = E RᵀR Eᵀ, and
    c ≥ λ_max(C), C = (I-QQᵀ)W(I-QQᵀ). For every shift τ > c and every i

    .. math:: \lambda_i \le \max\bigl(\tau,\ \lambda_i(T + E R^T M R E^T)\bigr), \qquad
              M = \frac{(\tau - c) I + Q_{next}^T W Q_{next}}{\tau (\tau - c)}
              \le \frac{I}{\tau - c} .

    *Proof.* In a basis that begins with Q, W = [[T, Bᵀ], [B, C]]. For t ≥ τ the matrix C - tI is
    negative definite, so by Haynsworth's inertia theorem W has as many eigenvalues above t as
    T + Bᵀ(tI - C)⁻¹B, which is at most T + Bᵀ(τI - C)⁻¹B. On [0, c] the convex 1/(τ - x) lies
    below its chord, so (τI - C)⁻¹ ≤ ((τ - c)I + C)/(τ(τ - c)), and BᵀCB is known from the next
    block. As this holds for all t ≥ τ, an ordered eigenvalue above τ is at most its counterpart
    on the right. ∎ (Indefinite operators have no left end 0 and take I/(τ - c).)

    The shift is the largest that costs half of `tol` (see `_judge.affordable_shift`): near λ_K
    where the spectrum is slow, far above it where λ_K ≪ γ. What bounds c decides the kind:

    - `certified`: c ≤ trace(W) - trace(T). The same remainder also bounds Σ(λᵢ - θᵢ), which is
      enough by itself where the spectrum decays fast.
    - `probabilistic`: block Lanczos on the complement from a fresh random block
      (see `complement_norm`); fails with a probability of at most 1e-6 per probe.
    - `exact`: the space is the whole space.
    - `none`: the operator is indefinite. Then the largest algebraic eigenvalues are taken,
      clipped at 0, and the same test (which needs no positivity) only tells when to stop.

    O(N² m + N m²) time for m columns, 8 N (m + 192) bytes on top of the operator, which is read
    m / `block_size` times and once more for every step of a probe.

    Parameters
    ----------
    block_size
        Columns per product; `default_block_size` where None.
    max_columns
        The budget m, rounded up to whole blocks; the larger of 10 K and 1000 where None. When
        it is spent, what there is comes back with the bound it has and an `AccuracyWarning`.

    Examples
    --------
    >>> from unaligned.operators.base import MatrixOperator
    >>> operator = MatrixOperator(np.diag(0.5 ** np.arange(300)))
    >>> spectrum = Krylov().solve(operator, 3, Accuracy(), np.random.default_rng(0))
    >>> spectrum.eigenvalues.round(6)
    array([1.  , 0.5 , 0.25])
    >>> spectrum.bound_kind, spectrum.total_log_error(1e-8) <= 1e-4
    ('certified', True)
    """

    block_size: int | None = None
    max_columns: int | None = None
    name: ClassVar[str] = SOLVER

    def __post_init__(self) -> None:
        _check.optional_int("block_size", self.block_size)
        _check.optional_int("max_columns", self.max_columns)

    def solve(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
    ) -> Spectrum:
        """Return the `n_eigenvalues` largest eigenvalues to `accuracy`, if the budget allows."""
        spectrum = self.attempt(operator, n_eigenvalues, accuracy, rng)
        warn_if_missed(spectrum, accuracy)
        return spectrum

    def attempt(
        self,
        operator: PSDOperator,
        n_eigenvalues: int,
        accuracy: Accuracy,
        rng: np.random.Generator,
    ) -> Spectrum:
        """Do as `solve`, but leave it to the caller to look at `stats["converged"]`."""
        n, k = operator.n_samples, min(n_eigenvalues, operator.n_samples)
        width = min(n, self.block_size or default_block_size(k))
        limit = min(n, self.max_columns or default_columns(k))
        # Pages of the buffer that are never written cost nothing.
        capacity = min(n, limit + width + PROBE_WIDTH * PROBE_STEPS)
        basis = BlockLanczos(operator, np.empty((n, capacity), order="F"), width, rng)
        judge = Judge(basis, k, accuracy, rng)
        check_at = max(2 * width, k // 2)
        while True:
            basis.expand()
            spent = basis.columns >= limit
            if basis.columns < check_at and not spent:
                continue
            spectrum = judge.verdict(final=spent)
            if spectrum is not None:
                return judge.finished(spectrum)
            # A check costs O(m² b), which is nothing beside O(N² b) until m nears N.
            check_at = int((1.08 + 0.3 * basis.columns / n) * basis.columns) + 1


def default_columns(n_eigenvalues: int) -> int:
    """Return the most columns taken where nothing else is said: max(1000, 10 K)."""
    return max(1000, 10 * n_eigenvalues)


def default_block_size(n_eigenvalues: int) -> int:
    """Return the columns per product where nothing else is said: K/6, from 8 to 40."""
    return min(max(n_eigenvalues // 6, 8), 40)


def warn_if_missed(spectrum: Spectrum, accuracy: Accuracy) -> None:
    """Say that `tol` was not reached, by how much, and what can be done."""
    if not spectrum.stats["converged"]:
        bound = spectrum.total_log_error(accuracy.gamma)
        warn(
            f"krylov stopped at {spectrum.stats['columns']} columns with an error bound of "
            f"{bound:.2g} on log(λ + γ), above tol={accuracy.tol:g}. Raise max_columns or tol, "
            "lower n_eigenvalues, or take solver='exact'.",
            AccuracyWarning,
        )
