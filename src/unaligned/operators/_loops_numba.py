"""Compiled loops: from inner products to affinities, and counting for medians.

Each function runs on one thread and releases the GIL; `threads.Workers` splits the rows of a tile
over cores. Numba's own `parallel=True` is not used: its default threading layer (workqueue)
aborts the process when two Python threads enter it at once, as the threads of `engine` do.

Only `kernel.loops_for` imports this module, as importing Numba takes 0.5 s. `_loops_numpy` has
the same functions in NumPy. Compiled code is cached on disk where possible; the first call on a
machine compiles for about a second.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from .._check import FloatArray, IndexArray


def _can_be_cached() -> bool:
    """Return whether Numba finds a writable folder for compiled code."""
    try:
        njit(cache=True)(_can_be_cached)
    except RuntimeError:  # a read-only installation without a home folder
        return False
    return True


# Fused multiply-add is allowed; reordering is not, as `_exp` rounds by adding a large number.
LOOP: dict[str, Any] = {
    "nogil": True,
    "cache": _can_be_cached(),
    "error_model": "numpy",
    "fastmath": {"contract"},
}


@intrinsic
def _scale_by_power(_context: Any, mantissa: Any, rounded: Any) -> Any:
    """Return mantissa · 2ⁿ, where n is in the low bits of `rounded`: one shift, one add."""

    def codegen(_: Any, builder: Any, __: Any, args: Any) -> Any:
        word = ir.IntType(64)
        exponent = builder.shl(builder.bitcast(args[1], word), ir.Constant(word, 52))
        total = builder.add(builder.bitcast(args[0], word), exponent)
        return builder.bitcast(total, ir.DoubleType())

    return types.float64(types.float64, types.float64), codegen


@njit(inline="always", error_model="numpy", fastmath={"contract"})
def _exp(x: float) -> float:
    r"""Return exp(x) for x ≤ 0 to one unit in the last place, 0 below -708.

    .. math:: e^x = 2^n e^r, \quad n = \mathrm{round}(x / \ln 2), \quad |r| \le \ln(2)/2,

    with the Taylor series to r¹³ (remainder 4e-18) in Estrin's order. No branch and no table, so
    that the compiler vectorises it.
    """
    lowest = -708.0  # exp of anything below is smaller than the smallest normal number
    shift = 6755399441055744.0  # 1.5 · 2⁵²: adding it leaves the rounded number in the low bits
    y = max(x, lowest)
    rounded = y * 1.4426950408889634 + shift  # y / ln 2
    n = rounded - shift
    # ln 2 in two parts, the first with trailing zeros: n · ln 2 to twice the precision
    r = (y - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10
    r2 = r * r
    r4 = r2 * r2
    low = (0.5 + 1.0 / 6.0 * r) + (1.0 / 24.0 + 1.0 / 120.0 * r) * r2
    middle = (1.0 / 720.0 + 1.0 / 5040.0 * r) + (1.0 / 40320.0 + 1.0 / 362880.0 * r) * r2
    high = (1.0 / 3628800.0 + 1.0 / 39916800.0 * r) + (
        1.0 / 479001600.0 + 1.0 / 6227020800.0 * r
    ) * r2
    series = 1.0 + (r + r2 * (low + middle * r4 + high * (r4 * r4)))
    return _scale_by_power(series, rounded) if x >= lowest else 0.0  # type: ignore[call-arg]


@njit(inline="always", error_model="numpy", fastmath={"contract"})
def _weighted_squares(
    point: FloatArray, transposed: FloatArray, start: int, weight: float, out: FloatArray
) -> None:
    """Fill `out` with weight · ‖x - xⱼ‖² for the columns of `transposed` from `start` on."""
    stop = start + out.size
    out[:] = 0.0
    for k in range(0, point.size, 4):
        a, b, c, d = point[k], point[k + 1], point[k + 2], point[k + 3]
        xa, xb = transposed[k, start:stop], transposed[k + 1, start:stop]
        xc, xd = transposed[k + 2, start:stop], transposed[k + 3, start:stop]
        for j in range(out.size):
            u, v, w, z = a - xa[j], b - xb[j], c - xc[j], d - xd[j]
            out[j] += weight * ((u * u + v * v) + (w * w + z * z))


@njit(**LOOP)
def products_from_points(
    points: FloatArray, transposed: FloatArray, start: int, out: FloatArray
) -> None:
    """Fill `out` with -½ ‖xᵢ - xⱼ‖² for the columns of `transposed` from `start` on.

    With norms of 0 these serve as inner products. The number of features is a multiple of four.
    """
    for i in range(points.shape[0]):
        # Slices of single rows, here and below, so that the inner loop is vectorised.
        _weighted_squares(points[i], transposed, start, -0.5, out[i])


@njit(**LOOP)
def squared_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray
) -> None:
    """Turn inner products xᵢ·xⱼ into ‖xᵢ - xⱼ‖², in place."""
    for i in range(tile.shape[0]):
        row, norm = tile[i], row_norms[i]
        for j in range(row.size):
            row[j] = max(norm + column_norms[j] - 2.0 * row[j], 0.0)


@njit(**LOOP)
def gaussian_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray, rate: float
) -> None:
    """Turn inner products xᵢ·xⱼ into exp(-rate · ‖xᵢ - xⱼ‖²), in place."""
    for i in range(tile.shape[0]):
        row, norm = tile[i], row_norms[i]
        for j in range(row.size):
            squared = norm + column_norms[j] - 2.0 * row[j]
            row[j] = _exp(-rate * max(squared, 0.0))


@njit(**LOOP)
def laplacian_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray, rate: float
) -> None:
    """Turn inner products xᵢ·xⱼ into exp(-√rate · ‖xᵢ - xⱼ‖), in place."""
    for i in range(tile.shape[0]):
        row, norm = tile[i], row_norms[i]
        for j in range(row.size):
            squared = norm + column_norms[j] - 2.0 * row[j]
            row[j] = _exp(-math.sqrt(rate * max(squared, 0.0)))


@njit(**LOOP)
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
    within it; the latter are in `found`, which has one place more than the tile has entries.
    """
    low, high = bracket
    n_below, n_found = 0, 0
    for i in range(tile.shape[0]):
        begin = max(0, i + shift)
        row, norms, norm = tile[i, begin:], column_norms[begin:], row_norms[i]
        below, up_to = 0, 0
        for j in range(row.size):
            squared = max(norm + norms[j] - 2.0 * row[j], 0.0)
            row[j] = squared
            below += squared < low
            up_to += squared <= high
        n_below += below
        if up_to > below:
            for j in range(row.size):
                # Branch-free: always write, advance only for values within the bracket.
                found[n_found] = row[j]
                n_found += (row[j] >= low) & (row[j] <= high)
    return n_below, n_found


