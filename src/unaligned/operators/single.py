"""The diffusion operator with products in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._check import FloatArray
from ..engine.threads import Workers, workers_for
from .base import PSDOperator
from .diffusion import DiffusionOperator


class SinglePrecision(PSDOperator):
    r"""W with products in single precision: twice as fast for blocks of 32 columns.

    The known eigenvector u of the largest eigenvalue, 1, and the diagonal D that is left are kept
    apart in double precision, so that rounding is relative to the other eigenvalues:

    .. math:: W X \approx \mathrm{fl}_{32}(W - u u^T - D)\, \mathrm{fl}_{32}(X) + u (u^T X) + D X .

    `product_error` is measured with random vectors. 4 N² bytes beside the affinity. Rows are
    multiplied by fixed tiles: the number of threads does not change the rounding.
    """

    def __init__(self, operator: DiffusionOperator, rng: np.random.Generator) -> None:
        super().__init__(operator.n_samples)
        self.operator = operator
        self.negative_share = operator.negative_share
        self.sigma_squared = operator.sigma_squared
        self._vector = vector = operator.leading_vector
        self._diagonal = operator.diagonal() - vector**2
        self._tiles = [slice(i, i + 512) for i in range(0, self.n_samples, 512)]
        self._matrix = np.empty(self.shape, dtype=np.float32)
        scaling, affinity = operator.scaling, operator.affinity

        def convert(rows: slice) -> None:
            tile = affinity.rows(np.arange(self.n_samples)[rows])
            tile *= scaling[rows, None]
            tile *= scaling
            tile -= vector[rows, None] * vector
            self._matrix[rows] = tile

        # Few rows at a time: larger copies are new pages of memory each time, which take longer.
        few = [slice(i, i + 32) for i in range(0, self.n_samples, 32)]
        with Workers() as workers:
            workers.each(few, convert)
        np.fill_diagonal(self._matrix, 0.0)
        probe = rng.standard_normal((self.n_samples, 16)) / np.sqrt(self.n_samples)
        difference = self.matmat(probe) - operator.matmat(probe)
        self.product_error = float(np.linalg.norm(difference)) / 4.0  # of one of 16 columns

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        rounded, along = block.astype(np.float32, order="F"), self._vector @ block
        out = np.empty(block.shape, order="F")

        def multiply(rows: slice) -> None:
            out[rows] = self._matrix[rows] @ rounded
            out[rows] += self._diagonal[rows, None] * block[rows]
            out[rows] += self._vector[rows, None] * along

        workers = workers_for(self._matrix.size * block.shape[1]) or Workers(1)
        workers.each(self._tiles, multiply)
        return out

    def diagonal(self) -> FloatArray:
        """Return the N diagonal entries, in double precision."""
        return self.operator.diagonal()

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N), in double precision."""
        return self.operator.rows(index)
