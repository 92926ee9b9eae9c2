r"""Rules for the kernel scale σ².

The default is twice the median of all squared distances. It is worked out exactly, because
LES moves by 30-45 times the relative error of σ²: a median over 200,000 random pairs, an error
of half a percent, moves LES by 0.1-0.4 from seed to seed. Above `EXACT_PAIRS` pairs it is
estimated from 10⁹ of them instead (see `sampling`), and comes with its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.spatial.distance import squareform

from .._check import FloatArray
from ..engine.threads import Workers
from ..errors import DegenerateDataError
from ..rows.reduce import RowPasses
from .bandwidth_sampled import median_of_many_points, reference_count, sampled_median
from .kernel import KernelSettings
from .pointcloud import Bracket, PointCloud, squared_norms

Pass: TypeAlias = Callable[[Bracket], tuple[int, int, FloatArray]]

# Up to so many pairs (N = 44,721) the median is exact: the sampled one works through as many.
EXACT_PAIRS = 1_000_000_000

_WHOLE = 1000  # up to here all pairs are kept: half a million values
_KEPT = 1 << 22  # values that one pass may keep, 32 MB
_SIGMAS = 4.0  # half width of the first bracket, in standard deviations of a sample quantile
_GLANCE = 1000  # pairs that tell the order of magnitude
_COLLECT_WIDTH = 4096  # columns of a tile that only counts


class Scale(NamedTuple):
    """σ² and its standard error, 0 where it is exact."""

    sigma_squared: float
    standard_error: float = 0.0


def estimate_scale(
    data: PointCloud | RowPasses | FloatArray,
    settings: KernelSettings,
    rng: np.random.Generator | None = None,
) -> Scale:
    """Return σ² = bandwidth_factor · median (or mean) of the squared distances of all pairs.

    A number as `bandwidth` is σ² itself. The mean takes O(N d) time. The median of points in
    memory takes O(N² d) time and about 100 MB; above `EXACT_PAIRS` pairs, and of streamed
    points, it is sampled.

    Parameters
    ----------
    data
        Points in memory, passes over streamed rows, or squared distances, (N, N).
    settings
        Give `bandwidth` and `bandwidth_factor`.
    rng
        Draws the sample; None is a fixed seed.

    Examples
    --------
    >>> estimate_scale(PointCloud(np.array([[0.0], [1.0], [3.0]])), KernelSettings())
    Scale(sigma_squared=2.0, standard_error=0.0)
    """
    if not isinstance(settings.bandwidth, str):
        return Scale(float(settings.bandwidth))
    rng = np.random.default_rng(0) if rng is None else rng
    if settings.bandwidth == "mean":
        value, error = _mean(data), 0.0
    else:
        value, error = _median(data, rng)
    value *= settings.bandwidth_factor
    if not np.isfinite(value):
        raise DegenerateDataError(
            f"bandwidth={settings.bandwidth!r} gives σ²={value}: the squared distances between "
            "points overflow. Rescale the data: the distance does not depend on the unit."
        )
    if value <= 0:
        raise DegenerateDataError(_why_zero(settings.bandwidth))
    return Scale(value, settings.bandwidth_factor * error)


def _mean(data: PointCloud | RowPasses | FloatArray) -> float:
    if isinstance(data, PointCloud):
        return data.mean_squared_distance()
    if isinstance(data, RowPasses):
        total: float = data.reduce(_square_sum, None, "mean distance")
        return 2.0 * total / data.source.n_rows
    return 2.0 * float(squareform(data, checks=False).sum()) / len(data) ** 2


def _square_sum(points: FloatArray, _start: int, _shared: None) -> float:
    return float(squared_norms(points).sum())


def _median(
    data: PointCloud | RowPasses | FloatArray, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the median and its standard error."""
    if isinstance(data, PointCloud):
        if data.n_samples * (data.n_samples - 1) // 2 <= EXACT_PAIRS:
            return median_of_points(data), 0.0
        return median_of_many_points(data, rng)[:2]
    if isinstance(data, RowPasses):
        references = data.sample(reference_count(data.source.n_features), rng)
        reduce = partial(data.reduce, description="median distance")
        return sampled_median(reduce, references, data.source.n_rows, rng)[:2]
    return median_of_all_pairs(squareform(data, checks=False), len(data)), 0.0


