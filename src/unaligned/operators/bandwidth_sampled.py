r"""The median squared distance of more points than pairs can be counted, with its error.

LES moves by 30-45 times the relative error of σ², so a sample of pairs must be large and must
know how good it is.
"""

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
from .pointcloud import Bracket, PointCloud, padded, squared_distances_of_pairs, squared_norms

# Adds up a function of pieces of rows, and of what all share, over all rows.
Reduce: TypeAlias = Callable[[Callable[[FloatArray, int, Any], Any], Any], Any]

# Up to here each row has a window of its own in a compiled loop; with more features a matrix
# product is faster by more than it loses when the rows of one tile are alike.
_OWN_WINDOWS = 32
# Tiles of 32 rows, each 32 apart from the next: neighbours in a file are often alike.
_TILE = 32
_BINS = 4096
_SUMS = 4096  # of differences: so many squares give a standard error to 1 %


class Tally(NamedTuple):
    """How many values lie below a bracket, in its bins, and in all.

    And how many more lie below the middle in the first of two windows than in the second: the
    rows that share their windows are in one sum, and different windows are independent.
    """

    below: int
    bins: IndexArray
    total: int
    differences: IndexArray  # (_SUMS,)

    def __add__(self, other: Tally) -> Tally:  # type: ignore[override]
        """Return the tally of the values of both."""
        return Tally(*map(add, self, other))

    def cumulative(self) -> FloatArray:
        """Return the share of values up to each edge of the bins, (n_bins + 1,)."""
        counts = np.concatenate([[0], np.cumsum(self.bins)]) + self.below
        return np.asarray(counts / self.total, dtype=np.float64)

    def variance(self) -> float:
        """Return the variance of a share, from how two windows of references differ."""
        return float(np.square(self.differences / self.total, dtype=np.float64).sum())


