"""Randomly pivoted block Cholesky: a positive matrix as features times their transpose."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from .._check import FloatArray, IndexArray
from ..operators.base import PSDOperator

# Subtracting the squares of a feature row from K_ii loses some eps of K_ii; below this share
# of K_ii a residual is noise, and dividing by it would only spread the noise.
RESIDUAL_FLOOR = 64 * float(np.finfo(np.float64).eps)

# A proposal must keep this share of the proposals' mean residual once the better ones of its
# block are taken. It plays the part of the rejection of Epperly, Tropp and Webber (2024):
# theirs needs only the small matrix between proposals, but an operator is read by whole rows,
# so what is rejected has been paid for. On 3-tori 0.05 costs 2-4 % more landmarks than
# pivots taken one at a time, and a tenth of the proposals; their coin flips reject a half.
KEPT_SHARE = 0.05


class PivotedCholesky:
    r"""A growing factorisation :math:`K \approx F^T F` with pivots drawn from the residual.

    With landmarks S, :math:`F = L^{-1} K_{S,:}` and :math:`L L^T = K_{S,S}`, the residual
    :math:`R = K - F^T F` is positive semi-definite, so its diagonal bounds all of it:

    .. math:: |R_{ij}| \le \sqrt{\rho_i \rho_j}, \qquad \rho_i = K_{ii} - \|F_{:,i}\|^2 .

    Pivots are proposed in blocks, with probability ρᵢ/Σρ (Chen, Epperly, Tropp and Webber,
    2022), and a pivoted factorisation within the block drops those that the others made
    nearly superfluous. O(N r²) time for r landmarks besides r rows of the matrix; 8 N r bytes.

    Parameters
    ----------
    operator
        The matrix K, by its `rows` and `diagonal`.
    capacity
        The largest number of landmarks.

    Examples
    --------
    >>> from unaligned.operators.base import MatrixOperator
    >>> factor = PivotedCholesky(MatrixOperator(np.ones((4, 4))), capacity=4)
    >>> factor.grow(2, np.random.default_rng(0))
    1
    >>> bool(factor.exhausted), factor.features.round(12)
    (True, array([[1., 1., 1., 1.]]))
    """

    def __init__(self, operator: PSDOperator, capacity: int) -> None:
        self.operator = operator
        self.diagonal = np.asarray(operator.diagonal(), dtype=np.float64)
        self.landmarks: IndexArray = np.empty(0, dtype=np.int64)
        self.rows_read = 0
        self._left = self.diagonal.copy()
        self._least = RESIDUAL_FLOOR * np.abs(self.diagonal)
        # Features lie landmark by landmark, so a block is appended without copying. Memory
        # that was never written is never occupied: capacity costs nothing until it is used.
        self._store = np.empty((capacity, operator.n_samples))

    @property
    def rank(self) -> int:
        """The number of landmarks so far, r."""
        return int(self.landmarks.size)

    @property
    def features(self) -> FloatArray:
        """F, (r, N): column i describes row i of the matrix."""
        return self._store[: self.rank]

    @property
    def residual(self) -> FloatArray:
        """An upper bound of ρ, (N,): what is left of the diagonal, and what rounding may hide.

        A diagonal entry that went below 0 is rounding made visible, by the factorisation or
        already in the entries of the matrix: its row is charged twice that, and every row
        twice the mean of it.
        """
        excess = np.maximum(-self._left, 0.0)
        residual: FloatArray = np.maximum(self._left, 0.0) + self._least
        residual += 2.0 * (excess + excess.mean())
        return residual

    @property
    def exhausted(self) -> bool:
        """Whether nothing but rounding is left to factor."""
        left = self._left
        if not (left > self._least).any():
            return True
        # Once more is lost below 0 than is left above, further pivots only fit noise.
        return bool(-left[left < 0].sum() > left[left > 0].sum())

    def grow(self, n_proposals: int, rng: np.random.Generator) -> int:
        """Add a block of at most `n_proposals` landmarks; return how many it was."""
        proposals = self._propose(n_proposals, rng)
        if proposals.size == 0:
            return 0
        rows = np.ascontiguousarray(self.operator.rows(proposals), dtype=np.float64)
        self.rows_read += proposals.size
        known = self.features[:, proposals]
        inner = rows[:, proposals] - known.T @ known
        room = self._store.shape[0] - self.rank
        triangle, kept = _pivoted(inner, float(self._least[proposals].max()), room)
        start, stop = self.rank, self.rank + kept.size
        block = self._store[start:stop]
        np.matmul(known[:, kept].T, self.features, out=block)
        np.subtract(rows[kept], block, out=block)
        # block := L⁻¹ block, in place: its transpose is what Fortran calls contiguous.
        dtrsm(1.0, triangle, block.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        self.landmarks = np.concatenate([self.landmarks, proposals[kept]])
        self._left -= np.einsum("ij,ij->j", block, block)
        self._left[self.landmarks] = 0.0
        return int(kept.size)

    def _propose(self, n_proposals: int, rng: np.random.Generator) -> IndexArray:
        """Draw rows with probability proportional to their residual, each at most once."""
        weights = np.where(self._left > self._least, self._left, 0.0)
        cumulative = np.cumsum(weights)
        if not cumulative[-1] > 0 or self.rank == self._store.shape[0]:
            return np.empty(0, dtype=np.int64)
        draws = rng.random(n_proposals) * cumulative[-1]
        found = np.searchsorted(cumulative, draws, side="right")
        unique: IndexArray = np.unique(np.minimum(found, weights.size - 1))
        # Rounding in the cumulative sum can hit a row of no weight; such a row is spent.
        return unique[weights[unique] > 0]


def _pivoted(inner: FloatArray, floor: float, most: int) -> tuple[FloatArray, IndexArray]:
    """Return the Cholesky factor of the rows worth keeping, and which, largest pivot first."""
    least = max(floor, KEPT_SHARE * float(np.diagonal(inner).mean()))
    factor, order, rank, _ = dpstrf(inner, tol=least, lower=1)
    rank = max(1, min(int(rank), most))
    kept: IndexArray = np.asarray(order[:rank], dtype=np.int64) - 1
    return np.asfortranarray(np.tril(factor[:rank, :rank])), kept
