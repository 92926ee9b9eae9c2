"""The hot loops of `kernels` for few points, by NumPy and SciPy.

Numba takes half a second to load, which is most of what a script with small tables does. For
some hundred points these are a few milliseconds slower, some hundredths of the eigenvalues' time.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from .._check import FloatArray


def products_from_points(
    points: FloatArray, transposed: FloatArray, start: int, out: FloatArray
) -> None:
    """Fill `out` with -½ ‖xᵢ - xⱼ‖², the columns being the points from `start` on."""
    others = transposed[:, start : start + out.shape[1]].T
    np.multiply(cdist(points, others, "sqeuclidean"), -0.5, out=out)


def gaussian_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray, rate: float
) -> None:
    """Turn inner products xᵢ·xⱼ into exp(-rate · ‖xᵢ - xⱼ‖²), in place."""
    _squared_from_products(tile, row_norms, column_norms)
    with np.errstate(over="ignore"):  # further than any number: the affinity is 0
        tile *= -rate
    np.exp(tile, out=tile)


def laplacian_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray, rate: float
) -> None:
    """Turn inner products xᵢ·xⱼ into exp(-√rate · ‖xᵢ - xⱼ‖), in place."""
    _squared_from_products(tile, row_norms, column_norms)
    with np.errstate(over="ignore"):  # an infinite distance: the affinity is 0
        tile *= rate
    np.sqrt(tile, out=tile)
    np.negative(tile, out=tile)
    np.exp(tile, out=tile)


def collect_from_products(
    tile: FloatArray,
    row_norms: FloatArray,
    column_norms: FloatArray,
    shift: int,
    bracket: tuple[float, float],
    found: FloatArray,
) -> tuple[int, int]:
    """Count and collect the squared distances of a tile of inner products, overwriting it.

    Row i takes part from column i + `shift` on. Returns how many lie below the bracket, and
    how many in it; those are the first in `found`.
    """
    _squared_from_products(tile, row_norms, column_norms)
    values = tile[~np.tri(tile.shape[0], tile.shape[1], k=shift - 1, dtype=bool)]
    low, high = bracket
    inside = values[(values >= low) & (values <= high)]
    found[: inside.size] = inside
    return int(np.count_nonzero(values < low)), inside.size


def _squared_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray
) -> None:
    tile *= -2.0
    tile += row_norms[:, None] + column_norms
    np.maximum(tile, 0.0, out=tile)
