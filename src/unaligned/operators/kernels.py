"""The hot loops: distances to Gaussian affinities, and counting for the exact median.

Each function runs on one thread and without the interpreter's lock; `threads.Workers` splits a
tile's rows over cores. Numba's own `parallel=True` is not used on purpose: its default
threading layer (workqueue) aborts the process when two Python threads enter it at once, which
is what `engine` threads do, and the safe layers (TBB, OpenMP) are not there on every machine.

This is the only module that imports Numba (0.5 s), so it is imported inside the functions that
need it. Compiled code is cached on disk; the very first call on a machine compiles the two
loops it needs in about a second.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from .._check import FloatArray

# Fused multiply-add is allowed, reordering is not: the rounding trick in `_exp` needs its order.
_LOOP: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
}
_CHUNK = 1024  # columns worked on at a time, so that a row's distances stay in the L1 cache
_LOWEST = -708.0  # exp of anything below is smaller than the smallest normal number
_ROUND = 6755399441055744.0  # 1.5 · 2⁵²: adding it leaves the rounded number in the low bits
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # ln 2 in two parts, the first with trailing zeros,
_LN2_LOW = 1.90821492927058770002e-10  # so that n · ln 2 is exact to twice the precision
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1.0 / factorial(k) for k in range(2, 14)
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


@njit(**_LOOP)
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


@njit(**_LOOP)
def _squared_differences(
    point: FloatArray, transposed: FloatArray, start: int, squared: FloatArray
) -> None:
    """Fill `squared` with ‖point - xⱼ‖² for the columns j from `start`; features in fours."""
    squared[:] = 0.0
    for k in range(0, point.size, 4):
        a, b, c, d = point[k], point[k + 1], point[k + 2], point[k + 3]
        xa, xb, xc, xd = transposed[k], transposed[k + 1], transposed[k + 2], transposed[k + 3]
        for j in range(squared.size):
            u, v = a - xa[start + j], b - xb[start + j]
            w, z = c - xc[start + j], d - xd[start + j]
            squared[j] += (u * u + v * v) + (w * w + z * z)


@njit(**_LOOP)
def _collect(
    squared: FloatArray, low: float, high: float, found: FloatArray, n_found: int
) -> tuple[int, int]:
    """Count the values below `low`; append those in [low, high] to `found`."""
    below = 0
    up_to = 0
    for j in range(squared.size):
        below += squared[j] < low
        up_to += squared[j] <= high
    if up_to > below:
        for j in range(squared.size):
            # Write always, step on only when wanted: cheaper than a branch nobody can predict.
            found[n_found] = squared[j]
            n_found += (squared[j] >= low) & (squared[j] <= high)
    return below, n_found


@njit(**_LOOP)
def gaussian_from_products(
    tile: FloatArray, row_norms: FloatArray, column_norms: FloatArray, start: int, rate: float
) -> None:
    """Turn inner products xᵢ·xⱼ, columns from `start`, into exp(-rate · ‖xᵢ - xⱼ‖²) in place."""
    for i in range(tile.shape[0]):
        for j in range(start, tile.shape[1]):
            squared = row_norms[i] + column_norms[j] - 2.0 * tile[i, j]
            tile[i, j] = _exp(-rate * max(squared, 0.0))


@njit(**_LOOP)
def gaussian_from_points(
    points: FloatArray,
    transposed: FloatArray,
    start: int,
    offset: int,
    rate: float,
    out: FloatArray,
) -> None:
    """Fill out[:, start:] with exp(-rate · ‖xᵢ - xⱼ‖²); column j is point j + `offset`."""
    squared = np.empty(_CHUNK)
    for i in range(points.shape[0]):
        for first in range(start, out.shape[1], _CHUNK):
            size = min(_CHUNK, out.shape[1] - first)
            _squared_differences(points[i], transposed, offset + first, squared[:size])
            row = out[i]
            for j in range(size):
                row[first + j] = _exp(-rate * squared[j])


@njit(**_LOOP)
def collect_from_products(
    tile: FloatArray,
    row_norms: FloatArray,
    column_norms: FloatArray,
    shift: int,
    bracket: tuple[float, float],
    found: FloatArray,
) -> tuple[int, int]:
    """Count and collect the squared distances of a tile of inner products.

    Row i takes part from column i + `shift` on. Returns how many lie below the bracket, and
    how many in it; those are in `found`, which has one place more than the tile has entries.
    """
    n_below, n_found = 0, 0
    for i in range(tile.shape[0]):
        row = tile[i]
        begin = max(0, i + shift)
        for j in range(begin, tile.shape[1]):
            row[j] = max(row_norms[i] + column_norms[j] - 2.0 * row[j], 0.0)
        below, n_found = _collect(row[begin:], bracket[0], bracket[1], found, n_found)
        n_below += below
    return n_below, n_found


@njit(**_LOOP)
def collect_from_points(
    points: FloatArray,
    transposed: FloatArray,
    columns: tuple[int, int],
    shift: int,
    bracket: tuple[float, float],
    found: FloatArray,
) -> tuple[int, int]:
    """Do what `collect_from_products` does, straight from the points of these columns."""
    squared = np.empty(_CHUNK)
    n_below, n_found = 0, 0
    for i in range(points.shape[0]):
        for first in range(columns[0] + max(0, i + shift), columns[1], _CHUNK):
            part = squared[: min(_CHUNK, columns[1] - first)]
            _squared_differences(points[i], transposed, first, part)
            below, n_found = _collect(part, bracket[0], bracket[1], found, n_found)
            n_below += below
    return n_below, n_found
