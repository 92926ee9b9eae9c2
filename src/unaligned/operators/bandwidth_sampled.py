"""The median squared distance estimated from a sample of pairs, with its standard error."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import cached_property
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._check import FloatArray, IndexArray
from ..engine.threads import Workers
from ..rows.reduce import Work, numbers_from, over_blocks
from .kernel import loops_for
from .pointcloud import Bracket, PointCloud, padded, squared_distances_of_pairs, squared_norms

# Sums a function of chunks of rows, and of a shared value, over all rows.
Reduce: TypeAlias = Callable[[Callable[[FloatArray, int, Any], Any], Any], Any]

# Pairs of rows with references; fewer pairs in all are not sampled. With the pairs among the
# references (5·10⁸) the share of pairs below the median is known to 4e-5, σ² to about 1e-4 and
# LES to 0.004.
PAIRS = 1_000_000_000
REFERENCES = 32_768  # rows; fewer where they take more than 64 MiB, but at least 4096
_BINS = 4096  # of a bracket; also the number of sums of squares: a standard error to 1 %


class MedianEstimate(NamedTuple):
    """A median, its standard error, and the number of pairs it is based on."""

    value: float
    standard_error: float
    n_pairs: int


def reference_count(n_features: int) -> int:
    """Return the number of references: 32,768, or what 64 MiB hold, at least 4096."""
    fitting = (1 << 26) // (8 * max(n_features, 1))
    return int(min(REFERENCES, max(fitting, 4096)))


def sampled_median(
    reduce: Reduce,
    references: FloatArray,
    n_rows: int,
    rng: np.random.Generator,
    n_pairs: int = PAIRS,
    *,
    margins: tuple[float, ...] = (0.015, 0.15, 0.5),
    n_narrowings: int = 6,
) -> MedianEstimate:
    r"""Return the median of the N×N matrix of squared distances from a sample of pairs.

    With n random rows as references, let :math:`F_{NR}(t)` be the share of pairs (row,
    reference) below t, each row with its own random references, and :math:`F_{RR}(t)` that
    of the pairs among the references. The choice of references shifts the first by some a
    and the second by 2a (Hoeffding's decomposition), so

    .. math:: F(t) = 2 F_{NR}(t) - F_{RR}(t)

    is free of it. What remains are uncorrelated terms, one per pair, with

    .. math:: \mathrm{se}(F)^2 = 4 \widehat{\mathrm{Var}}(F_{NR}) + \tfrac{1}{2 n^2},
              \qquad \widehat{\mathrm{Var}}(F_{NR})
              = \frac{1}{4 N^2} \sum_i (y_{i1} - y_{i2})^2 ,

    the first from two windows of references per row, the second the largest variance of n²/2
    uncorrelated terms. The median lies between the values where F is 1/2 ∓ 2 se(F) with 95 %
    confidence. The estimate is the middle of these, and its standard error a quarter of their
    distance: se(F)/F' where F is smooth. If the median falls in a gap, as between two balanced
    clusters, that is the middle of the gap, and twice the standard error reaches its ends.

    The windows of a row depend on its position only, so the estimate does not depend on blocks.
    One pass over the rows as a rule, at most nine. O((n_pairs + n²/2) d) time: 1.5·10⁹ pairs in
    4 dimensions take 3.5 s of one core. Memory: one block and the references.

    Parameters
    ----------
    reduce
        A pass over all rows, centred: sums a function of chunks of them (see `rows.reduce`).
    references
        Shape (n, d): rows drawn without replacement, in random order.
    n_rows
        N.
    rng
        Draws the references of each row.
    n_pairs
        The number of pairs of rows and references.
    margins
        Half widths of the bracket around the median to try in turn, as shares of the pairs.
    n_narrowings
        How often a bracket whose bins are too wide is narrowed, a few hundred times each.
    """
    pairs = ReferencePairs(references, n_rows, rng, n_pairs)
    if pairs.middle == 0.0:  # far more than half of all pairs are duplicates
        return MedianEstimate(0.0, 0.0, pairs.sample.size)
    with Workers() as workers:
        for margin in margins:
            found = pairs.distribution(reduce, pairs.bracket(margin), workers)
            if found.holds_median:
                break
        for _ in range(n_narrowings):
            if found.is_fine(pairs.middle):
                break
            # One bin more on either side: rounding may move an edge.
            first, last = found.bins
            found = pairs.distribution(reduce, found.edges(first - 1, last + 1), workers)
    low, high = found.edges(*found.bins)
    if low <= 0.0 and high <= 1e-9 * pairs.middle:  # nearer pairs are duplicates
        return MedianEstimate(0.0, 0.0, found.n_pairs)
    value = 0.5 * (low + high)
    # Rounding separates ties.
    error = max((high - low) / 4.0, 1e-13 * value, pairs.rounding)
    return MedianEstimate(value, error, found.n_pairs)


def median_of_many_points(
    cloud: PointCloud, rng: np.random.Generator, n_pairs: int = PAIRS
) -> MedianEstimate:
    """Return the sampled median of points in memory; see `sampled_median`."""
    count = min(reference_count(cloud.n_features), cloud.n_samples)
    chosen = rng.choice(cloud.n_samples, size=count, replace=False)

    def reduce(function: Work[Tally], shared: Any) -> Tally:
        slices = cloud.slices(width=1 << 16 if not cloud.is_sparse else None)
        return over_blocks(map(cloud.dense_rows, slices), function, shared)

    return sampled_median(reduce, cloud.dense_rows(chosen), cloud.n_samples, rng, n_pairs)


class Tally(NamedTuple):
    """Counts of values: below a bracket, in each of its bins, and in all.

    `differences` are the counts below the middle in the first of two windows minus those in the
    second, summed over rows into 4096 independent sums.
    """

    below: int
    bins: IndexArray
    total: int
    differences: IndexArray

    def __add__(self, other: Tally) -> Tally:  # type: ignore[override]
        """Return the tally of the values of both."""
        return Tally(*map(add, self, other))

    def cumulative(self) -> FloatArray:
        """Return the share of values up to each edge of the bins, (n_bins + 1,)."""
        counts = np.concatenate([[0], np.cumsum(self.bins)]) + self.below
        return np.asarray(counts / self.total, dtype=np.float64)


class Distribution(NamedTuple):
    """F at the edges of the bins of a bracket, with its standard error."""

    bracket: Bracket
    shares: FloatArray  # (n_bins + 1,), rising
    standard_error: float
    n_pairs: int

    @property
    def holds_median(self) -> bool:
        """Whether the bracket holds the median in spite of the noise."""
        reach = 2.0 * self.standard_error
        return bool(self.shares[0] <= 0.5 - reach and self.shares[-1] >= 0.5 + reach)

    @property
    def bins(self) -> tuple[int, int]:
        """The edges between which the median lies with 95 % confidence."""
        reach = 2.0 * self.standard_error
        low = int(np.searchsorted(self.shares, 0.5 - reach, side="right")) - 1
        high = int(np.searchsorted(self.shares, 0.5 + reach, side="left"))
        return max(low, 0), min(high, self.shares.size - 1)

    def edges(self, *places: int) -> Bracket:
        """Return the values at two edges."""
        (low, high), last = self.bracket, self.shares.size - 1
        first, second = (low + (high - low) * min(max(p, 0), last) / last for p in places)
        return float(first), float(second)

    def is_fine(self, scale: float) -> bool:
        """Whether smaller bins give no more: many hold the median, or only ties do."""
        first, last = self.bins
        low, high = self.edges(first, last)
        width = (self.bracket[1] - self.bracket[0]) / (self.shares.size - 1)
        return last - first >= 8 or width <= 1e-5 * low or high <= 1e-9 * scale


class ReferencePairs:
    """Pairs of rows with references, and of references with each other.

    Up to 32 features each row has a window of references of its own in a compiled loop. With more
    features a matrix product is faster, unless cancellation shows in it: tiles of 32 rows share
    their windows, each row 32 apart from the next, as neighbours in a file are often alike.

    Parameters
    ----------
    references
        Shape (n, d), in random order.
    n_rows
        N, the number of rows.
    rng
        Draws the references of each row.
    n_pairs
        The number of pairs of rows and references: two windows of n_pairs / 2 N each per row.
    """

    def __init__(
        self, references: FloatArray, n_rows: int, rng: np.random.Generator, n_pairs: int
    ) -> None:
        # Whole groups only, so that all references have equally many partners.
        self.group = max(1, references.shape[0] // 64)
        self.n_rows = n_rows
        self.n_references = references.shape[0] // self.group * self.group
        self.references = references[: self.n_references]
        self.norms = squared_norms(self.references)
        self.seed = int(rng.integers(2**63))  # of the windows
        self.width = int(min(max(1, round(n_pairs / n_rows / 2)), self.n_references))
        first, second = rng.integers(
            self.n_references, size=(2, min(2**19, 64 * self.n_references))
        )
        apart = first != second
        squared = squared_distances_of_pairs(self.references, first[apart], second[apart])
        self.sample = np.sort(squared)
        # Between values rather than on one: where half of them are ties, it separates them.
        low, high = np.quantile(self.sample, [0.4, 0.6])
        self.middle = float(low + high) / 2.0
        # Of a squared distance by products; 2¹⁶ eps of the median moves LES by less than 1e-9.
        self.rounding = 4.0 * float(np.finfo(np.float64).eps * self.norms.max())
        self.own_windows = references.shape[1] <= 32 or self.rounding > 2.0**-36 * low
        if self.own_windows:
            self.rounding = 0.0

    @cached_property
    def _transposed(self) -> FloatArray:
        """The references as columns, the first ones again at the end: windows wrap."""
        wide = padded(self.references)
        return np.ascontiguousarray(np.vstack([wide, wide[: self.width]]).T)

    @cached_property
    def _wrapped(self) -> tuple[FloatArray, FloatArray]:
        """The references and their norms, the first ones again at the end."""
        first = slice(0, self.width)
        return (
            np.vstack([self.references, self.references[first]]),
            np.concatenate([self.norms, self.norms[first]]),
        )

    def bracket(self, margin: float) -> Bracket:
        """Return an interval around the median: all values, where the margin is a half."""
        peak = 4.0 * float(self.norms.max()) + np.finfo(np.float64).tiny
        if margin >= 0.5:
            return 0.0, 1e3 * peak
        low, high = np.quantile(self.sample, [0.5 - margin, 0.5 + margin])
        # Ties have no width, except for rounding.
        return float(low) * (1 - 1e-12), float(high) * (1 + 1e-12) + 1e-14 * peak

    def distribution(self, reduce: Reduce, bracket: Bracket, workers: Workers) -> Distribution:
        """Return F within a bracket: one pass over all rows, and one over the references."""
        among = self._among(bracket, workers)
        across: Tally = reduce(_tally_rows, (self, bracket))
        # A row may be its own reference, as the matrix has its zero diagonal.
        diagonal = 1.0 / self.n_rows
        shares = 2.0 * across.cumulative() - (diagonal + (1.0 - diagonal) * among.cumulative())
        # Noise makes a difference of counts fall; the mean of its hulls rises.
        above, below = np.maximum.accumulate(shares), np.minimum.accumulate(shares[::-1])[::-1]
        variance = float(np.square(across.differences / across.total, dtype=np.float64).sum())
        error = math.sqrt(4.0 * variance + 0.5 / self.n_references**2)
        return Distribution(bracket, 0.5 * (above + below), error, across.total + among.total)

    def _among(self, bracket: Bracket, workers: Workers) -> Tally:
        """Tally the pairs of references of different groups."""
        n, group = self.n_references, self.group
        parts = []
        for stop in range(group, n, group):
            rows = self.references[stop - group : stop]
            if self.own_windows:
                windows = np.full(group, stop), np.full(group, n)
                parts.append(self._tally_windows(rows, [windows], bracket, workers))
            else:
                one = np.zeros(1, dtype=np.int64)
                parts.append(self._tally_tiles(rows, one, [[slice(stop, n)]], bracket, workers))
        return functools.reduce(add, parts)

    def across(self, rows: FloatArray, start: int, bracket: Bracket) -> Tally:
        """Tally rows with their two windows of references; `start` is the first one's position."""
        places, alone = np.arange(start, start + rows.shape[0]), Workers(1)
        if self.own_windows:
            windows = [(begin, begin + self.width) for begin in self._starts(places)]
            return self._tally_windows(rows, windows, bracket, alone, places)
        # A tile depends on positions only, and so not on how rows are cut into chunks.
        tiles = places // 32**2 * 32 + places % 32
        order = np.argsort(tiles, kind="stable")
        units, begins = np.unique(tiles[order], return_index=True)
        columns = [[slice(a, a + self.width) for a in begin] for begin in self._starts(units)]
        return self._tally_tiles(rows[order], begins, columns, bracket, alone, units)

    def _starts(self, units: IndexArray) -> IndexArray:
        """Return where both windows of rows or tiles begin, given their positions, (2, n)."""
        first = int(units[0])
        numbers = numbers_from(self.seed, 2 * first, 2 * (int(units[-1]) - first + 1))
        both = numbers.reshape(-1, 2)[units - first].T
        starts: IndexArray = (both * self.n_references).astype(np.int64)
        return starts

    def _tally_windows(
        self,
        rows: FloatArray,
        windows: list[tuple[IndexArray, IndexArray]],
        bracket: Bracket,
        workers: Workers,
        units: IndexArray | None = None,
    ) -> Tally:
        """Tally rows that each have windows of their own."""
        loops, points = loops_for(None), padded(rows)
        halves = np.empty((len(windows), rows.shape[0]), dtype=np.int64)

        def task(part: slice) -> tuple[int, IndexArray]:
            bins, below = np.zeros(_BINS, dtype=np.int64), 0
            for half, (starts, stops) in zip(halves, windows, strict=True):
                window = starts[part], stops[part]
                below += loops.tally_windows(
                    points[part], self._transposed, window, bracket, self.middle, bins, half[part]
                )
            return below, bins

        found = workers.over_rows(rows.shape[0], task)
        total = sum(int((stops - starts).sum()) for starts, stops in windows)
        return _joined(found, total, halves, units)

    def _tally_tiles(
        self,
        rows: FloatArray,
        begins: IndexArray,
        columns: list[list[slice]],
        bracket: Bracket,
        workers: Workers,
        units: IndexArray | None = None,
    ) -> Tally:
        """Tally rows that share their windows with the other rows of their tile."""
        loops, (references, norms) = loops_for(None), self._wrapped
        row_norms, ends = squared_norms(rows), np.append(begins, rows.shape[0])
        halves = np.empty((len(columns), rows.shape[0]), dtype=np.int64)

        def task(tiles: slice) -> tuple[int, IndexArray]:
            bins, below = np.zeros(_BINS, dtype=np.int64), 0
            for t in range(tiles.start, tiles.stop):
                part = slice(ends[t], ends[t + 1])
                for half, of_tile in zip(halves, columns, strict=True):
                    column = of_tile[t]
                    tile, column_norms = rows[part] @ references[column].T, norms[column]
                    below += loops.tally_products(
                        tile, row_norms[part], column_norms, bracket, self.middle, bins, half[part]
                    )
            return below, bins

        found = workers.over_rows(begins.size, task)
        widths = [np.array([c.stop - c.start for c in of_tile]) for of_tile in columns]
        total = sum(int(np.diff(ends) @ width) for width in widths)
        return _joined(found, total, np.add.reduceat(halves, begins, axis=1), units)


def _joined(
    found: list[tuple[int, IndexArray]],
    total: int,
    halves: IndexArray,
    units: IndexArray | None,
) -> Tally:
    """Return the sum of what the threads found; with two windows, also how they differ."""
    below = sum(part for part, _ in found)
    bins = np.sum([part for _, part in found], axis=0)
    differences = np.zeros(_BINS, dtype=np.int64)
    if units is not None:
        np.add.at(differences, units % _BINS, halves[0] - halves[1])
    return Tally(below, bins, total, differences)


def _tally_rows(rows: FloatArray, start: int, shared: tuple[ReferencePairs, Bracket]) -> Tally:
    pairs, bracket = shared
    return pairs.across(rows, start, bracket)
