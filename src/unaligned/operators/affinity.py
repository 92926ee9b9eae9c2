"""From points or distances to the Gaussian affinity (Eq. 1)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from .base import PSDOperator


class GaussianAffinity(PSDOperator):
    r"""The Gaussian affinity of points, Eq. 1 [eq:affkern].

    .. math:: K_{ij} = \exp(-\|x_i - x_j\|^2 / \sigma^2)

    Rows are worked out from the points when asked for; the whole matrix is kept only once a
    product needs it: O(N² d) time, 8 N² bytes.

    Parameters
    ----------
    points
        Shape (N, d), float64, finite.
    sigma_squared
        The kernel scale σ².
    """

    def __init__(self, points: FloatArray, sigma_squared: float) -> None:
        super().__init__(points.shape[0])
        # Centring first: the Gram trick below loses what the mean and the spread share.
        self.points = points - points.mean(axis=0)
        self.sigma_squared = sigma_squared

    @cached_property
    def _matrix(self) -> FloatArray:
        return self.rows(np.arange(self.n_samples))

    @cached_property
    def _norms(self) -> FloatArray:
        norms: FloatArray = np.einsum("ij,ij->i", self.points, self.points)
        return norms

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        product: FloatArray = self._matrix @ block
        return product

    def diagonal(self) -> FloatArray:
        """Return N ones."""
        return np.ones(self.n_samples)

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N)."""
        index = np.asarray(index)
        squared: FloatArray = self.points[index] @ self.points.T
        squared *= -2.0
        squared += self._norms[index, None]
        squared += self._norms
        np.maximum(squared, 0.0, out=squared)
        squared[np.arange(index.size), index] = 0.0
        squared /= -self.sigma_squared
        self.entries_evaluated += squared.size
        np.exp(squared, out=squared)
        return squared

    def to_dense(self) -> FloatArray:
        """Return a copy of the whole matrix."""
        return self._matrix.copy()
