"""Randomly pivoted block Cholesky: a positive matrix as features times their transpose."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dgemm, dtrsm
from scipy.linalg.lapack import dpstrf

from ..._check import FloatArray, IndexArray
from ...operators.base import PSDOperator
from ...operators.streamed import CrossKernel

_LEAF = 48  # rows of the triangle that are solved by their inverse: small beside r


class Basis:
    r"""Landmarks S with the triangle of :math:`K_{S,S} = L L^T`: features :math:`L^{-1} k(S, x)`.

    The triangle is solved by halves with products only (NumPy lets other threads run during
    those), the smallest parts by their inverses. O(n r (d + r)) time for n rows.

    Parameters
    ----------
    kernel
        The affinities of the landmarks with any row, r of them.
    triangle
        L, (r, r), lower.

    Examples
    --------
    >>> basis = Basis(CrossKernel(np.zeros((1, 1)), 1.0), np.ones((1, 1)))
    >>> basis.features(np.array([[0.0], [1.0]])).round(6)
    array([[1.      , 0.367879]])
    """

    def __init__(self, kernel: CrossKernel, triangle: FloatArray) -> None:
        self.kernel, self.triangle = kernel, triangle
        self._inverses: dict[int, FloatArray] = {}
        self._prepare(0, self.rank)

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
        if stop - start <= _LEAF:
            right[start:stop] = self._inverses[start] @ right[start:stop]
            return
        middle = (start + stop) // 2
        self._solve(right, start, middle)
        right[middle:stop] -= self.triangle[middle:stop, start:middle] @ right[start:middle]
        self._solve(right, middle, stop)

    def _prepare(self, start: int, stop: int) -> None:
        if stop - start <= _LEAF:
            leaf = self.triangle[start:stop, start:stop]
            self._inverses[start] = solve_triangular(leaf, np.eye(stop - start), lower=True)
            return
        middle = (start + stop) // 2
        self._prepare(start, middle)
        self._prepare(middle, stop)

    def solve_transposed(self, right: FloatArray) -> FloatArray:
        """Return L⁻ᵀ times `right`, (r, n)."""
        solved: FloatArray = solve_triangular(self.triangle, right, lower=True, trans=1)
        return solved

    def extended(self, candidates: FloatArray, room: int) -> Basis:
        """Return a basis with up to `room` of these rows besides, those that add most."""
        features = self.features(candidates)
        among = self.kernel.of(candidates)
        inner = among.fill(candidates, np.empty((candidates.shape[0],) * 2))
        inner -= features.T @ features
        triangle, kept = pivoted_factor(0.5 * (inner + inner.T), RESIDUAL_FLOOR, room)
        below = np.hstack([features[:, kept].T, triangle])
        above = np.pad(self.triangle, ((0, 0), (0, kept.size)))
        points = np.vstack([self.kernel.points, candidates[kept]])
        return Basis(self.kernel.of(points), np.vstack([above, below]))


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
        self.capacity = capacity
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
    def hidden(self) -> FloatArray:
        """What rounding has taken out of the residual, (N,), and made R not quite positive.

        A diagonal entry that went below 0 is rounding made visible, by the factorisation or
        already in the entries of the matrix: its row is charged twice that, and every row
        twice the mean of it.
        """
        excess = np.maximum(-self._left, 0.0)
        hidden: FloatArray = 2.0 * (excess + excess.mean())
        return hidden

    @property
    def remaining(self) -> FloatArray:
        """The diagonal of K - FᵀF as computed, (N,), clipped at 0."""
        return np.maximum(self._left, 0.0)

    @property
    def residual(self) -> FloatArray:
        """An upper bound of ρ, (N,): what is left of the diagonal, and what rounding may hide."""
        return self.remaining + self._least + self.hidden

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
        room = self.capacity - self.rank
        triangle, kept = pivoted_factor(inner, float(self._least[proposals].max()), room)
        start, stop = self.rank, self.rank + kept.size
        block = self._store[start:stop]
        np.take(rows, kept, axis=0, out=block)
        # block := L⁻¹ (block - knownᵀ F), in place: to Fortran the transposes are contiguous.
        if start:
            dgemm(-1.0, self.features.T, known[:, kept], beta=1.0, c=block.T, overwrite_c=1)
        dtrsm(1.0, triangle, block.T, side=1, lower=1, trans_a=1, overwrite_b=1)
        self.landmarks = np.concatenate([self.landmarks, proposals[kept]])
        self._left -= np.einsum("ij,ij->j", block, block)
        self._left[self.landmarks] = 0.0
        return int(kept.size)

    def _propose(self, n_proposals: int, rng: np.random.Generator) -> IndexArray:
        """Draw rows with probability proportional to their residual, each at most once."""
        weights = np.where(self._left > self._least, self._left, 0.0)
        cumulative = np.cumsum(weights)
        if not cumulative[-1] > 0 or self.rank == self.capacity:
            return np.empty(0, dtype=np.int64)
        draws = rng.random(n_proposals) * cumulative[-1]
        found = np.searchsorted(cumulative, draws, side="right")
        unique: IndexArray = np.unique(np.minimum(found, weights.size - 1))
        # Rounding in the cumulative sum can hit a row of no weight; such a row is spent.
        return unique[weights[unique] > 0]


def pivoted_factor(inner: FloatArray, floor: float, most: int) -> tuple[FloatArray, IndexArray]:
    """Return the Cholesky factor of the rows worth keeping, and which, largest pivot first."""
    least = max(floor, KEPT_SHARE * float(np.diagonal(inner).mean()))
    factor, order, rank, _ = dpstrf(inner, tol=least, lower=1)
    rank = max(1, min(int(rank), most))
    kept: IndexArray = np.asarray(order[:rank], dtype=np.int64) - 1
    return np.asfortranarray(np.tril(factor[:rank, :rank])), kept


class FeatureBlock(NamedTuple):
    """What is known of n rows of the matrix: all that the sums below need.

    Each sum is over rows, so blocks of rows can come from memory, a file or a worker, and
    their sums be added (`total`) in any order; nothing larger than (r, n) or (r, r) is kept.
    """

    features: FloatArray  # (r, n)
    residual: FloatArray  # (n,), ρ
    diagonal: FloatArray  # (n,), K_ii


class Interval(NamedTuple):
    """A vector and what is certain about it: lower ≤ truth ≤ upper, each (n,)."""

    value: FloatArray
    lower: FloatArray
    upper: FloatArray


class Sums(NamedTuple):
    """Sums over rows j with weights v, (p, n): Σ v φⱼ (r, p), Σ v √ρⱼ and Σ v √Kⱼⱼ, (p,)."""

    features: FloatArray
    residual: FloatArray
    diagonal: FloatArray


def weighted_sums(block: FeatureBlock, weights: FloatArray) -> Sums:
    """Return the sums of one block of rows; add those of all blocks.

    A weight may be inf (a row sum that may be 0); only the last sum keeps it.
    """
    finite = np.where(np.isfinite(weights), weights, 0.0)
    return Sums(
        block.features @ finite.T,
        finite @ np.sqrt(block.residual),
        weights @ np.sqrt(block.diagonal),
    )


def total(parts: Iterable[Sums]) -> Sums:
    """Return the sums over all rows from those of blocks of them, in whatever order."""
    return reduce(lambda one, other: Sums(*map(np.add, one, other)), parts)


def density(block: FeatureBlock, ones: Sums, *, nonnegative: bool) -> Interval:
    r"""Return the row sums :math:`\tilde d = K 1` of a block of rows, from the sums of ones.

    .. math:: |\tilde d_i - \phi_i^T \textstyle\sum_j \phi_j - \rho_i|
              \le \sqrt{\rho_i}\, (\textstyle\sum_j \sqrt{\rho_j} - \sqrt{\rho_i})

    The residual's diagonal is known, so it is added and only the rest is a bound.
    `nonnegative` entries sum to no less than the diagonal. O(n r).
    """
    value, error = (p[0] for p in _products(block, ones, np.ones((1, block.residual.size))))
    least = block.diagonal if nonnegative else np.zeros_like(value)
    most = np.sqrt(block.diagonal) * ones.diagonal[0]
    lower = np.maximum(value - error, least)
    upper = np.maximum(np.minimum(value + error, most), lower)
    # Far from convergence features can sum to anything; a row sums to K_ii at the least.
    return Interval(np.clip(np.maximum(value, block.diagonal), lower, upper), lower, upper)


def inverse_weights(row_sums: Interval) -> FloatArray:
    """Return 1/d̃ for the second sums, (3, n): the value, its lower and its upper limit."""
    with np.errstate(divide="ignore"):
        inverse: FloatArray = 1.0 / np.stack(list(row_sums))
    return inverse[[0, 2, 1]]


def squared_scaling(
    block: FeatureBlock, row_sums: Interval, inverse: Sums, *, nonnegative: bool
) -> Interval:
    r"""Return :math:`s^2 = 1 / (\tilde d\, g)`, :math:`g = K (1/\tilde d)`, of a block of rows.

    `inverse` are the sums with `inverse_weights`. For a kernel of nonnegative entries g grows
    with 1/d̃ entry by entry; otherwise what 1/d̃ may be off by enters through
    :math:`|K_{ij}| \le \sqrt{K_{ii} K_{jj}}`. O(n r).
    """
    weights = inverse_weights(row_sums)
    products, errors = _products(block, inverse, weights)
    value = products[0]
    if nonnegative:
        lower = np.maximum(products[1] - errors[1], block.diagonal * weights[1])
        upper = products[2] + errors[2]
    else:
        spread = np.maximum(inverse.diagonal[2] - inverse.diagonal[1], 0.0)
        error = errors[0] + np.sqrt(block.diagonal) * spread
        lower, upper = np.maximum(value - error, 0.0), value + error
    value = np.maximum(value, block.diagonal * weights[0])
    lower = np.minimum(lower, value)
    upper = np.maximum(upper, value)
    with np.errstate(divide="ignore"):
        squares = Interval(
            1.0 / (row_sums.value * value),
            1.0 / (row_sums.upper * upper),
            1.0 / (row_sums.lower * lower),
        )
    return _at_most(squares, 1.0 / block.diagonal) if nonnegative else squares


def _at_most(squares: Interval, most: FloatArray) -> Interval:
    """Cut s² at 1/K_ii: a diagonal entry of W, s² K_ii, is no more than λ₁ = 1."""
    return Interval(*(np.minimum(limit, most) for limit in squares))


def _products(
    block: FeatureBlock, sums: Sums, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return K v on a block of rows for each v ≥ 0, (p, n), and how far off it may be."""
    root = np.sqrt(block.residual)
    finite = np.where(np.isfinite(weights), weights, 0.0)
    value: FloatArray = sums.features.T @ block.features
    value += block.residual * finite
    error = root * np.maximum(sums.residual[:, None] - root * finite, 0.0)
    return value, error + RESIDUAL_FLOOR * np.abs(value)
