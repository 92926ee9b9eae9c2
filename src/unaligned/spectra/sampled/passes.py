"""What `sampled` sums over the rows: degrees, isolated rows, and products with the operator."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..._check import FloatArray, IndexArray
from ...errors import InputError
from ...operators.affinity import CrossKernel
from ...rows.source import SAME_ROWS


class Degrees(NamedTuple):
    r"""Row sums of Eqs. 2-4 from a weighted sample of rows, the landmarks.

    .. math:: \hat d(x) = 1 + \sum_{l \ne x} w_l\, k(x, x_l), \qquad
              \hat g(x) = 1/\hat d(x) + \sum_{l \ne x} w_l\, k(x, x_l)/\hat d_l, \qquad
              \hat s^2 = 1 / (\hat d \hat g)

    An affinity of a row with itself is known, so isolated rows (d near 1) have the right degree.
    The last landmarks may have exact sums, from a pass over all rows.
    """

    positions: IndexArray  # (n,), of the landmarks among all rows
    weights: FloatArray  # (n,), of the rows that each stands for
    densities: FloatArray  # (n,), d̂ of the landmarks
    exact: FloatArray  # (2, t), d and g of the last t landmarks

    @classmethod
    def of(
        cls, kernel: FloatArray, positions: IndexArray, weights: FloatArray, exact: FloatArray
    ) -> Degrees:
        """Return the degrees from the affinities among the landmarks, (n, n)."""
        densities = 1.0 + weights @ kernel - weights
        densities[weights.size - exact.shape[1] :] = exact[0]
        return cls(positions, weights, densities, exact)

    def sums(self, kernel: FloatArray, places: IndexArray) -> FloatArray:
        """Return d̂ and ĝ of rows at these positions, (2, b), from k(x_l, x), (n, b)."""
        _, own, here = np.intersect1d(self.positions, places, return_indices=True)
        # The affinity of a row with itself is 1, but for cancellation far away from all others.
        if np.any(kernel[own, here] < 0.99):
            place = int(places[here[np.argmin(kernel[own, here])]])
            raise InputError(f"row {place} is not the one returned before. {SAME_ROWS}")
        coefficients = np.stack([self.weights, self.weights / self.densities])
        both = coefficients @ kernel
        both[:, here] -= coefficients[:, own]
        density = 1.0 + both[0]
        degree = 1.0 / density + both[1]
        first = self.positions.size - self.exact.shape[1]
        tail = own >= first
        both[0], both[1] = density, degree
        both[:, here[tail]] = self.exact[:, own[tail] - first]
        return both

    def scaling(self, kernel: FloatArray, places: IndexArray) -> FloatArray:
        """Return ŝ of rows at these positions, (b,)."""
        scaling: FloatArray = 1.0 / np.sqrt(np.prod(self.sums(kernel, places), axis=0))
        return scaling


class Isolated(NamedTuple):
    """The rows with the largest ŝ², a diagonal entry of W; those of disjoint rows add up."""

    squares: FloatArray  # (t,), descending
    positions: IndexArray  # (t,)
    points: FloatArray  # (t, d)
    most: int

    @classmethod
    def of(
        cls, squares: FloatArray, positions: IndexArray, points: FloatArray, most: int
    ) -> Isolated:
        """Return the `most` rows with the largest squares, ties by position."""
        order = np.lexsort([positions, -squares])[:most]
        return cls(squares[order], positions[order], points[order], most)

    def __add__(self, other: Isolated) -> Isolated:  # type: ignore[override]
        squares, positions, points = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("squares", "positions", "points")
        )
        return Isolated.of(squares, positions, points, self.most)


def isolated_rows(
    points: FloatArray, start: int, shared: tuple[CrossKernel, Degrees, int]
) -> Isolated:
    """Return the most isolated of these rows: O(b n d)."""
    kernel, degrees, most = shared
    parts = [
        Isolated.of(degrees.scaling(_affinities(kernel, rows), places) ** 2, places, rows, most)
        for places, rows in _tiles(points, start, kernel)
    ]
    found = parts[0]
    for part in parts[1:]:
        found += part
    return found


def exact_sums(
    points: FloatArray, start: int, shared: tuple[CrossKernel, Degrees, int]
) -> FloatArray:
    """Return Σ k and Σ k/d̂ of the last t landmarks over these rows, (2, t).

    The second sum leaves out the landmarks themselves, whose d̂ this pass computes.
    """
    kernel, degrees, n_last = shared
    sums = np.zeros((2, n_last))
    last = degrees.positions[degrees.positions.size - n_last :]
    for places, rows in _tiles(points, start, kernel):
        tile = _affinities(kernel, rows)
        density, _ = degrees.sums(tile, places)
        others = ~np.isin(places, last)
        below = tile[tile.shape[0] - n_last :]
        sums += np.stack([below.sum(axis=1), below @ (others / density)])
    return sums


class Design(NamedTuple):
    """Landmarks, functions and sampled rows of a main pass.

    The rows of `kernel` are landmarks, isolated rows, and sampled rows: the first two extend the
    functions, the last two sample the products.
    """

    kernel: CrossKernel  # of u + t + s rows
    degrees: Degrees  # from the first u + t
    coefficients: FloatArray  # (u + t, m), single precision where that is enough
    n_uniform: int  # u

    def features(self, kernel: FloatArray, places: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Return the functions at rows, (b, m), and d̂ and ĝ, (2, b), from k(x_l, x), (n, b)."""
        sums = self.degrees.sums(kernel, places)
        values = kernel.astype(self.coefficients.dtype, copy=False).T @ self.coefficients
        values /= np.sqrt(np.prod(sums, axis=0))[:, None].astype(values.dtype)
        return values, sums


