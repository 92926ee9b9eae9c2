"""Rows of points, dense or sparse: their norms, and the distances of listed pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._check import FloatArray, IndexArray

# Of differences of single pairs, at a time: dense ones stay in the cache of a core (2 to 4 times
# faster than 16 MiB), while taking rows out of a sparse matrix costs 0.1 ms whatever they are.
_PAIR_BYTES, _SPARSE_PAIR_BYTES = 1 << 18, 1 << 24
_EINSUM_FEATURES = 4096  # beyond 8192 `einsum` adds up in an order that depends on the place


def padded(rows: FloatArray) -> FloatArray:
    """Return rows with zero features up to a multiple of four, as the loops want them."""
    wide = np.zeros((rows.shape[0], -(-max(rows.shape[1], 1) // 4) * 4))
    wide[:, : rows.shape[1]] = rows
    return wide


def squared_norms(rows: Any) -> FloatArray:
    """Return the squared norms of dense or sparse rows; those of a row do not depend on others."""
    if sparse.issparse(rows):
        norms: FloatArray = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        return norms
    norms = np.einsum("ij,ij->i", rows[:, :_EINSUM_FEATURES], rows[:, :_EINSUM_FEATURES])
    for start in range(_EINSUM_FEATURES, rows.shape[1], _EINSUM_FEATURES):
        part = rows[:, start : start + _EINSUM_FEATURES]
        norms += np.einsum("ij,ij->i", part, part)
    return norms


def squared_distances_of_pairs(
    points: Any, first: IndexArray, second: IndexArray, *, filled: bool = False
) -> FloatArray:
    """Return ‖xᵢ - xⱼ‖² of listed pairs of dense or sparse rows, from differences: O(d) a pair.

    With `filled`, sparse rows give the same bits as dense ones: the sums run alike.

    Examples
    --------
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> squared_distances_of_pairs(points, np.array([0, 1]), np.array([2, 2]))
    array([9., 4.])
    """
    most = _SPARSE_PAIR_BYTES if sparse.issparse(points) else _PAIR_BYTES
    step = max(1, most // (8 * max(int(points.shape[1]), 1)))
    squared = np.empty(first.size)
    for part in (slice(a, a + step) for a in range(0, first.size, step)):
        difference = points[first[part]] - points[second[part]]
        if filled and sparse.issparse(difference):
            difference = difference.toarray()
        squared[part] = squared_norms(difference)
    return squared
