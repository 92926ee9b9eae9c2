"""Metrics other than the Euclidean one: their names, and their matrices of distances."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from .. import _check
from .._check import FloatArray
from ..errors import InputError
from .pointcloud import Points

Metric: TypeAlias = str | Callable[[FloatArray, FloatArray], float]

EUCLIDEAN_METRICS = ("euclidean", "l2", "minkowski")  # scikit-learn's minkowski has p=2
_CITYBLOCK_METRICS = ("cityblock", "l1", "manhattan")
# exp(-d²/σ²) is positive for every σ if and only if d² is conditionally negative definite
# (Schoenberg, 1938), which is to say that d is a Euclidean distance of some points. So it is
# for these two, which rescale or turn the axes. It is not for the others: d² of cityblock is
# not (d is), nor of cosine (d is), and sqeuclidean would have to hold for ‖x - y‖⁴.
DEFINITE_METRICS = ("seuclidean", "mahalanobis")
_BOOLEAN_METRICS = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
METRICS = (
    *EUCLIDEAN_METRICS,
    *DEFINITE_METRICS,
    *_CITYBLOCK_METRICS,
    *("braycurtis", "canberra", "chebyshev", "correlation", "cosine", "hamming", "haversine"),
    "sqeuclidean",
    *_BOOLEAN_METRICS,
)


def name_of(metric: Metric) -> str:
    """Return the name by which a metric is known in recipes, one for all names of it.

    A function of a module is known by its name. One that has none of its own, such as a lambda,
    is known by what it does: its code, and the values it was made with.

    Examples
    --------
    >>> name_of("l2"), name_of(lambda x, y: 1.0) == name_of(lambda x, y: 2.0)
    ('euclidean', False)
    """
    if isinstance(metric, str):
        for names in (EUCLIDEAN_METRICS, _CITYBLOCK_METRICS):
            if metric in names:
                return names[0]
        return metric
    own = getattr(metric, "__qualname__", None)
    name = f"{metric.__module__}.{own or type(metric).__name__}"
    if own is not None and "<" not in own:
        return name
    does = repr(_made_of(metric) if isinstance(metric, FunctionType) else metric)
    return f"{name}#{hashlib.blake2b(does.encode(), digest_size=4).hexdigest()}"


def _made_of(function: FunctionType) -> tuple[Any, ...]:
    code, cells = function.__code__, function.__closure__ or ()
    values = [cell.cell_contents for cell in cells]
    return code.co_code, code.co_consts, code.co_names, function.__defaults__, values


def is_euclidean(metric: object) -> bool:
    """Say whether a metric is the Euclidean one under any of its names."""
    return isinstance(metric, str) and metric in EUCLIDEAN_METRICS


def pairwise(points: Points, metric: Metric) -> FloatArray:
    """Return the N×N matrix of distances under a metric of scikit-learn or a callable.

    O(N²) evaluations and 8 N² bytes. The result is symmetric, and refused if it holds NaN,
    infinite or negative values.

    Examples
    --------
    >>> pairwise(np.array([[0.0, 0.0], [1.0, 2.0]]), "cityblock")
    array([[0., 3.],
           [3., 0.]])
    """
    from sklearn.metrics import pairwise_distances

    values: Any = points
    if isinstance(metric, str) and metric in _BOOLEAN_METRICS and not sparse.issparse(points):
        values = np.asarray(points) != 0
    try:
        distances: FloatArray = pairwise_distances(values, metric=metric)
    except (TypeError, ValueError, np.linalg.LinAlgError) as error:
        raise InputError(
            f"metric={metric!r} cannot be worked out for points given as "
            f"{_check.shape_of(points)}: {error} Choose another metric or change the points."
        ) from error
    distances = np.array(distances, dtype=np.float64)
    np.fill_diagonal(distances, 0.0)
    return _checked(distances, metric)


def _checked(distances: FloatArray, metric: object) -> FloatArray:
    """Refuse what is no distance; halve what rounding made unsymmetric."""
    bad = np.argwhere(~(np.isfinite(distances) & (distances >= -1e-12)))
    if bad.size:
        i, j = bad[0]
        raise InputError(
            f"metric={metric!r} gives {distances[i, j]:g} for rows {i} and {j}; a distance must "
            "be finite and at least 0. Choose another metric or leave these rows out."
        )
    distances = 0.5 * (distances + distances.T)
    return np.maximum(distances, 0.0, out=distances)