class Products(NamedTuple):
    """The Gram matrix of the functions, and the sampled rows of W times them; results add up."""

    gram: FloatArray  # (m, m)
    products: FloatArray  # (t + s, m), without the scaling of the sampled rows
    sums: FloatArray  # (2, t + s): Σ k and Σ k/d̂ of the sampled rows

    def __add__(self, other: Products) -> Products:  # type: ignore[override]
        """Return the sum of both; the arrays of the first are overwritten."""
        return Products(*(np.add(a, b, out=a) for a, b in zip(self, other, strict=True)))


def sampled_products(points: FloatArray, start: int, design: Design) -> Products:
    """Return what these rows add to both: O(b (n + s) (d + m)), and one tile in memory.

    Products within a tile are in the precision of the coefficients, sums over tiles in double.
    """
    n, m = design.coefficients.shape
    count = design.kernel.points.shape[0] - design.n_uniform
    found = Products(np.zeros((m, m)), np.zeros((count, m)), np.zeros((2, count)))
    for places, rows in _tiles(points, start, design.kernel):
        tile = _affinities(design.kernel, rows)
        features, degrees = design.features(tile[:n], places)
        sampled = tile[design.n_uniform :]
        found.gram[:] += features.T @ features
        features /= np.sqrt(np.prod(degrees, axis=0))[:, None].astype(features.dtype)
        found.products[:] += sampled.astype(features.dtype, copy=False) @ features
        ones = np.stack([np.ones(places.size), 1.0 / degrees[0]])
        found.sums[:] += ones @ sampled.T
    return found


def functions_at(
    design: Design, points: FloatArray, positions: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Return the functions at rows with these positions, (b, m), and d̂ and ĝ there, (2, b)."""
    n, parts, sums = design.coefficients.shape[0], [], []
    landmarks = design.kernel.of(design.kernel.points[:n])
    for places, rows in _tiles(points, 0, landmarks):
        tile, here = _affinities(landmarks, rows), positions[places]
        values, degrees = design.features(tile, here)
        parts.append(values.astype(np.float64))
        sums.append(degrees)
    return np.concatenate(parts), np.concatenate(sums, axis=1)


def degree_errors(
    kernel: CrossKernel, weights: FloatArray, estimated: FloatArray, summed: FloatArray
) -> FloatArray:
    r"""Return log(s/ŝ) of the sampled rows, (n,): what sampled degrees do to the scaling.

    `estimated` are d̂ and ĝ, `summed` Σ k and Σ k/d̂ over all rows, each (2, n). With
    δ = log(d/d̂), known at the sampled rows, the true g is

    .. math:: g(x) = \sum_y \frac{k(x, y)}{d(y)}
              \approx \sum_y \frac{k(x, y)}{\hat d(y)} (1 - \delta_y) ,

    the last sum being over the sample. O(n² d) time, one tile in memory.
    """
    n = weights.size
    shift = np.log(summed[0] / estimated[0])
    terms = weights * shift / estimated[0]
    moved = np.empty(n)
    for places, rows in _tiles(kernel.points, 0, kernel):
        tile = _affinities(kernel, rows)
        tile[places, np.arange(places.size)] = 1.0 / weights[places]  # a row stands for itself
        moved[places] = terms @ tile
    truth = np.log(summed).sum(axis=0) - moved / summed[1]
    errors: FloatArray = 0.5 * (np.log(estimated).sum(axis=0) - truth)
    return errors


def _affinities(kernel: CrossKernel, rows: FloatArray) -> FloatArray:
    return kernel.fill(rows, np.empty((kernel.points.shape[0], rows.shape[0])))


def _tiles(
    points: FloatArray, start: int, kernel: CrossKernel
) -> Iterator[tuple[IndexArray, FloatArray]]:
    """Yield tiles of rows whose affinities take about 32 MiB, with their positions.

    They end at multiples of their size, a power of two, as those of `rows.reduce` do.
    """
    size = min(max((1 << 22) // kernel.points.shape[0], 128), 2048)
    size = 1 << round(math.log2(size))
    ends = range(size - start % size, points.shape[0], size)
    for first, last in pairwise([0, *ends, points.shape[0]]):
        yield np.arange(start + first, start + last), points[first:last]
