"""The Gaussian affinity of points (Eq. 1), dense or tile by tile."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray
from .base import PSDOperator
from .points import PointCloud, Points, tile_of
from .threads import Workers

_PANEL = 512  # rows worked out together when the whole matrix is built
_TILE_COLUMNS = 2048


class GaussianAffinity(PSDOperator):
    r"""The Gaussian affinity of points, Eq. 1 [eq:affkern].

    .. math:: K_{ij} = \exp(-\|x_i - x_j\|^2 / \sigma^2)

    Rows are worked out from the points when asked for. A product with b vectors takes
    O(N² (d + b)) time. With `dense` storage the first product builds the matrix, 8 N² bytes,
    and later ones take O(N² b). With `tiled` storage every product works the kernel out again,
    each pair once for both halves of the matrix, in O(N b) memory and one tile (16 MB), as in
    Section 4.2.2.

    Parameters
    ----------
    points
        Shape (N, d), float64, finite, dense or CSR; or a `PointCloud` of them.
    sigma_squared
        The kernel scale σ².
    storage
        `dense` or `tiled`.

    Attributes
    ----------
    points
        The points as they are used: centred, if they are dense.

    Examples
    --------
    >>> K = GaussianAffinity(np.array([[0.0], [1.0]]), 1.0, storage="tiled")
    >>> (K @ np.array([1.0, 0.0])).round(6)
    array([1.      , 0.367879])
    >>> K.entries_evaluated
    4
    """

    def __init__(
        self, points: Points | PointCloud, sigma_squared: float, *, storage: str = "dense"
    ) -> None:
        self._cloud = points if isinstance(points, PointCloud) else PointCloud(points)
        super().__init__(self._cloud.n_samples)
        self._cloud.keep_digits(sigma_squared)
        self.points = self._cloud.values
        self.sigma_squared = sigma_squared
        self.storage = _check.one_of("storage", storage, ("dense", "tiled"))
        self._rate = 1.0 / sigma_squared

    def _matmat(self, block: npt.NDArray[Any]) -> FloatArray:
        if self.storage == "tiled":
            return self._tiled_product(np.asarray(block, dtype=np.float64, order="C"))
        product: FloatArray = self._matrix @ block
        return product

    def diagonal(self) -> FloatArray:
        """Return N ones."""
        return np.ones(self.n_samples)

    def rows(self, index: npt.ArrayLike) -> FloatArray:
        """Return the rows with these positions, (len(index), N), in O(len(index) N d)."""
        index = np.asarray(index)
        out = np.empty((index.size, self.n_samples))
        step = self._cloud.tile_rows if self._cloud.is_sparse else max(index.size, 1)
        with Workers() as workers:
            for start in range(0, index.size, step):
                self._fill(index[start : start + step], out[start : start + step], workers)
        out[np.arange(index.size), index] = 1.0
        self.entries_evaluated += out.size
        return out

    def sample(self, n_rows: int, rng: np.random.Generator) -> FloatArray:
        """Return random points, dense and centred, (n_rows, d)."""
        chosen = rng.choice(self.n_samples, size=min(n_rows, self.n_samples), replace=False)
        return self._cloud.dense_rows(chosen)

    def to_dense(self) -> FloatArray:
        """Return the whole matrix as a new array: a copy, or built for the caller."""
        return self._matrix.copy() if self.storage == "dense" else self._build()

    @cached_property
    def _matrix(self) -> FloatArray:
        return self._build()

    def _fill(self, index: npt.NDArray[np.intp], out: FloatArray, workers: Workers) -> None:
        """Fill whole rows; sparse points, which fill in per tile, take them tile by tile."""
        if not self._cloud.is_sparse:
            everything = slice(0, self.n_samples)
            self._cloud.gaussian(index, everything, self._rate, workers, out)
            return
        for columns in self._cloud.slices():
            out[:, columns] = self._cloud.gaussian(index, columns, self._rate, workers)

    def _build(self) -> FloatArray:
        """Return the whole matrix: the upper triangle in panels, mirrored as it grows."""
        matrix = np.empty((self.n_samples, self.n_samples))
        width = self._cloud.tile_rows if self._cloud.is_sparse else self.n_samples
        scratch = np.empty(min(_PANEL, self.n_samples) * min(width, self.n_samples))
        with Workers() as workers:
            for rows in self._cloud.slices(width=_PANEL):
                for columns in self._cloud.slices(rows.start, width=width):
                    tile = tile_of(scratch, rows, columns)
                    self._cloud.gaussian(rows, columns, self._rate, workers, tile)
                    self.entries_evaluated += tile.size
                    _place(tile, rows, columns, matrix, workers)
        np.fill_diagonal(matrix, 1.0)
        return matrix

    def _tiled_product(self, block: FloatArray) -> FloatArray:
        """Return K @ block; a tile above the diagonal also serves its mirror image."""
        product = np.zeros((self.n_samples, block.shape[1]))
        width = self._cloud.tile_rows if self._cloud.is_sparse else _TILE_COLUMNS
        scratch = np.empty(min(self._cloud.tile_rows, self.n_samples) * min(width, self.n_samples))
        with Workers() as workers:
            for rows in self._cloud.slices():
                corner = slice(rows.start, rows.stop)
                tile = self._tile(rows, corner, workers, scratch)
                np.fill_diagonal(tile, 1.0)
                product[rows] += tile @ block[rows]
                for columns in self._cloud.slices(rows.stop, width=width):
                    tile = self._tile(rows, columns, workers, scratch)
                    product[rows] += tile @ block[columns]
                    product[columns] += tile.T @ block[rows]
        return product

    def _tile(
        self, rows: slice, columns: slice, workers: Workers, scratch: FloatArray
    ) -> FloatArray:
        tile = tile_of(scratch, rows, columns)
        self.entries_evaluated += tile.size
        return self._cloud.gaussian(rows, columns, self._rate, workers, tile)


def _place(
    tile: FloatArray, rows: slice, columns: slice, matrix: FloatArray, workers: Workers
) -> None:
    """Write a tile of the upper triangle and its mirror image into the matrix."""
    if columns.start == rows.start:
        # BLAS rounds the two halves of a square product differently; the matrix is symmetric.
        corner = tile[:, : rows.stop - rows.start]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T

    def task(part: slice) -> None:
        here = slice(columns.start + part.start, columns.start + part.stop)
        matrix[rows, here] = tile[:, part]
        matrix[here, rows] = tile[:, part].T

    workers.over_rows(columns.stop - columns.start, task)
