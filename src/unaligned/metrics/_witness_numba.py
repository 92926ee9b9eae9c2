"""A compiled loop over the witnesses of a relaxed witness complex.

`geometry_score` imports this module where many witnesses pay for loading Numba; gudhi's
`WitnessComplex` gives the same simplices, five times as slowly.
"""

import numpy as np
from numba import njit

from .._check import FloatArray, IndexArray
from ..operators._loops_numba import LOOP


@njit(inline="always")
def _nearest(distances: FloatArray, reach: float, near: IndexArray, lengths: FloatArray) -> int:
    """Fill in the landmarks up to `reach` beyond the third nearest, by distance; return how many.

    No edge and no triangle has a vertex farther out: one of the three nearest is not in it.
    """
    first = second = third = np.inf
    for length in distances:
        if length < third:
            if length < second:
                third = second
                if length < first:
                    second, first = first, length
                else:
                    second = length
            else:
                third = length
    count = 0
    for landmark in range(distances.size):
        length = distances[landmark]
        if length <= third + reach:
            place = count
            while place > 0 and lengths[place - 1] > length:
                near[place], lengths[place] = near[place - 1], lengths[place - 1]
                place -= 1
            near[place], lengths[place] = landmark, length
            count += 1
    return count


@njit(**LOOP)
def witnessed(
    distances: FloatArray, reach: float
) -> tuple[IndexArray, FloatArray, IndexArray, FloatArray]:
    r"""Return edges (2, n) and triangles (3, m) of the complex at α = `reach`, and their values.

    A simplex σ has the value, over witnesses w and landmarks q outside of σ,

    .. math:: \alpha(\sigma) = \min_w \max\big(0, \max_{p \in \sigma} d(w, p) -
              \min_{q \notin \sigma} d(w, q)\big)

    or the largest of its faces, if that is larger (de Silva and Carlsson, 2004). Every landmark is
    a witness, so vertices have 0. `distances` is (witnesses, landmarks). O(N L) time, 8 n L bytes.
    """
    n_witnesses, n_landmarks = distances.shape
    near, lengths = np.empty(8 * n_witnesses, dtype=np.int64), np.empty(8 * n_witnesses)
    starts = np.zeros(n_witnesses + 1, dtype=np.int64)
    edges = np.full((n_landmarks, n_landmarks), np.inf)
    for w in range(n_witnesses):
        start = starts[w]
        if start + n_landmarks > near.size:
            near = np.append(near, np.empty(near.size + n_landmarks, dtype=np.int64))
            lengths = np.append(lengths, np.empty(lengths.size + n_landmarks))
        own, away = near[start:], lengths[start:]
        count = _nearest(distances[w], reach, own, away)
        starts[w + 1] = start + count
        for b in range(1, count):
            for a in range(b):
                # The nearest landmark outside; {0, 1} is nearer than that.
                value = max(0.0, away[b] - away[0 if a > 0 else 1]) if b > 1 else 0.0
                i, j = min(own[a], own[b]), max(own[a], own[b])
                if value <= reach and value < edges[i, j]:
                    edges[i, j] = value
    number, n_edges = np.full((n_landmarks, n_landmarks), -1), 0
    for i in range(n_landmarks):
        for j in range(i + 1, n_landmarks):
            if edges[i, j] <= reach:
                number[i, j] = n_edges
                n_edges += 1
    triangles = np.full((n_edges, n_landmarks), np.inf)  # by the edge of i and j, and k
    for w in range(n_witnesses):
        own, away = near[starts[w] : starts[w + 1]], lengths[starts[w] : starts[w + 1]]
        for c in range(2, own.size):
            for b in range(1, c):
                for a in range(b):
                    outside = 0 if a > 0 else (1 if b > 1 else 2)
                    value = max(0.0, away[c] - away[outside]) if c > 2 else 0.0
                    if value > reach:
                        continue
                    i, k = min(own[a], own[b], own[c]), max(own[a], own[b], own[c])
                    j = own[a] + own[b] + own[c] - i - k
                    if number[i, j] >= 0 and number[i, k] >= 0 and number[j, k] >= 0:
                        value = max(value, edges[i, j], edges[i, k], edges[j, k])
                        if value < triangles[number[i, j], k]:
                            triangles[number[i, j], k] = value
    first, second = np.nonzero(number >= 0)
    edge, third = np.nonzero(triangles < np.inf)
    pairs, triples = np.empty((2, first.size), np.int64), np.empty((3, edge.size), np.int64)
    pair_values, triple_values = np.empty(first.size), np.empty(edge.size)
    for n in range(first.size):
        pairs[0, n], pairs[1, n] = first[n], second[n]
        pair_values[n] = edges[first[n], second[n]]
    for n in range(edge.size):
        triples[0, n], triples[1, n], triples[2, n] = first[edge[n]], second[edge[n]], third[n]
        triple_values[n] = triangles[edge[n], third[n]]
    return pairs, pair_values, triples, triple_values