def median_of_all_pairs(condensed: FloatArray, n_samples: int) -> float:
    """Return the median of the N×N matrix whose upper triangle is `condensed`.

    The zero diagonal is included, as in the authors' code: N zeros come first in the sorted
    matrix, then every off-diagonal value twice. `condensed`, (N(N-1)/2,), is reordered in
    place; O(N²) time, no copy.

    Examples
    --------
    >>> median_of_all_pairs(np.array([1.0, 4.0, 9.0]), 3)
    1.0
    """
    positions, n_middle = _middle_positions(n_samples)
    if positions:
        condensed.partition(positions)
    return sum(float(condensed[p]) for p in positions) / n_middle


def median_of_points(cloud: PointCloud) -> float:
    """Return the median of the N×N matrix of squared distances, exactly, in little memory.

    A random sample of pairs brackets the median; one pass over the tiles counts the pairs
    below the bracket and keeps those within it, among which the median is then selected. A
    bracket that misses, or that holds too many, is moved and the pass repeated. O(N² d) time,
    about 100 MB.

    The seed is fixed: it decides how long this takes, never what comes out.

    Examples
    --------
    >>> median_of_points(PointCloud(np.array([[0.0], [1.0], [3.0]])))
    1.0
    """
    positions, n_middle = _middle_positions(cloud.n_samples)
    if not positions:
        return 0.0
    return sum(_squares_at(cloud, positions)) / n_middle


