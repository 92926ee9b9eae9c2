"""Landmarks and the features they give to any row."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from .._check import FloatArray
from ..operators.streamed import CrossKernel
from ._cholesky import RESIDUAL_FLOOR, pivoted_factor

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
