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
from ..engine.threads import product
from ..errors import InputError


class PSDOperator(LinearOperator):  # type: ignore[misc]
    """A real symmetric positive semi-definite matrix of shape (n_samples, n_samples).

    Subclasses define the product (`_matmat`), the diagonal and single rows. Solvers use nothing
    else, so that they work with dense, tiled and sparse operators.

    Parameters
    ----------
    n_samples
        N, the number of rows and columns.

    Attributes
    ----------
    definite
        False where negative eigenvalues are possible (non-Euclidean metrics, k-NN kernels).
        No bound that rests on positivity holds there.
    negative_share
        A bound on the sum of negative eigenvalues, relative to the trace, of a `definite` matrix.
    entries_evaluated
        The number of kernel entries computed so far.
    sigma_squared
        The kernel scale σ², or None where there is no kernel.
    sigma_squared_error
        Its standard error, 0 where it is exact.
    entry_error
        A bound on the relative error of the entries from cancellation, 0 where it is negligible.
    product_error
        The norm of the error of a product with a random unit vector, where it is not in double
        precision; else 0.
    storage
        `dense` (in memory), `tiled` (computed again in every product), `streamed` (points read by
        blocks), `sparse` or `matrix-free`.
    """

    definite: bool = True
    negative_share: float = 0.0
    sigma_squared: float | None = None
    sigma_squared_error: float = 0.0
    entry_error: float = 0.0
    product_error: float = 0.0
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
        """Return the product with a block of vectors, unless the run was stopped by Ctrl-C.

        Parameters
        ----------
        block
            Vectors in columns, (N, b).

        Returns
        -------
        ndarray
            Shape (N, b).
        """
        check_stop()
        return np.asarray(super().matmat(block))

    def _adjoint(self) -> PSDOperator:
        return self

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the N diagonal entries.

        Returns
        -------
        ndarray
            Shape (N,).
        """

    @abstractmethod
    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N).

        Parameters
        ----------
        index
            Positions from 0.

        Returns
        -------
        ndarray
            Shape (len(index), N).
        """

    def to_dense(self) -> FloatArray:
        """Return the whole matrix, (N, N), as a new array that the caller may overwrite.

        Returns
        -------
        ndarray
            Shape (N, N).
        """
        return self.rows(np.arange(self.n_samples))

    def trace(self) -> float:
        """Return the sum of the eigenvalues.

        Returns
        -------
        float
            Σ λᵢ.
        """
        return float(self.diagonal().sum())


class MatrixOperator(PSDOperator):
    """A matrix in memory, dense or sparse; `rows` and `to_dense` are dense."""

    def __init__(self, matrix: Any, *, definite: bool = True, negative_share: float = 0.0) -> None:
        super().__init__(matrix.shape[0])
        self.matrix = matrix
        self.definite = definite and bool(np.isfinite(negative_share))
        self.negative_share = negative_share if self.definite else 0.0
        if sparse.issparse(matrix):
            self.matrix, self.storage = sparse.csr_array(matrix, dtype=np.float64), "sparse"

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        if self.storage == "sparse":
            return np.asarray(self.matrix @ block)
        return product(self.matrix, block)

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


def negative_share(matrix: FloatArray, *, absolute: bool = False) -> float:
    r"""Bound the sum of the negative eigenvalues of a symmetric matrix, relative to its trace.

    inf unless the matrix is known to be positive semi-definite up to rounding. A Cholesky
    factorisation of A + S that succeeds shows that the negative eigenvalues sum to at most the
    trace of S, and the rounding of the factorisation. :math:`S_{ii} = c \epsilon A_{ii}`, with c
    from N/8 (what the affinity of points on a line takes) to N, gives the same answer for every
    :math:`\mathrm{diag}(s) A\, \mathrm{diag}(s)`. With `absolute`, also rounding relative to the
    largest entries is accepted, as in a covariance. N³/3 operations, a quarter of an eigenvalue
    computation.
    """
    n, eps = matrix.shape[0], float(np.finfo(np.float64).eps)
    diagonal = np.abs(np.diagonal(matrix)).astype(np.float64)
    shifts = [c * eps * diagonal for c in (n / 8 + 16, n)]
    if absolute:
        mean = float((diagonal / n).sum())
        shifts = [shifts[0] + (n / 8 + 16) * eps * mean, np.full(n, n * eps * diagonal.max())]
    total = float((diagonal / n).sum()) or 1.0
    for shift in shifts:
        if _factorises(matrix, np.maximum(shift, np.finfo(np.float64).tiny)):
            return 1.5 * float((shift / n).sum()) / total
    return float("inf")


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


def _factorises(matrix: FloatArray, shift: FloatArray | float) -> bool:
    """Return whether a Cholesky factorisation of A + diag(shift) succeeds."""
    shifted = np.array(matrix, dtype=np.float64, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    return int(linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)[1]) == 0
