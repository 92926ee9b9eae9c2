"""The kernel scale σ².

The default is twice the median of all squared distances. It is computed exactly, because LES
moves by 10-60 times the relative error of σ², more with larger K (docs/gamma_and_k.md): a median
over 200,000 random pairs, an error of half a percent, moves it by 0.05-0.3. Above 10⁹ pairs
(N = 44,721) it is estimated from that many, with a standard error (see `bandwidth_sampled`).
"""

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
from .bandwidth_sampled import PAIRS, median_of_many_points, reference_count, sampled_median
from .kernel import KernelSettings
from .pointcloud import Bracket, PointCloud, squared_norms

Pass: TypeAlias = Callable[[Bracket], "Within"]

_KEPT = 1 << 22  # values that one pass may keep, 32 MB
_SIGMAS = 4.0  # half width of the first bracket, in standard deviations of a sample quantile


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

    `data` are points in memory, passes over streamed rows, or squared distances, (N, N). A
    number as `bandwidth` is σ² itself. The mean takes O(N d) time. The median of points in
    memory takes O(N² d) time and about 100 MB; above 10⁹ pairs, and of streamed points, it is
    sampled. `rng` draws the sample; None is a fixed seed.
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
        duplicates = (
            "the median distance between points is 0, so half of all pairs or more are "
            "duplicates. Remove the duplicates, or give bandwidth='mean' or a number (σ² itself)."
        )
        equal = "all points are equal. There is nothing to compare; leave this dataset out."
        reason = equal if settings.bandwidth == "mean" or _mean(data) <= 0 else duplicates
        raise DegenerateDataError(f"bandwidth={settings.bandwidth!r} gives σ²=0: {reason}")
    return Scale(value, settings.bandwidth_factor * error)


def _mean(data: PointCloud | RowPasses | FloatArray) -> float:
    if isinstance(data, PointCloud):
        return data.mean_squared_distance()
    if isinstance(data, RowPasses):
        total: float = data.reduce(_square_sum, data.mean - data.centre, "mean distance")
        return 2.0 * total / data.source.n_rows
    return 2.0 * float(squareform(data, checks=False).sum()) / len(data) ** 2


def _square_sum(points: FloatArray, _start: int, mean: FloatArray) -> float:
    return float(squared_norms(points - mean).sum())


