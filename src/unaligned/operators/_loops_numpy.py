"""The loops of `_loops_numba` in NumPy and SciPy: for few points, and as a reference."""

import numpy as np
from scipy.spatial.distance import cdist

from .._check import FloatArray, IndexArray


def products_from_points(
    points: FloatArray, transposed: FloatArray, start: int, out: FloatArray
) -> None:
    """Fill `out` with -½ ‖xᵢ - xⱼ‖² for the columns of `transposed` from `start` on."""
    others = transposed[:, start : start + out.shape[1]].T
    np.multiply(cdist(points, others, "sqeuclidean"), -0.5, out=out)


def collect_from_products(
    tile: FloatArray,
    row_norms: FloatArray,
    column_norms: FloatArray,
    shift: int,
    bracket: tuple[float, float],
    found: FloatArray,
) -> tuple[int, int]:
    """Count and collect the squared distances of a tile of inner products, which is overwritten.

    Row i counts from column i + `shift` on. Returns the number of values below the bracket and
    within it; the latter are the first in `found`.
    """
    squared_from_products(tile, row_norms, column_norms)
    values = tile[~np.tri(tile.shape[0], tile.shape[1], k=shift - 1, dtype=bool)]
    low, high = bracket
    inside = values[(values >= low) & (values <= high)]
    found[: inside.size] = inside
    return int(np.count_nonzero(values < low)), inside.size


def tally_windows(
    points: FloatArray,
    transposed: FloatArray,
    windows: tuple[IndexArray, IndexArray],
    bracket: tuple[float, float],
    middle: float,
    bins: IndexArray,
    halves: IndexArray,
) -> int:
    """Tally the squared distances of each point to its own window of other points."""
    n_below = 0
    for i, (start, stop) in enumerate(zip(*windows, strict=True)):
        squared = cdist(points[i : i + 1], transposed[:, start:stop].T, "sqeuclidean")
        n_below += _tally(squared, bracket, middle, bins, halves[i : i + 1])
    return n_below


def tally_products(
    tile: FloatArray,
    row_norms: FloatArray,
    column_norms: FloatArray,
    bracket: tuple[float, float],
    middle: float,
    bins: IndexArray,
    halves: IndexArray,
) -> int:
    """Tally the squared distances of a tile of inner products, which is overwritten."""
    squared_from_products(tile, row_norms, column_norms)
    return _tally(tile, bracket, middle, bins, halves)


def _tally(
    squared: FloatArray,
    bracket: tuple[float, float],
    middle: float,
    bins: IndexArray,
    halves: IndexArray,
) -> int:
    """Add the values within the bracket to the bins; return the number of values below it."""
    low, high = bracket
    halves[:] = (squared < middle).sum(axis=1)
    inside = squared[(squared >= low) & (squared <= high)]
    places = ((inside - low) * (bins.size / (high - low))).astype(np.intp)
    bins += np.bincount(np.minimum(places, bins.size - 1), minlength=bins.size)
    return int(np.count_nonzero(squared < low))


def squared_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray
) -> None:
    """Turn inner products xᵢ·xⱼ into ‖xᵢ - xⱼ‖², in place."""
    tile *= -2.0
    tile += row_norms[:, None] + column_norms
    np.maximum(tile, 0.0, out=tile)
