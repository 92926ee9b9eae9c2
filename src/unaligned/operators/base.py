"""Symmetric matrices as linear operators."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator

from .._check import FloatArray
from ..engine import check_stop
from ..errors import InputError


class PSDOperator(LinearOperator):  # type: ignore[misc]
    """A real symmetric positive semi-definite matrix of shape (n_samples, n_samples).

    Subclasses define the product (`_matmat`), the diagonal and single rows. Solvers use nothing
    else, so that they work with dense, tiled and sparse operators.

    Attributes
    ----------
    definite
        False where negative eigenvalues are possible (non-Euclidean metrics, k-NN kernels).
        No bound that rests on positivity holds there.
    entries_evaluated
        The number of kernel entries computed so far.
    sigma_squared
        The kernel scale σ², or None where there is no kernel.
    sigma_squared_error
        Its standard error, 0 where it is exact.
    entry_error
        A bound on the relative error of the entries from cancellation, 0 where it is negligible.
    storage
        `dense` (in memory), `tiled` (computed again in every product), `streamed` (points read by
        blocks), `sparse` or `matrix-free`.
    """

    definite: bool = True
    sigma_squared: float | None = None
    sigma_squared_error: float = 0.0
    entry_error: float = 0.0
    storage: str = "dense"
    entries_evaluated: int = 0

    def __init__(self, n_samples: int) -> None:
        super().__init__(dtype=np.dtype(np.float64), shape=(n_samples, n_samples))

    @property
    def n_samples(self) -> int:
        """The number of rows, N."""
        return int(self.shape[0])

    @abstractmethod
    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        """Return the product with a block of vectors, (N, b) -> (N, b)."""

    def matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        """Return the product with a block of vectors, unless the run was stopped by Ctrl-C."""
        check_stop()
        product: FloatArray = super().matmat(block)
        return product

    def _matvec(self, vector: npt.NDArray[Any]) -> FloatArray:
        return self._matmat(np.reshape(vector, (-1, 1)))[:, 0]

    def _adjoint(self) -> PSDOperator:
        return self

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the N diagonal entries."""

    @abstractmethod
    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N)."""

    def to_dense(self) -> FloatArray:
        """Return the whole matrix, (N, N), as a new array that the caller may overwrite."""
        return self.rows(np.arange(self.n_samples))

    def trace(self) -> float:
        """Return the sum of the eigenvalues."""
        return float(self.diagonal().sum())


class MatrixOperator(PSDOperator):
    """A matrix in memory, dense or sparse; `rows` and `to_dense` are dense.

    Examples
    --------
    >>> MatrixOperator(np.diag([3.0, 1.0])).trace()
    4.0
    """

    def __init__(self, matrix: Any, *, definite: bool = True) -> None:
        super().__init__(matrix.shape[0])
        self.matrix = matrix
        self.definite = definite
        if sparse.issparse(matrix):
            self.matrix, self.storage = sparse.csr_array(matrix, dtype=np.float64), "sparse"

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        product: FloatArray = self.matrix @ block
        return product

    def diagonal(self) -> FloatArray:
        """Return the N diagonal entries."""
        return np.array(self.matrix.diagonal())

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N)."""
        rows = self.matrix[np.asarray(index)]
        return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


# Largest N at which a matrix is tested for positivity: a Cholesky factorisation (N³/3 operations)
# takes well under a second.
CHECKABLE = 5000


def is_positive(matrix: FloatArray) -> bool:
    r"""Return whether a symmetric matrix is known to be positive semi-definite up to rounding.

    A Cholesky factorisation of :math:`A + \delta I` that succeeds shows that no eigenvalue is
    below :math:`-2\delta`; :math:`\delta = N \epsilon \max_i A_{ii}` is the rounding error of the
    factorisation itself, and so the smallest shift at which a singular A passes. N³/3
    operations, a quarter of an eigenvalue computation. Above N = 5000 the answer is False.
    """
    n_samples = matrix.shape[0]
    if n_samples > CHECKABLE:
        return False
    largest = float(np.abs(np.diagonal(matrix)).max())
    return _factorises(matrix, n_samples * np.finfo(np.float64).eps * largest)


def require_positive(matrix: FloatArray, label: str) -> None:
    """Raise if a matrix of kind `spd` has an eigenvalue below -1e-10 of its trace."""
    with np.errstate(over="ignore"):
        trace = float(np.trace(matrix))
    if not np.isfinite(trace):
        raise InputError(f"{label} of kind 'spd' has a trace that overflows. Rescale it.")
    if not _factorises(matrix, 1e-10 * max(trace, np.finfo(np.float64).tiny)):
        raise InputError(
            f"{label} of kind 'spd' has negative eigenvalues. "
            "For a similarity matrix that is not positive use kind='affinity'."
        )


def _factorises(matrix: FloatArray, shift: float) -> bool:
    """Return whether a Cholesky factorisation of A + shift · I succeeds."""
    shifted = np.array(matrix, dtype=np.float64, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    return int(linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)[1]) == 0