def _median(
    data: PointCloud | RowPasses | FloatArray, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the median and its standard error."""
    if isinstance(data, PointCloud):
        if data.n_samples * (data.n_samples - 1) // 2 <= PAIRS:
            return median_of_points(data), 0.0
        return median_of_many_points(data, rng)[:2]
    if isinstance(data, RowPasses):
        references = data.sample(reference_count(data.source.n_features), rng)
        reduce = partial(data.reduce, description="median distance")
        return sampled_median(reduce, references, data.source.n_rows, rng)[:2]
    positions, n_middle = _middle_positions(len(data))
    condensed = squareform(data, checks=False)
    if positions:
        condensed.partition(positions)
    return sum(float(condensed[p]) for p in positions) / n_middle, 0.0


def median_of_points(cloud: PointCloud) -> float:
    """Return the exact median of the N×N matrix of squared distances, in little memory.

    A random sample of pairs brackets the median. One pass over the tiles counts the pairs below
    the bracket and keeps those within it, among which the median is selected. A bracket that
    misses, or holds too many pairs, is moved and the pass repeated. O(N² d) time, about 100 MB.
    The seed is fixed; it affects the time, not the result.
    """
    positions, n_middle = _middle_positions(cloud.n_samples)
    return sum(_squares_at(cloud, positions)) / n_middle if positions else 0.0


def median_distance(cloud: PointCloud) -> float:
    """Return the exact median of ‖xᵢ - xⱼ‖ over all pairs i < j, without the zero diagonal.

    O(N² d) time, about 100 MB; see `median_of_points`.
    """
    n_pairs = cloud.n_samples * (cloud.n_samples - 1) // 2
    if not n_pairs:
        return 0.0
    positions = sorted({(n_pairs - 1) // 2, n_pairs // 2})
    return sum(map(math.sqrt, _squares_at(cloud, positions))) / len(positions)


def _middle_positions(n_samples: int) -> tuple[list[int], int]:
    """Return the positions of the middle values of the N×N matrix among the sorted pairs i < j.

    The zero diagonal is included, as in the authors' code: N zeros come first in the sorted
    matrix, then every off-diagonal value twice. An even number of entries has two middle
    values, an odd one has one (the second number returned); those on the diagonal have no
    position.
    """
    total = n_samples * n_samples
    ranks = sorted({(total - 1) // 2, total // 2})
    return [(rank - n_samples) // 2 for rank in ranks if rank >= n_samples], len(ranks)


def _squares_at(cloud: PointCloud, positions: list[int]) -> list[float]:
    """Return the squared distances at these positions of the sorted pairs i < j."""
    few = cloud.sample_of_squared_distances(1000, np.random.default_rng(0))
    cloud.keep_digits(float(np.median(few)))
    with Workers() as workers:
        one_pass = partial(_count_and_keep, cloud, workers)
        found = _select(one_pass, _first_bracket(cloud, positions), positions)
        if not cloud.by_differences:  # a median far below the sample's may be cancellation
            cloud.keep_digits(found[0])
            if cloud.by_differences:
                found = _select(one_pass, _first_bracket(cloud, positions), positions)
    return found


def _first_bracket(cloud: PointCloud, positions: list[int]) -> Bracket:
    """Return an interval that holds the values at `positions` with high probability."""
    n_pairs = cloud.n_samples * (cloud.n_samples - 1) // 2
    if cloud.n_samples <= 1000:  # half a million values can be kept
        return 0.0, math.inf
    # Enough pairs for the bracket to hold about _KEPT / 2 values, in less time than the pass.
    wanted = int((2.0 * _SIGMAS * n_pairs / _KEPT) ** 2)
    usual = min(2**24 // max(cloud.n_features, 256), n_pairs // 512)
    size = min(max(wanted, usual), 2**25)
    sample = cloud.sample_of_squared_distances(size, np.random.default_rng(0))
    return _around(sample, (positions[0] / n_pairs, positions[-1] / n_pairs), (0.0, math.inf))


def _around(values: FloatArray, shares: tuple[float, float], outer: Bracket) -> Bracket:
    """Return the sorted values a few standard deviations around these quantiles, or `outer`.

    Rounding separates ties, so the bracket is a little wider than that.
    """
    margin = _SIGMAS * 0.5 * math.sqrt(values.size) + 1
    low = math.floor(shares[0] * values.size - margin)
    high = math.ceil(shares[1] * values.size + margin)
    return (
        float(values[low]) * (1.0 - 4e-15) if low >= 0 else outer[0],
        float(values[high]) * (1.0 + 4e-15) if high < values.size else outer[1],
    )


class Within(NamedTuple):
    """The pairs within a bracket: their number, their range, and all or some of their values."""

    n_below: int
    n_within: int
    lowest: float
    highest: float
    values: FloatArray


def _count_and_keep(cloud: PointCloud, workers: Workers, bracket: Bracket) -> Within:
    """Return the pairs within the bracket: all if there are at most `_KEPT`, else a sample."""
    n_below, n_within, lowest, highest = 0, 0, math.inf, 0.0
    kept, step, rng = [np.empty(0)], 1, np.random.default_rng(0)
    width = cloud.tile_rows * (1 if cloud.is_sparse else 4)
    scratch = np.empty(min(cloud.tile_rows, cloud.n_samples) * min(width, cloud.n_samples))
    for rows in cloud.slices():
        for columns in cloud.slices(rows.start, width=width):
            below, parts = cloud.collect(rows, columns, bracket, workers, scratch)
            n_below += below
            for values in parts:
                n_within += values.size
                lowest = min(lowest, float(values.min(initial=math.inf)))
                highest = max(highest, float(values.max(initial=0.0)))
                kept.append(_thinned(values, step, rng))
            while sum(values.size for values in kept) > _KEPT:
                kept, step = [_thinned(np.concatenate(kept), 2, rng)], 2 * step
    return Within(n_below, n_within, lowest, highest, np.concatenate(kept))


def _thinned(values: FloatArray, step: int, rng: np.random.Generator) -> FloatArray:
    """Return a random one of every `step` values: sorted and periodic ones are sampled evenly."""
    if step == 1:
        return values
    places = np.arange(0, values.size, step)
    places += rng.integers(step, size=places.size)
    return values[places[places < values.size]]


def _select(
    one_pass: Pass, bracket: Bracket, positions: list[int], bounds: Bracket = (0.0, math.inf)
) -> list[float]:
    """Return the values at these positions of the sorted pairs, which passes count.

    The bracket moves between two bounds that enclose the answer and become tighter with every
    pass that fails, so this terminates.
    """
    floor, ceiling = bounds
    while True:
        found = one_pass(bracket)
        inside = [position - found.n_below for position in positions]
        if inside[0] < 0:
            ceiling = bracket[0]
            bracket = floor, ceiling
        elif inside[-1] >= found.n_within:
            floor = bracket[1]
            bracket = floor, ceiling
        elif found.values.size == found.n_within:
            found.values.partition(inside)
            return [float(found.values[p]) for p in inside]
        elif found.highest - found.lowest <= 1e-14 * found.lowest:
            # Ties (integers, counts) up to rounding: any of them is the median.
            return [found.lowest] * len(positions)
        else:
            bounds = floor, ceiling = found.lowest, found.highest
            narrowed = [_narrowed(found, place / found.n_within) for place in inside]
            if len(positions) == 1:
                bracket = narrowed[0]
            else:  # the two positions may enclose a gap: one by one
                both = zip(narrowed, positions, strict=True)
                return [_select(one_pass, near, [at], bounds)[0] for near, at in both]


def _narrowed(found: Within, share: float) -> Bracket:
    """Return a smaller bracket from a sample of the values; it may miss."""
    found.values.sort()
    low, high = _around(found.values, (share, share), (found.lowest, found.highest))
    if low > found.lowest or high < found.highest:
        return max(low, found.lowest), min(high, found.highest)
    # Ties at both ends: the lower ones only. A miss excludes them.
    return found.lowest, float(np.nextafter(found.lowest * (1.0 + 4e-15), math.inf))
