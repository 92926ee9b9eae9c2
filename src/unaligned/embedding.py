"""Embedding, clustering, aggregation and correlation of a distance matrix."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _check
from ._check import FloatArray, RNGLike
from .errors import InputError, InputTypeError
from .operators.base import MatrixOperator
from .operators.diffusion import DiffusionOperator

METHODS = ("mds", "metric-mds", "diffusion")
AGGREGATORS: dict[str, Callable[..., Any]] = {"mean": np.mean, "min": np.min, "max": np.max}
CORRELATIONS = ("pearson", "spearman")
LINKAGES = ("average", "single", "complete", "weighted")
ORDERED_LEAVES = 1000  # up to so many datasets the order of leaves takes half a second; O(n³)


def embed(
    distances: FloatArray, method: str = "mds", n_components: int = 2, *, rng: RNGLike = None
) -> FloatArray:
    """Return coordinates that approximate a distance matrix.

    Parameters
    ----------
    distances
        Shape (n, n), symmetric with a zero diagonal.
    method
        `"mds"`: classical scaling, exact for distances such as LES that are Euclidean.
        `"metric-mds"`: stress minimised by SMACOF (scikit-learn).
        `"diffusion"`: diffusion maps of the distance matrix, as in Section 5.2.
    n_components
        The number of coordinates.
    rng
        Seed of `metric-mds`; the other methods are deterministic.

    Returns
    -------
    coordinates
        Shape (n, n_components).

    Examples
    --------
    >>> line = np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]))
    >>> np.ptp(embed(line, n_components=1)).round(6)
    np.float64(3.0)
    """
    method = _check.one_of("method", method, METHODS)
    rng = _check.root_seed(rng)
    k = _check.positive_int("n_components", n_components)
    if k >= (n := len(distances)):
        raise InputError(
            f"n_components={k} needs more than {k} datasets; there are {n}. Lower n_components."
        )
    if method == "mds":
        return classical_mds(distances, k)
    if method == "diffusion":
        return diffusion_map(distances, k)
    return _metric_mds(distances, k, rng)


def symmetrised(distances: FloatArray) -> FloatArray:
    """Return the mean of both directions, clipped at 0, with a zero diagonal, (n, n).

    Unbiased estimates may be negative, and `crosslid` of a dataset with itself is not 0.
    """
    mean: FloatArray = np.maximum((distances + distances.T) / 2, 0.0)
    np.fill_diagonal(mean, 0.0)
    return mean


def classical_mds(distances: FloatArray, n_components: int) -> FloatArray:
    """Return coordinates by classical scaling (Torgerson, 1952).

    The leading eigenvectors of -J D² J / 2, J the centring matrix, scaled by the roots of their
    eigenvalues. O(n³) time.
    """
    centring = np.eye(len(distances)) - 1.0 / len(distances)
    eigenvalues, U = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    leading = np.argsort(eigenvalues)[::-1][:n_components]
    roots = np.sqrt(np.maximum(eigenvalues[leading], 0.0))
    return _with_fixed_signs(U[:, leading] * roots)


def diffusion_map(distances: FloatArray, n_components: int) -> FloatArray:
    """Return the leading diffusion coordinates of a matrix of distances (Section 5.2).

    Eqs. 1-4 as for points; the coordinates are the right eigenvectors of the row-stochastic
    operator times their eigenvalues, without the constant one. Departure from the paper: σ² is
    twice the median of the off-diagonal squares, because the zero diagonal would make the scale
    of a few datasets too small. O(n³) time.
    """
    pairs = distances[np.triu_indices_from(distances, k=1)] ** 2
    scale = 2.0 * float(np.median(pairs)) or 2.0 * float(pairs.mean())
    if scale == 0:
        return np.zeros((distances.shape[0], n_components))
    affinity = np.exp(-(distances**2) / scale)
    operator = DiffusionOperator(MatrixOperator(affinity))
    root_degree = 1.0 / (operator.scaling * affinity.sum(axis=1))
    # Deflate the constant eigenvector: with distant clusters the eigenvalue 1 is multiple, and
    # `eigh` need not return the constant one.
    first = root_degree / np.linalg.norm(root_degree)
    # All eigenvalues lie in [-1, 1], so subtracting 3 puts it last.
    eigenvalues, U = np.linalg.eigh(operator.to_dense() - 3.0 * np.outer(first, first))
    leading = np.arange(eigenvalues.size - 1, eigenvalues.size - 1 - n_components, -1)
    return _with_fixed_signs(eigenvalues[leading] * U[:, leading] / root_degree[:, None])


def linkage(distances: FloatArray, method: str = "average") -> FloatArray:
    """Return SciPy's linkage matrix of a matrix of distances, (n - 1, 4), for `dendrogram`.

    For up to 1000 datasets, leaves side by side are as near as the tree allows.

    Parameters
    ----------
    distances
        Shape (n, n), symmetric with a zero diagonal.
    method
        `"average"`, `"single"`, `"complete"` or `"weighted"`.

    Examples
    --------
    >>> line = np.abs(np.subtract.outer([0.0, 1.0, 5.0], [0.0, 1.0, 5.0]))
    >>> linkage(line)[:, 2]
    array([1. , 4.5])
    """
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    if method in ("ward", "centroid", "median"):
        raise InputError(
            f"method={method!r} is valid for Euclidean distances only. Use 'average', or "
            "'complete' for compact clusters; for 'les', which is Euclidean, use SciPy's linkage "
            "of the signatures' values."
        )
    _check.one_of("method", method, LINKAGES)
    if len(distances) < 2:
        raise InputError("linkage() needs at least two datasets; there is one.")
    condensed = squareform(distances, checks=False)
    ordered = len(distances) <= ORDERED_LEAVES
    return np.asarray(hierarchy.linkage(condensed, method, optimal_ordering=ordered))


def aggregate(distances: FloatArray, how: str = "mean") -> FloatArray:
    r"""Return the dissimilarity of each dataset to all references, (n,) (Section 5.3).

    .. math:: \mathcal{A}(\{d(X^{(\ell)}, X')\}_{\ell=1}^n)

    with the mean [table:meta-mean], the minimum or the maximum for 𝒜.

    Parameters
    ----------
    distances
        Shape (n, m): datasets × references.
    how
        `"mean"`, `"min"` or `"max"`.

    Examples
    --------
    >>> aggregate(np.array([[1.0, 3.0], [4.0, 8.0]]))
    array([2., 6.])
    """
    return np.asarray(AGGREGATORS[_check.one_of("how", how, AGGREGATORS)](distances, axis=1))


def correlate(
    distances: FloatArray,
    values: npt.ArrayLike,
    method: str = "pearson",
    period: float | None = None,
) -> float:
    """Return the correlation of distances with differences of a value per dataset.

    Over all pairs i < j, of the distance and :math:`|v_i - v_j|`, such as the time between two
    samples in Section 5.2; cyclic where there is a period. Pairs that share a dataset are
    dependent, so the usual p-value of a correlation does not apply (see
    `inference.association.Correlation`).
    """
    numbers = _numbers(values, distances.shape[0])
    index = np.triu_indices(numbers.size, k=1)
    between = differences(numbers, period)[index]
    return _correlation(distances[index], between, "differences of values", method)


def differences(numbers: FloatArray, period: float | None = None) -> FloatArray:
    """Return |v_i - v_j| of all pairs, (n, n); with a period, the shorter way around.

    Examples
    --------
    >>> differences(np.array([1.0, 23.0]), period=24)[0, 1]
    np.float64(2.0)
    """
    found: FloatArray = np.abs(np.subtract.outer(numbers, numbers))
    if period is None:
        return found
    found %= _check.real_number("period", period, minimum=0.0, strict=True)
    return np.minimum(found, period - found)


def correlate_to_references(
    distances: FloatArray, values: npt.ArrayLike, how: str = "mean", method: str = "pearson"
) -> float:
    """Return the correlation of `aggregate(distances, how)` with a value per dataset, (n,).

    As in Section 5.3, where the value is the accuracy on a new task.
    """
    numbers = _numbers(values, distances.shape[0])
    return _correlation(aggregate(distances, how), numbers, "values", method)


def _correlation(first: FloatArray, second: FloatArray, name: str, method: str) -> float:
    """Return Pearson's or Spearman's correlation of distances with numbers called `name`."""
    from scipy.stats import rankdata

    method = _check.one_of("method", method, CORRELATIONS)
    for what, numbers in (("distances", first), (name, second)):
        if np.ptp(numbers) == 0:
            value = f"{numbers[0]:g}"
            raise InputError(f"All {what} are equal ({value}); the correlation is undefined.")
    if method == "spearman":
        first, second = rankdata(first), rankdata(second)
    # Scaled, because squares of very large or small numbers over- or underflow.
    first, second = first / np.abs(first).max(), second / np.abs(second).max()
    return float(np.corrcoef(first, second)[0, 1])


def _numbers(values: npt.ArrayLike, n: int) -> FloatArray:
    """Return one finite number per dataset; n must be at least 3."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"values={values!r} must be numbers, one per dataset. Convert dates to days; "
            "categorical values are not supported."
        ) from None
    if numbers.shape != (n,):
        raise InputError(
            f"values must have one number for each of the {n} datasets; got shape {numbers.shape}."
        )
    if not np.all(np.isfinite(numbers)):
        raise InputError("values must be finite; it contains NaN or infinity.")
    if n < 3:
        raise InputError(f"A correlation needs at least 3 datasets; there are {n}.")
    return numbers


def _metric_mds(distances: FloatArray, n_components: int, seed: int) -> FloatArray:
    from inspect import signature

    from sklearn.manifold import MDS

    if not distances.any():
        return np.zeros((distances.shape[0], n_components))  # SMACOF divides by their sum
    known = signature(MDS).parameters  # scikit-learn is renaming these options
    options = {"metric" if "metric_mds" in known else "dissimilarity": "precomputed"}
    if "init" in known:
        options["init"] = "random"
    model = MDS(n_components, n_init=8, random_state=seed % 2**32, **options)
    return _with_fixed_signs(np.asarray(model.fit_transform(distances)))


def _with_fixed_signs(coordinates: FloatArray) -> FloatArray:
    """Make the largest entry of each column positive, so that plots are reproducible."""
    largest = np.abs(coordinates).argmax(axis=0)
    signs = np.sign(coordinates[largest, np.arange(coordinates.shape[1])])
    return coordinates * np.where(signs == 0, 1.0, signs)
