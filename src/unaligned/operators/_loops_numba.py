"""The hot loops: distances to Gaussian affinities, and counting for the exact median.

Each function runs on one thread and without the interpreter's lock; `threads.Workers` splits a
tile's rows over cores. Numba's own `parallel=True` is not used on purpose: its default
threading layer (workqueue) aborts the process when two Python threads enter it at once, which
is what `engine` threads do, and the safe layers (TBB, OpenMP) are not there on every machine.

This is the only module that imports Numba (0.5 s), so it is imported inside the functions that
need it; few points are left to `plain.py`. Compiled code is cached on disk, where there is a
place for it; the very first call on a machine compiles the loops it needs in about a second.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from .._check import FloatArray, IndexArray


def _can_be_cached() -> bool:
    """Return whether Numba finds a folder to keep compiled code in."""
    try:
        njit(cache=True)(_can_be_cached)
    except RuntimeError:  # a read-only installation, and no home of the user's own
        return False
    return True


# Fused multiply-add is allowed, reordering is not: the rounding trick in `_exp` needs its order.
_LOOP: dict[str, Any] = {
    "nogil": True,
    "cache": _can_be_cached(),
    "error_model": "numpy",
    "fastmath": {"contract"},
}
_LOWEST = -708.0  # exp of anything below is smaller than the smallest normal number
_ROUND = 6755399441055744.0  # 1.5 · 2⁵²: adding it leaves the rounded number in the low bits
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # ln 2 in two parts, the first with trailing zeros,
_LN2_LOW = 1.90821492927058770002e-10  # so that n · ln 2 is exact to twice the precision
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1.0 / math.factorial(k) for k in range(2, 14)
)


@intrinsic
def _scale_by_power(_context: Any, mantissa: Any, rounded: Any) -> Any:
    """Return mantissa · 2ⁿ, n standing in the low bits of `rounded`: one shift, one add."""

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

    with the Taylor series to r¹³ (remainder 4e-18) in Estrin's order. No branch and no table,
    so that the compiler turns it into vector instructions.
    """
    y = max(x, _LOWEST)
    rounded = y * _LOG2_E + _ROUND
    n = rounded - _ROUND
    r = (y - n * _LN2_HIGH) - n * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (_C2 + _C3 * r) + (_C4 + _C5 * r) * r2
    middle = (_C6 + _C7 * r) + (_C8 + _C9 * r) * r2
    high = (_C10 + _C11 * r) + (_C12 + _C13 * r) * r2
    series = 1.0 + (r + r2 * (low + middle * r4 + high * (r4 * r4)))
    return _scale_by_power(series, rounded) if x >= _LOWEST else 0.0  # type: ignore[call-arg]


@njit(inline="always", error_model="numpy", fastmath={"contract"})
def _weighted_squares(
    point: FloatArray, transposed: FloatArray, start: int, weight: float, out: FloatArray
) -> None:
    """Fill `out` with weight · ‖x - xⱼ‖², the columns being the points from `start` on."""
    stop = start + out.size
    out[:] = 0.0
    for k in range(0, point.size, 4):
        a, b, c, d = point[k], point[k + 1], point[k + 2], point[k + 3]
        xa, xb = transposed[k, start:stop], transposed[k + 1, start:stop]
        xc, xd = transposed[k + 2, start:stop], transposed[k + 3, start:stop]
        for j in range(out.size):
            u, v, w, z = a - xa[j], b - xb[j], c - xc[j], d - xd[j]
            out[j] += weight * ((u * u + v * v) + (w * w + z * z))


@njit(**_LOOP)
def products_from_points(
    points: FloatArray, transposed: FloatArray, start: int, out: FloatArray
) -> None:
    """Fill `out` with -½ ‖xᵢ - xⱼ‖², the columns being the points from `start` on.

    That is the inner product of points without length, so what follows is the same for few
    features and for many. The number of features is a multiple of four.
    """
    for i in range(points.shape[0]):
        # Slices of single rows, here and below: what starts at 0 without gaps is vectorised.
        _weighted_squares(points[i], transposed, start, -0.5, out[i])


@njit(**_LOOP)
def gaussian_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray, rate: float
) -> None:
    """Turn inner products xᵢ·xⱼ into exp(-rate · ‖xᵢ - xⱼ‖²), in place."""
    for i in range(tile.shape[0]):
        row, norm = tile[i], row_norms[i]
        for j in range(row.size):
            squared = norm + column_norms[j] - 2.0 * row[j]
            row[j] = _exp(-rate * max(squared, 0.0))


@njit(**_LOOP)
def laplacian_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray, rate: float
) -> None:
    """Turn inner products xᵢ·xⱼ into exp(-√rate · ‖xᵢ - xⱼ‖), in place."""
    for i in range(tile.shape[0]):
        row, norm = tile[i], row_norms[i]
        for j in range(row.size):
            squared = norm + column_norms[j] - 2.0 * row[j]
            row[j] = _exp(-math.sqrt(rate * max(squared, 0.0)))


@njit(**_LOOP)
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
    how many in it; those are in `found`, which has one place more than the tile has entries.
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
                # Write always, step on only when wanted: no branch that nobody can predict.
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

    Returns how many lie below the bracket, and how many below `middle`.
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


@njit(**_LOOP)
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

    Point i meets the columns `windows[0][i]` to `windows[1][i]` of `transposed`; features are a
    multiple of four. Fills `halves` with how many of a point lie below `middle` and adds to
    `bins`; returns how many lie below the bracket.
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


@njit(**_LOOP)
def tally_products(
    tile: FloatArray,
    row_norms: FloatArray,
    column_norms: FloatArray,
    bracket: tuple[float, float],
    middle: float,
    bins: IndexArray,
    halves: IndexArray,
) -> int:
    """Tally the squared distances of a tile of inner products, overwriting it."""
    found = np.empty(tile.shape[1] + 1)
    n_below = 0
    for i in range(tile.shape[0]):
        row, norm = tile[i], row_norms[i]
        for j in range(row.size):
            row[j] = max(norm + column_norms[j] - 2.0 * row[j], 0.0)
        below, halves[i] = _tally(row, bracket, middle, found, bins)
        n_below += below
    return n_below
