"""Gross outliers: rows far from almost all others, or new to the kernel."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from .._check import FloatArray, IndexArray
from ..defaults import BANDWIDTH_FACTOR


def outlying_rows(points: Any) -> npt.NDArray[np.bool_]:
    r"""Return which rows of (N, d) points, dense or CSR, are gross outliers.

    Two tests, each against up to 2000 reference rows, in O(N m (d + m)) time:

    - *far*: the distance to the (5 %)-th nearest reference is more than 4 times its median. It
      finds scattered points and clumps of up to 5 % of the rows. Clean data reaches 3.8
      (CytoTree) or 1.3 (a torus).
    - *new*: the part of the row's kernel function that no reference explains,
      :math:`\nu_i = 1 - k_i^T (K + \eta I)^{-1} k_i` (leave-one-out for the references), exceeds
      the median by a factor of 10, and by 7 times the spread of the upper quarter (clean digits
      and CytoTree stay below). That part is what an outlier adds to the spectrum: one point off
      a torus shifts every smaller eigenvalue by one place.

    A population of less than 5 % that lies far from all else is dropped too, which is why this is
    not the default. Of fewer than 20 rows none is an outlier.
    """
    if points.shape[0] < 20:
        return np.zeros(points.shape[0], dtype=bool)
    out = _far(points)
    for _ in range(3):  # outliers hide each other
        kept = np.flatnonzero(~out)
        found = _novel(points[kept])
        if not found.any():
            break
        out[kept[found]] = True
    return out


def _far(points: Any) -> npt.NDArray[np.bool_]:
    references = _references(points)
    k = min(math.ceil(0.05 * references.size) + 1, references.size - 1)
    radius = np.concatenate(
        [np.partition(block, k, axis=1)[:, k] for block in _squared(points, points[references])]
    )
    usual = float(np.median(radius))
    # Where most rows have many duplicates, every other row would count as far.
    return np.asarray((radius > 4.0**2 * usual) & (usual > 0))


def _novel(points: Any) -> npt.NDArray[np.bool_]:
    n_samples = points.shape[0]
    references = _references(points)
    chosen, others = points[references], np.setdiff1d(np.arange(n_samples), references)
    (between,) = _squared(chosen, chosen, step=references.size)
    scale = BANDWIDTH_FACTOR * float(np.median(between)) or float(between.mean()) or 1.0
    ridge = 1e-8 * references.size
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
    scores = np.log10(np.maximum(novelty, np.finfo(np.float64).eps))
    middle, upper = np.quantile(scores, [0.5, 0.75])
    return np.asarray(scores > middle + max(1.0, 7.0 * (upper - middle)))


def _references(points: Any, count: int = 2000) -> IndexArray:
    """Return up to `count` rows drawn by content, in an order that does not depend on theirs.

    The rows of the smallest hashes, in which equal rows are numbered: a random choice, the same
    for any order of the rows, dense or CSR.
    """
    hashes = np.concatenate(
        [_row_hashes(points[start : start + 4096]) for start in range(0, points.shape[0], 4096)]
    )
    order = np.argsort(hashes)
    first = np.searchsorted(hashes, hashes[order], sorter=order)
    keys = _mixed(hashes[order] + (np.arange(order.size) - first).astype(np.uint64))
    return order[np.argsort(keys, kind="stable")[:count]]


def _row_hashes(rows: Any) -> npt.NDArray[np.uint64]:
    """Return the sum over each row of hashes of (column, value), in which zeros have no part."""
    filled = sparse.csr_array(rows, dtype=np.float64, copy=True)
    filled.sum_duplicates()
    filled.eliminate_zeros()
    hashes = _mixed(filled.data.view(np.uint64) + _mixed(filled.indices.astype(np.uint64) + 1))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return np.asarray(sums[filled.indptr[1:]] - sums[filled.indptr[:-1]])


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the hash of each number (SplitMix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def _squared(points: Any, chosen: Any, step: int = 4096) -> Iterator[FloatArray]:
    """Yield the squared distances of blocks of rows to the chosen ones.

    Dense points are centred on the median, which outliers do not move, to avoid cancellation.
    """
    from sklearn.metrics.pairwise import euclidean_distances

    if not sparse.issparse(points):
        centre = np.median(chosen, axis=0)
        points, chosen = points - centre, chosen - centre
    for start in range(0, points.shape[0], step):
        yield euclidean_distances(points[start : start + step], chosen, squared=True)