def median_distance(cloud: PointCloud) -> float:
    """Return the median of ‖xᵢ - xⱼ‖ over all pairs i < j, exactly, in little memory.

    The textbooks' median, without the zero diagonal; the passes are those of
    `median_of_points`. O(N² d) time, about 100 MB.

    Examples
    --------
    >>> median_distance(PointCloud(np.array([[0.0], [1.0], [3.0]])))
    2.0
    """
    n_pairs = cloud.n_samples * (cloud.n_samples - 1) // 2
    if not n_pairs:
        return 0.0
    positions = sorted({(n_pairs - 1) // 2, n_pairs // 2})
    return sum(map(math.sqrt, _squares_at(cloud, positions))) / len(positions)


def _squares_at(cloud: PointCloud, positions: list[int]) -> list[float]:
    """Return the squared distances at these positions of the sorted pairs i < j."""
    few = cloud.sample_of_squared_distances(_GLANCE, np.random.default_rng(0))
    cloud.keep_digits(float(np.median(few)))
    with Workers() as workers:

        def one_pass(bracket: Bracket) -> tuple[int, int, FloatArray]:
            return _count_and_keep(cloud, bracket, workers)

        return _select(one_pass, _first_bracket(cloud, positions), positions)


def _middle_positions(n_samples: int) -> tuple[list[int], int]:
    """Return where the middle values of the N×N matrix stand among the sorted pairs i < j.

    An even number of entries has two middle values, an odd one has one (the second number
    returned); those that fall on the zero diagonal have no position.
    """
    total = n_samples * n_samples
    ranks = sorted({(total - 1) // 2, total // 2})
    return [(rank - n_samples) // 2 for rank in ranks if rank >= n_samples], len(ranks)


def _first_bracket(cloud: PointCloud, positions: list[int]) -> Bracket:
    """Return an interval that holds the values at `positions`, almost surely."""
    n_pairs = cloud.n_samples * (cloud.n_samples - 1) // 2
    if cloud.n_samples <= _WHOLE:
        return 0.0, math.inf
    # Enough pairs for the bracket to hold about _KEPT / 2 values, but no dearer than the pass.
    wanted = int((2.0 * _SIGMAS * n_pairs / _KEPT) ** 2)
    size = min(max(wanted, 2**24 // max(cloud.n_features, 256)), 2**25)
    sample = cloud.sample_of_squared_distances(size, np.random.default_rng(0))
    return _around(sample, (positions[0] / n_pairs, positions[-1] / n_pairs), (0.0, math.inf))


def _around(values: FloatArray, shares: tuple[float, float], outer: Bracket) -> Bracket:
    """Return the sorted values a few standard deviations around these quantiles, or `outer`."""
    margin = _SIGMAS * 0.5 * math.sqrt(values.size) + 1
    low = math.floor(shares[0] * values.size - margin)
    high = math.ceil(shares[1] * values.size + margin)
    return (
        float(values[low]) if low >= 0 else outer[0],
        float(values[high]) if high < values.size else outer[1],
    )


def _count_and_keep(
    cloud: PointCloud, bracket: Bracket, workers: Workers
) -> tuple[int, int, FloatArray]:
    """Return how many pairs lie below the bracket, how many within, and values from within.

    The values are all of them as long as there are at most `_KEPT`.
    """
    n_below, n_within = 0, 0
    kept: list[FloatArray] = []
    width = cloud.tile_rows if cloud.is_sparse else _COLLECT_WIDTH
    scratch = np.empty(min(cloud.tile_rows, cloud.n_samples) * min(width, cloud.n_samples))
    for rows in cloud.slices():
        for columns in cloud.slices(rows.start, width=width):
            below, values = cloud.collect(rows, columns, bracket, workers, scratch)
            n_below += below
            if n_within <= _KEPT:
                kept += values
            n_within += sum(part.size for part in values)
    return n_below, n_within, np.concatenate(kept)


def _select(one_pass: Pass, bracket: Bracket, positions: list[int]) -> list[float]:
    """Return the values at these positions of the sorted pairs, which passes can count.

    The bracket moves between two bounds that are known to hold the answer, and the bounds
    close with every pass that fails, so this ends.
    """
    floor, ceiling = 0.0, math.inf
    while True:
        n_below, n_within, values = one_pass(bracket)
        inside = [position - n_below for position in positions]
        if inside[0] < 0:
            ceiling = bracket[0]
            bracket = floor, ceiling
        elif inside[-1] >= n_within:
            floor = bracket[1]
            bracket = floor, ceiling
        elif values.size == n_within:
            values.partition(inside)
            return [float(values[p]) for p in inside]
        elif len(positions) > 1:
            # Too many to keep. Two positions may stand on two sides of a gap: one by one.
            return [_select(one_pass, bracket, [position])[0] for position in positions]
        elif np.ptp(values) <= 1e-14 * values[0]:
            # Ties (integers, counts), apart by rounding at most: any of them is the median.
            return [float(values[0])]
        else:
            floor, ceiling = bracket
            bracket = _narrowed(values, inside[0] / n_within, bracket)


def _narrowed(values: FloatArray, share: float, bracket: Bracket) -> Bracket:
    """Return a smaller bracket, from some of the values in it; it may miss."""
    values.sort()
    low, high = _around(values, (share, share), bracket)
    if low > values[0]:
        return low, high
    # Ties at the low end, such as duplicates: they alone, or all but they. A miss says which.
    beyond = float(np.nextafter(values[0] * (1.0 + 5e-15), math.inf))
    return (beyond, high) if high > beyond else (bracket[0], beyond)


def _why_zero(bandwidth: str) -> str:
    if bandwidth == "mean":
        return (
            "bandwidth='mean' gives σ²=0: all points are equal. There is nothing to compare; "
            "leave this dataset out."
        )
    return (
        "bandwidth='median' gives σ²=0: the median distance between points is 0, so half of "
        "all pairs or more are duplicates. Remove the duplicates, or give bandwidth='mean' "
        "or a number (σ² itself)."
    )
