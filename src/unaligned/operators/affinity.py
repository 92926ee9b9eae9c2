"""From points, distances or given weights to an affinity, and the settings of that way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.spatial.distance import squareform

from .. import _check
from .._check import FloatArray
from ..errors import InputError, InputTypeError
from .bandwidth import estimate_scale, scale_from_condensed
from .base import MatrixOperator, PSDOperator, SparseOperator
from .gaussian import GaussianAffinity
from .memory import storage_for
from .metric import DEFINITE_METRICS, METRICS, Metric, is_euclidean, pairwise
from .neighbours import neighbour_affinity
from .points import PointCloud, Points, require_representable

# Up to here a Cholesky factorisation (N³/3 operations) takes well under a second.
CHECKABLE = 5000


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
    n_neighbors
        Keep only the affinities to the nearest neighbours, a point itself included; None
        keeps all.
    memory_limit
        How many bytes the matrix of a dense affinity may take; above, it works in tiles. None
        stands for a quarter of the available memory.
    robust
        Set gross outliers aside first (see `robust.outlying_rows`); points and the Euclidean
        metric only.

    Examples
    --------
    >>> KernelSettings(metric="cosin")
    Traceback (most recent call last):
    ...
    unaligned.errors.InputError: metric='cosin' is not known. Did you mean 'cosine'? ...
    """

    bandwidth: str | float = "median"
    bandwidth_factor: float = 2.0
    metric: Metric = "euclidean"
    n_neighbors: int | None = None
    memory_limit: int | None = None
    robust: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.bandwidth, str):
            _check.one_of("bandwidth", self.bandwidth, ("median", "mean"))
        else:
            _check.real_number("bandwidth", self.bandwidth, minimum=0.0, strict=True)
        _check.real_number("bandwidth_factor", self.bandwidth_factor, minimum=0.0, strict=True)
        _check_metric(self.metric)
        _check.optional_int("n_neighbors", self.n_neighbors, minimum=2)
        _check.optional_int("memory_limit", self.memory_limit, minimum=0)
        if _check.flag("robust", self.robust) and not is_euclidean(self.metric):
            raise InputError(
                f"robust=True works with metric='euclidean', not with metric={self.metric!r}. "
                "Leave one of them out."
            )


def _check_metric(metric: object) -> None:
    if metric == "precomputed":
        raise InputError(
            "metric='precomputed' is not how distances are given here. "
            "Make the dataset with kind='distances'."
        )
    if isinstance(metric, str):
        _check.one_of("metric", metric, METRICS)
    elif not callable(metric):
        raise InputTypeError(
            f"metric={metric!r} must be the name of a metric or a callable of two rows, "
            f"not {type(metric).__name__}."
        )


def point_affinity(
    points: Points, settings: KernelSettings, rng: np.random.Generator | None = None
) -> PSDOperator:
    """Return the affinity of points, (N, d), dense or CSR, with its `sigma_squared`.

    Gaussian of the Euclidean distance (Eq. 1) unless the settings say otherwise: another
    metric goes through its N×N matrix of distances, `n_neighbors` gives a sparse matrix. `rng`
    draws pairs where there are too many for an exact median.

    Examples
    --------
    >>> affinity = point_affinity(np.array([[0.0], [1.0], [3.0]]), KernelSettings())
    >>> affinity.sigma_squared, affinity.definite
    (2.0, True)
    """
    if is_euclidean(settings.metric):
        cloud = PointCloud(points)
        scale, error = estimate_scale(cloud, settings.bandwidth, settings.bandwidth_factor, rng)
        if settings.n_neighbors is not None:
            return neighbour_affinity(points, settings.n_neighbors, scale)
        storage = storage_for(cloud.n_samples, settings.memory_limit)
        affinity = GaussianAffinity(cloud, scale, storage=storage)
        affinity.sigma_squared_error = error
        return affinity
    distances = pairwise(points, settings.metric)
    return _gaussian_of(distances, settings, definite=settings.metric in DEFINITE_METRICS)


def distance_affinity(distances: FloatArray, settings: KernelSettings) -> PSDOperator:
    """Return the Gaussian affinity of a matrix of distances, (N, N), with `sigma_squared`.

    Whether the distances are Euclidean nobody says, and what the bounds need is less: that
    this very matrix is positive semi-definite. Up to N = 5000 that is tested by a Cholesky
    factorisation (see `is_positive`); above, and where the test fails, the affinity counts as
    indefinite. Give the points instead, where there are any.
    """
    return _gaussian_of(np.array(distances, dtype=np.float64), settings, definite=None)


def given_affinity(weights: Any) -> PSDOperator:
    """Return a given affinity, (N, N), dense or sparse, as an operator.

    A dense one of up to N = 5000 is tested for positivity as distances are; a sparse one
    counts as indefinite: a factorisation could fill it in.
    """
    if sparse.issparse(weights):
        return SparseOperator(weights, definite=False)
    return MatrixOperator(weights, definite=is_positive(weights))


def is_positive(matrix: FloatArray) -> bool:
    r"""Say whether a symmetric matrix is shown to be positive semi-definite up to rounding.

    A Cholesky factorisation of :math:`A + \delta I` that runs through shows that no eigenvalue
    is below :math:`-2\delta`; :math:`\delta = N \epsilon \max_i A_{ii}` is what rounding does to
    the factorisation itself, and so the smallest shift at which a singular A passes. N³/3
    operations, a quarter of an eigenvalue computation; above N = 5000 it says False unseen.

    Examples
    --------
    >>> is_positive(np.ones((3, 3))), is_positive(np.array([[1.0, 2.0], [2.0, 1.0]]))
    (True, False)
    """
    n_samples = matrix.shape[0]
    if n_samples > CHECKABLE:
        return False
    largest = float(np.abs(np.diagonal(matrix)).max())
    return _factorises(matrix, n_samples * np.finfo(np.float64).eps * largest)


def require_positive(matrix: FloatArray, label: str) -> None:
    """Refuse a matrix of kind `spd` with an eigenvalue below -1e-10 of its trace."""
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
    """Whether a Cholesky factorisation of A + shift · I runs through."""
    shifted = np.array(matrix, dtype=np.float64, order="F")
    shifted[np.diag_indices_from(shifted)] += shift
    return int(linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)[1]) == 0


def _gaussian_of(
    distances: FloatArray, settings: KernelSettings, *, definite: bool | None
) -> PSDOperator:
    """Turn distances into exp(-d²/σ²), overwriting them; with `n_neighbors`, a sparse matrix."""
    n_samples = distances.shape[0]
    require_representable(float(np.abs(distances).max(initial=0.0)))
    distances *= distances
    condensed = squareform(distances, checks=False)
    scale = scale_from_condensed(
        condensed, n_samples, settings.bandwidth, settings.bandwidth_factor
    )
    if settings.n_neighbors is not None:
        return neighbour_affinity(distances, settings.n_neighbors, scale, precomputed=True)
    distances /= -scale
    np.fill_diagonal(distances, 0.0)
    np.exp(distances, out=distances)
    affinity = MatrixOperator(
        distances, definite=is_positive(distances) if definite is None else definite
    )
    affinity.sigma_squared = scale
    affinity.entries_evaluated = n_samples * n_samples
    return affinity