@njit(inline="always", error_model="numpy", fastmath={"contract"})
def _tally(
    row: FloatArray,
    bracket: tuple[float, float],
    middle: float,
    found: FloatArray,
    bins: IndexArray,
) -> tuple[int, int]:
    """Add a row's values within the bracket to the bins.

    Returns the number of values below the bracket, and below `middle`.
    """
    low, high = bracket
    below, up_to, half = 0, 0, 0
    for j in range(row.size):
        below += row[j] < low
        up_to += row[j] <= high
        half += row[j] < middle
    if up_to > below:
        per_unit, last, count = bins.size / (high - low), bins.size - 1, 0
        for j in range(row.size):
            found[count] = row[j]
            count += (row[j] >= low) & (row[j] <= high)
        for j in range(count):
            bins[min(int((found[j] - low) * per_unit), last)] += 1
    return below, half


@njit(**LOOP)
def tally_windows(
    points: FloatArray,
    transposed: FloatArray,
    windows: tuple[IndexArray, IndexArray],
    bracket: tuple[float, float],
    middle: float,
    bins: IndexArray,
    halves: IndexArray,
) -> int:
    """Tally the squared distances of each point to its own window of other points.

    The window of point i is the columns `windows[0][i]` to `windows[1][i]` of `transposed`; the
    number of features is a multiple of four. Adds to `bins`, fills `halves` with the number of
    values below `middle` per point, and returns the number below the bracket.
    """
    starts, stops = windows
    longest = (stops - starts).max()
    squared, found = np.empty(longest), np.empty(longest + 1)
    n_below = 0
    for i in range(points.shape[0]):
        row = squared[: stops[i] - starts[i]]
        _weighted_squares(points[i], transposed, starts[i], 1.0, row)
        below, halves[i] = _tally(row, bracket, middle, found, bins)
        n_below += below
    return n_below


@njit(**LOOP)
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
    found = np.empty(tile.shape[1] + 1)
    n_below = 0
    for i in range(tile.shape[0]):
        below, halves[i] = _tally(tile[i], bracket, middle, found, bins)
        n_below += below
    return n_below
