"""Which rows are gross outliers: far from almost all others, or new to the kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from .._check import FloatArray

# At most this share of the rows is taken for a stray clump rather than a population.
CLUMP_SHARE = 0.05
# How many times the usual radius a row's neighbourhood must have to be called far.
# Clean data (CytoTree) reaches 3.8, a torus 1.3.
FAR = 4.0
# A row is new to the kernel when its novelty exceeds the median by this many times the spread
# of the upper quarter, and by a factor of 10 at least. Clean digits and CytoTree stay below.
NOVEL_SPREADS, NOVEL_DECADES = 7.0, 1.0
_RIDGE = 1e-8
REFERENCES = 2000
_ROUNDS = 3
_FEWEST = 20  # no telling what is usual among fewer rows
_BLOCK = 4096


def outlying_rows(points: Any) -> npt.NDArray[np.bool_]:
    r"""Return which rows of (N, d) points, dense or CSR, are gross outliers.

    Two tests, each against up to 2000 reference rows, in O(N m (d + m)) time:

    - *far*: the distance to the (5 %)-th nearest reference is more than 4 times its median. It
      finds scattered points and clumps of up to 5 % of the rows.
    - *new*: the part of the row's kernel function that no reference explains,
      :math:`\nu_i = 1 - k_i^T (K + \eta I)^{-1} k_i` (leave-one-out for the references), is
      beyond the bulk of its kind. That part is what an outlier adds to the spectrum: one point
      off a torus shifts every smaller eigenvalue by one place.

    A population of less than 5 % that lies far from all else is set aside too; that is why
    this is not the default.

    Examples
    --------
    >>> angle = np.linspace(0, 6, 60)
    >>> circle = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> np.flatnonzero(outlying_rows(np.vstack([circle, [[50.0, 50.0]]])))
    array([60])
    """
    if points.shape[0] < _FEWEST:
        return np.zeros(points.shape[0], dtype=bool)
    out = _far(points)
    for _ in range(_ROUNDS):
        kept = np.flatnonzero(~out)
        found = _novel(points[kept])
        if not found.any():
            break
        out[kept[found]] = True
    return out


def _far(points: Any) -> npt.NDArray[np.bool_]:
    references = _choose(points.shape[0])
    k = min(math.ceil(CLUMP_SHARE * references.size) + 1, references.size - 1)
    radius = np.concatenate(
        [np.partition(block, k, axis=1)[:, k] for block in _squared(points, points[references])]
    )
    usual = float(np.median(radius))
    # Where most rows have duplicates enough, every other row would count as far.
    return np.asarray((radius > FAR**2 * usual) & (usual > 0))


def _novel(points: Any) -> npt.NDArray[np.bool_]:
    n_samples = points.shape[0]
    references = _choose(n_samples)
    chosen, others = points[references], np.setdiff1d(np.arange(n_samples), references)
    (between,) = _squared(chosen, chosen, step=references.size)
    scale = 2.0 * float(np.median(between)) or float(between.mean()) or 1.0
    ridge = _RIDGE * references.size
    np.exp(between / -scale, out=between)
    between[np.diag_indices_from(between)] += ridge
    factor = cholesky(between, lower=True, overwrite_a=True, check_finite=False)
    novelty = np.empty(n_samples)
    start = 0
    for block in _squared(points[others], chosen):
        kernel = np.exp(block / -scale)
        explained = solve_triangular(factor, kernel.T, lower=True, check_finite=False)
        rows = others[start : start + len(block)]
        novelty[rows] = 1.0 - np.einsum("ij,ij->j", explained, explained)
        start += len(block)
    # A reference explains itself; leaving it out is one division.
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    novelty[references] = 1.0 / np.diagonal(inverse) - ridge
    return _beyond_bulk(np.log10(np.maximum(novelty, np.finfo(np.float64).eps)))


def _beyond_bulk(scores: FloatArray) -> npt.NDArray[np.bool_]:
    middle, upper = np.quantile(scores, [0.5, 0.75])
    return np.asarray(scores > middle + max(NOVEL_DECADES, NOVEL_SPREADS * (upper - middle)))


def _choose(n_samples: int) -> npt.NDArray[np.int64]:
    """Return the reference rows: all, or a fixed random choice, so that data decides alone."""
    if n_samples <= REFERENCES:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(0).choice(n_samples, REFERENCES, replace=False))


def _squared(points: Any, chosen: Any, step: int = _BLOCK) -> Iterator[FloatArray]:
    """Yield the squared distances of rows to the chosen ones, a block of rows at a time.

    Dense points are centred on the median, which outliers cannot move: otherwise what all
    points share eats the digits in which they differ.
    """
    from sklearn.metrics.pairwise import euclidean_distances

    if not sparse.issparse(points):
        centre = np.median(chosen, axis=0)
        points, chosen = points - centre, chosen - centre
    for start in range(0, points.shape[0], step):
        yield euclidean_distances(points[start : start + step], chosen, squared=True)
