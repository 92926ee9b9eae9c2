"""From an affinity to the normalised diffusion operator W (Eqs. 2-4)."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _check
from .._check import FloatArray
from ..data.dataset import KINDS
from ..errors import DegenerateDataError
from .affinity import distance_affinity, given_affinity, point_affinity
from .base import MatrixOperator, PSDOperator, negative_share
from .graph import HeatKernel
from .kernel import KernelSettings


class DiffusionOperator(PSDOperator):
    r"""The symmetric diffusion operator, a diagonal rescaling of its affinity.

    Eqs. 2-4 [eq:dmnorm, eq:dmkern, eq:dm_spd] come down to

    .. math:: W = \mathrm{diag}(s)\, K\, \mathrm{diag}(s), \qquad
              s = 1 / (\tilde d \sqrt{d}), \quad
              \tilde d = K 1, \quad d = (K (1/\tilde d)) / \tilde d .

    W is similar to the row-stochastic operator of diffusion maps (Coifman and Lafon, 2006), so
    its largest eigenvalue is 1. The scaling costs two products with the affinity and is computed
    on first use: a solver that reads only `affinity` does not need it.
    """

    def __init__(self, affinity: PSDOperator) -> None:
        super().__init__(affinity.n_samples)
        self.affinity = affinity
        self.definite, self.negative_share = affinity.definite, affinity.negative_share
        self.sigma_squared = affinity.sigma_squared
        self.sigma_squared_error = affinity.sigma_squared_error
        self.entry_error = affinity.entry_error
        self.storage = affinity.storage

    @property
    def entries_evaluated(self) -> int:  # type: ignore[override]
        """Kernel entries computed by the affinity so far."""
        return self.affinity.entries_evaluated

    @cached_property
    def _row_sums(self) -> tuple[FloatArray, FloatArray]:
        """The row sums d̃ and d, (N,) each."""
        density = self.affinity @ np.ones(self.n_samples)
        _require_positive(density)
        degree = (self.affinity @ (1.0 / density)) / density
        _require_positive(degree)
        return density, degree

    @cached_property
    def scaling(self) -> FloatArray:
        """The vector s, (N,)."""
        density, degree = self._row_sums
        return np.asarray(1.0 / (density * np.sqrt(degree)))

    @property
    def leading_vector(self) -> FloatArray:
        """The unit eigenvector of the largest eigenvalue, 1, along √d, (N,)."""
        _, degree = self._row_sums
        return np.asarray(np.sqrt(degree / degree.sum()))

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        s = self.scaling[:, None]
        product: FloatArray = self.affinity.matmat(s * block)
        product *= s
        return product

    def diagonal(self) -> FloatArray:
        """Return the N diagonal entries."""
        return np.asarray(self.scaling**2 * self.affinity.diagonal())

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N)."""
        rows = self.affinity.rows(index)
        rows *= self.scaling[np.asarray(index), None]
        rows *= self.scaling
        return rows

    def to_dense(self) -> FloatArray:
        """Return the whole matrix, (N, N), as a new array that the caller may overwrite."""
        scaling = self.scaling
        matrix = self.affinity.to_dense()
        matrix *= scaling[:, None]
        matrix *= scaling
        return matrix


def build_operator(
    values: Any, kind: str, settings: KernelSettings, rng: np.random.Generator | None = None
) -> PSDOperator:
    """Return the operator whose eigenvalues describe `values` of this kind.

    `points` (dense or CSR), `distances` and `affinity` (dense or sparse) become a diffusion
    operator; a `graph` (dense or sparse) becomes its heat kernel; an `spd` matrix (dense or
    sparse) is used unchanged.
    """
    _check.one_of("kind", kind, KINDS)
    if kind == "spd":
        dense = values.toarray() if sparse.issparse(values) else values
        return MatrixOperator(values, negative_share=negative_share(dense, absolute=True))
    if kind == "graph":
        return HeatKernel(values)
    if kind == "affinity":
        return DiffusionOperator(given_affinity(values))
    if kind == "distances":
        return DiffusionOperator(distance_affinity(values, settings))
    return DiffusionOperator(point_affinity(values, settings, rng))


def _require_positive(row_sums: FloatArray) -> None:
    """Raise if the affinities of a row do not have a positive sum."""
    bad = np.flatnonzero(~(row_sums > 0))
    if bad.size:
        raise DegenerateDataError(
            f"{bad.size} rows of the affinity have a sum that is not positive "
            f"(row {bad[0]}: {row_sums[bad[0]]:g}), so Eqs. 2-3 cannot divide by it. "
            "Leave these rows out, or give them an affinity to themselves."
        )
