"""The heat kernel of a graph."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ive

from .._check import FloatArray
from .base import PSDOperator


class HeatKernel(PSDOperator):
    r"""The heat kernel exp(-L) of a graph's normalised Laplacian.

    .. math:: L = I - D^{-1/2} A D^{-1/2}, \qquad
              e^{-L} = \sum_{k=0}^{17} c_k T_k(I - L), \quad
              c_0 = e^{-1} I_0(1),\; c_k = 2 e^{-1} I_k(1)

    The eigenvalues of L lie in [0, 2], so those of I - L in [-1, 1], where the Chebyshev series
    with modified Bessel functions converges to rounding within 18 terms (the next coefficient is
    below 1e-21). The eigenvalues of the kernel are exp(-μ), between exp(-2) and 1. An isolated
    node has a zero row in L and so, as every connected component, an eigenvalue 1.

    A product with b vectors takes 17 products with the adjacency, O(nnz b), without fill-in.
    `diagonal` costs as much as N products with a vector, O(N nnz). Weights, at least 0, may be
    dense or sparse; those on the diagonal are self-loops and count once.
    """

    def __init__(self, adjacency: Any) -> None:
        super().__init__(int(adjacency.shape[0]))
        self.storage = "matrix-free"
        self._step = normalised_adjacency(adjacency)

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        coefficients = 2.0 * ive(np.arange(18), 1.0)
        previous = np.array(block, dtype=np.float64)
        current: FloatArray = self._step @ previous
        total: FloatArray = 0.5 * coefficients[0] * previous + coefficients[1] * current
        for coefficient in coefficients[2:]:
            previous *= -1.0
            previous += 2.0 * (self._step @ current)
            previous, current = current, previous
            total += coefficient * current
        return total

    def diagonal(self) -> FloatArray:
        """Return a copy of the N diagonal entries, which are computed once."""
        return self._diagonal.copy()

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N)."""
        index = np.asarray(index)
        units = np.zeros((self.n_samples, index.size))
        units[index, np.arange(index.size)] = 1.0
        self.entries_evaluated += units.size
        return np.ascontiguousarray(self._matmat(units).T)

    def to_dense(self) -> FloatArray:
        """Return the whole matrix, symmetric to the last bit."""
        matrix = self.rows(np.arange(self.n_samples))
        return 0.5 * (matrix + matrix.T)

    @cached_property
    def _diagonal(self) -> FloatArray:
        everything = np.arange(self.n_samples)
        blocks = (everything[start : start + 512] for start in range(0, self.n_samples, 512))
        return np.concatenate([self.rows(b)[np.arange(b.size), b] for b in blocks])


def normalised_adjacency(adjacency: Any) -> Any:
    """Return I - L = D^-1/2 A D^-1/2, with 1 on the diagonal for isolated nodes."""
    degree = np.asarray(adjacency.sum(axis=1), dtype=np.float64).ravel()
    isolated = degree <= 0
    root = 1.0 / np.sqrt(np.where(isolated, 1.0, degree))
    if sparse.issparse(adjacency):
        scale = sparse.diags_array(root)
        return sparse.csr_array(scale @ adjacency @ scale + sparse.diags_array(isolated * 1.0))
    return adjacency * root * root[:, None] + np.diag(isolated * 1.0)
