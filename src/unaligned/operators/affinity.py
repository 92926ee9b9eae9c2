"""From points or distances to the Gaussian affinity (Eq. 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import pdist, squareform

from .. import _check
from .._check import FloatArray
from ..errors import InputError
from .bandwidth import scale_from_condensed
from .base import MatrixOperator, PSDOperator


@dataclass(frozen=True)
class KernelSettings:
    """How points become an affinity.

    Attributes
    ----------
    bandwidth
        `"median"` or `"mean"` of the squared distances, or a number, which is σ² itself.
    bandwidth_factor
        σ² = bandwidth_factor · median(d²); the paper takes 2.
    metric
        `"euclidean"`, any metric of scikit-learn's `pairwise_distances`, or a callable.
    """

    bandwidth: str | float = "median"
    bandwidth_factor: float = 2.0
    metric: str | Callable[[FloatArray, FloatArray], float] = "euclidean"

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            _check.one_of("bandwidth", self.bandwidth, ("median", "mean"))
        else:
            _check.real_number("bandwidth", self.bandwidth, minimum=0.0, strict=True)
        _check.real_number("bandwidth_factor", self.bandwidth_factor, minimum=0.0, strict=True)
        if not (isinstance(self.metric, str) or callable(self.metric)):
            raise InputError(f"metric={self.metric!r} must be the name of a metric or a callable.")


def point_affinity(points: FloatArray, settings: KernelSettings) -> PSDOperator:
    """Return the Gaussian affinity of points, (N, d), with its `sigma_squared`."""
    condensed = pdist(points, "sqeuclidean")
    scale = scale_from_condensed(
        condensed, points.shape[0], settings.bandwidth, settings.bandwidth_factor
    )
    return GaussianAffinity(points, scale)


def distance_affinity(distances: FloatArray, settings: KernelSettings) -> PSDOperator:
    """Return the Gaussian affinity of a matrix of distances, (N, N), with `sigma_squared`."""
    squared = distances**2
    condensed = squareform(squared, checks=False)
    scale = scale_from_condensed(
        condensed, distances.shape[0], settings.bandwidth, settings.bandwidth_factor
    )
    squared /= -scale
    affinity = MatrixOperator(np.exp(squared, out=squared))
    affinity.sigma_squared = scale
    return affinity


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