class Meeting:
    """Rows that meet references, and references that meet each other.

    Parameters
    ----------
    references
        Shape (n, d), in random order.
    n_rows
        N, how many rows there are to meet them.
    rng
        Draws which references a row meets.
    n_pairs
        How many pairs of rows and references in all: two windows of n_pairs / 2 N each a row.
    """

    def __init__(
        self, references: FloatArray, n_rows: int, rng: np.random.Generator, n_pairs: int
    ) -> None:
        # Whole groups only: all references then meet equally many others.
        self.group = max(1, references.shape[0] // 64)
        self.n_rows = n_rows
        self.n_references = references.shape[0] // self.group * self.group
        self.references = references[: self.n_references]
        self.norms = squared_norms(self.references)
        self.seed = int(rng.integers(2**63))  # of the windows
        self.own_windows = references.shape[1] <= _OWN_WINDOWS
        self.width = int(min(max(1, round(n_pairs / n_rows / 2)), self.n_references))
        self.sample = self._sample(rng)
        # Between the values, not on one: where half of them are ties, both sides are told apart.
        self.middle = float(np.quantile(self.sample, [0.4, 0.6]).mean())

    @cached_property
    def transposed(self) -> FloatArray:
        """The references column by column, the first ones again at the end: windows wrap."""
        wide = padded(self.references)
        return np.ascontiguousarray(np.vstack([wide, wide[: self.width]]).T)

    @cached_property
    def wrapped(self) -> tuple[FloatArray, FloatArray]:
        """The references and their norms, the first ones again at the end."""
        first = slice(0, self.width)
        return (
            np.vstack([self.references, self.references[first]]),
            np.concatenate([self.norms, self.norms[first]]),
        )

    def _sample(self, rng: np.random.Generator) -> FloatArray:
        """Return the squared distances of random pairs of references, sorted."""
        size = min(2**19, 64 * self.n_references)
        one, other = rng.integers(self.n_references, size=(2, size))
        apart = one != other
        return np.sort(squared_distances_of_pairs(self.references, one[apart], other[apart]))

    def bracket(self, margin: float) -> Bracket:
        """Return an interval around the median: all values, where the margin is a half."""
        peak = 4.0 * float(self.norms.max()) + np.finfo(np.float64).tiny
        if margin >= 0.5:
            return 0.0, 1e3 * peak
        low, high = np.quantile(self.sample, [0.5 - margin, 0.5 + margin])
        # Ties leave no width; rounding may set them apart by this much.
        return float(low) * (1 - 1e-12), float(high) * (1 + 1e-12) + 1e-14 * peak

    def among(self, bracket: Bracket, workers: Workers) -> Tally:
        """Tally the pairs of references of different groups."""
        n, group = self.n_references, self.group
        parts = []
        for start in range(0, n - group, group):
            stop = start + group
            rows, columns = self.references[start:stop], slice(stop, n)
            if self.own_windows:
                windows = np.full(group, stop), np.full(group, n)
                parts.append(self._own(rows, [windows], bracket, workers))
            else:
                one = np.zeros(1, dtype=np.int64)
                parts.append(self._tiles(rows, one, [[columns]], bracket, workers))
        return functools.reduce(add, parts)

    def across(self, reduce: Reduce, bracket: Bracket) -> Tally:
        """Tally each row with its two windows of references: a pass over all rows."""
        found: Tally = reduce(_meet, (self, bracket))
        return found

    def met(self, rows: FloatArray, start: int, bracket: Bracket) -> Tally:
        """Tally a piece of rows, the first of which has this place among all."""
        places, alone = np.arange(start, start + rows.shape[0]), Workers(1)
        if self.own_windows:
            windows = [(begin, begin + self.width) for begin in self._starts(places)]
            return self._own(rows, windows, bracket, alone, places)
        # By the place of a row alone: the same tiles however the rows are cut into pieces.
        tiles = places // _TILE**2 * _TILE + places % _TILE
        order = np.argsort(tiles, kind="stable")
        units, begins = np.unique(tiles[order], return_index=True)
        columns = [[slice(a, a + self.width) for a in begin] for begin in self._starts(units)]
        return self._tiles(rows[order], begins, columns, bracket, alone, units)

    def _starts(self, units: IndexArray) -> IndexArray:
        """Return where both windows of rows or tiles begin, given their places, (2, n)."""
        first = int(units[0])
        numbers = numbers_from(self.seed, 2 * first, 2 * (int(units[-1]) - first + 1))
        both = numbers.reshape(-1, 2)[units - first].T
        starts: IndexArray = (both * self.n_references).astype(np.int64)
        return starts

    def _own(
        self,
        rows: FloatArray,
        windows: list[tuple[IndexArray, IndexArray]],
        bracket: Bracket,
        workers: Workers,
        units: IndexArray | None = None,
    ) -> Tally:
        """Tally rows that each have windows of their own."""
        from . import _loops_numba as kernels

        points = padded(rows)
        halves = np.empty((len(windows), rows.shape[0]), dtype=np.int64)

        def task(part: slice) -> tuple[int, IndexArray]:
            bins, below = np.zeros(_BINS, dtype=np.int64), 0
            for half, (starts, stops) in zip(halves, windows, strict=True):
                window = starts[part], stops[part]
                below += kernels.tally_windows(
                    points[part], self.transposed, window, bracket, self.middle, bins, half[part]
                )
            return below, bins

        found = workers.over_rows(rows.shape[0], task)
        total = sum(int((stops - starts).sum()) for starts, stops in windows)
        return _tally_of(found, total, halves, units)

    def _tiles(
        self,
        rows: FloatArray,
        begins: IndexArray,
        columns: list[list[slice]],
        bracket: Bracket,
        workers: Workers,
        units: IndexArray | None = None,
    ) -> Tally:
        """Tally rows that share their windows with those of their tile."""
        from . import _loops_numba as kernels

        references, norms = self.wrapped
        row_norms, ends = squared_norms(rows), np.append(begins, rows.shape[0])
        halves = np.empty((len(columns), rows.shape[0]), dtype=np.int64)

        def task(tiles: slice) -> tuple[int, IndexArray]:
            bins, below = np.zeros(_BINS, dtype=np.int64), 0
            for t in range(tiles.start, tiles.stop):
                part = slice(ends[t], ends[t + 1])
                for half, of_tile in zip(halves, columns, strict=True):
                    column = of_tile[t]
                    below += kernels.tally_products(
                        rows[part] @ references[column].T,
                        row_norms[part],
                        norms[column],
                        bracket,
                        self.middle,
                        bins,
                        half[part],
                    )
            return below, bins

        found = workers.over_rows(begins.size, task)
        sizes = np.diff(ends)
        widths = [np.array([c.stop - c.start for c in of_tile]) for of_tile in columns]
        total = sum(int(sizes @ width) for width in widths)
        return _tally_of(found, total, np.add.reduceat(halves, begins, axis=1), units)


def _tally_of(
    found: list[tuple[int, IndexArray]],
    total: int,
    halves: IndexArray,
    units: IndexArray | None,
) -> Tally:
    """Return one tally of what the threads found; of two windows, also how they differ."""
    below = sum(part for part, _ in found)
    bins = np.sum([part for _, part in found], axis=0)
    differences = np.zeros(_SUMS, dtype=np.int64)
    if units is not None:
        np.add.at(differences, units % _SUMS, halves[0] - halves[1])
    return Tally(below, bins, total, differences)


def _meet(rows: FloatArray, start: int, shared: tuple[Meeting, Bracket]) -> Tally:
    meeting, bracket = shared
    return meeting.met(rows, start, bracket)


# Pairs of rows with references. Together with the pairs among the references (5·10⁸) they
# bring the share of pairs below the median to 4e-5, σ² to about 1e-4 and LES to 0.004.
PAIRS = 1_000_000_000
REFERENCES = 32_768
_REFERENCE_BYTES = 1 << 26
_FEWEST_REFERENCES = 4096
_MARGINS = (0.015, 0.15, 0.5)  # half widths of the bracket, as shares of the pairs
_NARROWINGS = 6  # of a bracket whose bins are too wide, a few hundred times each
_ENOUGH_BINS = 8
_REACH = 2.0  # standard errors of F to either side, so that limits hold 19 times in 20
_ROUNDING = 1e-13  # relative: what sets ties apart
_ZERO = 1e-9  # times the distances in the middle: what is nearer than that are duplicates
_BLOCK_ROWS = 1 << 16


class MedianEstimate(NamedTuple):
    """A median, its standard error, and how many pairs it rests on."""

    value: float
    standard_error: float
    n_pairs: int


def reference_count(n_features: int) -> int:
    """Return how many references are taken: 32,768, or what 64 MiB hold, 4096 at the least."""
    fitting = _REFERENCE_BYTES // (8 * max(n_features, 1))
    return int(min(REFERENCES, max(fitting, _FEWEST_REFERENCES)))


def sampled_median(
    reduce: Reduce,
    references: FloatArray,
    n_rows: int,
    rng: np.random.Generator,
    n_pairs: int = PAIRS,
) -> MedianEstimate:
    r"""Return the median of the N×N matrix of squared distances from a sample of pairs.

    With n random rows as references, let :math:`F_{NR}(t)` be the share of pairs (row,
    reference) below t, each row meeting its own random references, and :math:`F_{RR}(t)` that
    of the pairs among the references. Which rows became references moves the first by some a
    and the second by 2a (Hoeffding's decomposition), so

    .. math:: F(t) = 2 F_{NR}(t) - F_{RR}(t)

    is free of it: what is left are uncorrelated terms, one per pair, with

    .. math:: \mathrm{se}(F)^2 = 4 \widehat{\mathrm{Var}}(F_{NR}) + \tfrac{1}{2 n^2},
              \qquad \widehat{\mathrm{Var}}(F_{NR})
              = \frac{1}{4 N^2} \sum_i (y_{i1} - y_{i2})^2 ,

    the first from two windows of references per row (their difference is free of the row
    itself, and all rows are there), the second the largest variance of n²/2 uncorrelated terms.
    The median lies between the values where F is 1/2 ∓ 2 se(F), but for one case in twenty.
    The estimate is the middle of these, and its standard error a quarter of their distance:
    se(F)/F' where F is smooth. Where the median falls in a gap, as between two balanced
    clusters, that is the middle of the gap, and twice the standard error reaches its ends.

    The windows of a row depend on its place alone, so the estimate is the same however the rows
    are cut into blocks. One pass over the rows as a rule, never more than nine.

    O((n_pairs + n²/2) d) time: 1.5·10⁹ pairs in 4 dimensions take 3.5 s of one core. Memory:
    one block and 32,768 references (64 MiB of them at most).

    Parameters
    ----------
    reduce
        A pass over all rows, centred: adds up a function of pieces of them (see `passes`).
    references
        Shape (n, d): rows drawn without replacement, in random order.
    n_rows
        N.
    rng
        Draws which references a row meets.
    n_pairs
        How many pairs of rows and references.

    Examples
    --------
    >>> from functools import partial
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(3000, 2))
    >>> found = sampled_median(
    ...     partial(over_blocks, [points]), points[:1024], 3000, rng, n_pairs=10**6
    ... )
    >>> bool(abs(found.value - 4 * np.log(2)) < 0.2), 0 < found.standard_error < 0.02
    (True, True)
    """
    meeting = Meeting(references, n_rows, rng, n_pairs)
    if meeting.middle == 0.0:  # far more than half of all pairs are duplicates
        return MedianEstimate(0.0, 0.0, meeting.sample.size)
    with Workers() as workers:
        for margin in _MARGINS:
            found = _passed(meeting, reduce, meeting.bracket(margin), workers)
            if found.inside:  # as it is with the last margin, unless nothing is known
                break
        for _ in range(_NARROWINGS):
            if found.fine(meeting.middle):
                break
            found = _passed(meeting, reduce, found.nearer(), workers)
    low, high = found.limits
    if low <= 0.0 and high <= _ZERO * meeting.middle:
        return MedianEstimate(0.0, 0.0, found.n_pairs)
    value = 0.5 * (low + high)
    error = max((high - low) / (2.0 * _REACH), _ROUNDING * value)
    return MedianEstimate(value, error, found.n_pairs)


def median_of_many_points(
    cloud: PointCloud, rng: np.random.Generator, n_pairs: int = PAIRS
) -> MedianEstimate:
    """Return the sampled median of points in memory; see `sampled_median`."""
    count = min(reference_count(cloud.n_features), cloud.n_samples)
    chosen = rng.choice(cloud.n_samples, size=count, replace=False)

    def reduce(function: Work[Tally], shared: Any) -> Tally:
        slices = cloud.slices(width=_BLOCK_ROWS if not cloud.is_sparse else None)
        return over_blocks(map(cloud.dense_rows, slices), function, shared)

    return sampled_median(reduce, cloud.dense_rows(chosen), cloud.n_samples, rng, n_pairs)


class _Passed(NamedTuple):
    """F at the edges of the bins of a bracket, and what may be read off it."""

    bracket: Bracket
    shares: FloatArray  # (n_bins + 1,), rising
    noise: float  # the standard error of F
    n_pairs: int

    @property
    def inside(self) -> bool:
        """Whether the bracket holds the median, whatever the noise is."""
        reach = _REACH * self.noise
        return bool(self.shares[0] <= 0.5 - reach and self.shares[-1] >= 0.5 + reach)

    @property
    def bins(self) -> tuple[int, int]:
        """The edges between which the median lies, but for one case in twenty."""
        reach = _REACH * self.noise
        low = int(np.searchsorted(self.shares, 0.5 - reach, side="right")) - 1
        high = int(np.searchsorted(self.shares, 0.5 + reach, side="left"))
        return max(low, 0), min(high, self.shares.size - 1)

    def edge(self, place: int) -> float:
        """Return an edge of a bin."""
        low, high = self.bracket
        last = self.shares.size - 1
        return float(low + (high - low) * min(max(place, 0), last) / last)

    @property
    def limits(self) -> Bracket:
        """The values between which the median lies."""
        low, high = self.bins
        return self.edge(low), self.edge(high)

    def nearer(self) -> Bracket:
        """Return a bracket around the limits, a bin to spare: rounding may move an edge."""
        low, high = self.bins
        return self.edge(low - 1), self.edge(high + 1)

    def fine(self, scale: float) -> bool:
        """Whether smaller bins would say no more: many hold the median, or all of it is ties."""
        (first, last), (low, high) = self.bins, self.limits
        width = (self.bracket[1] - self.bracket[0]) / (self.shares.size - 1)
        return last - first >= _ENOUGH_BINS or width <= 1e-5 * low or high <= _ZERO * scale


def _passed(meeting: Meeting, reduce: Reduce, bracket: Bracket, workers: Workers) -> _Passed:
    """Return F within a bracket: one pass over all rows, and one over the references."""
    among, across = meeting.among(bracket, workers), meeting.across(reduce, bracket)
    # A row may meet itself, references do not: the matrix has its zero diagonal.
    diagonal = 1.0 / meeting.n_rows
    shares = 2.0 * across.cumulative() - (diagonal + (1.0 - diagonal) * among.cumulative())
    # A difference of two counts may fall by noise; the mean of its hulls rises.
    above, below = np.maximum.accumulate(shares), np.minimum.accumulate(shares[::-1])[::-1]
    noise = math.sqrt(4.0 * across.variance() + 0.5 / meeting.n_references**2)
    return _Passed(bracket, 0.5 * (above + below), noise, across.total + among.total)
