r"""The median squared distance of more points than pairs can be counted, with its error.

LES moves by 30-45 times the relative error of σ², so a sample of pairs must be large and must
know how good it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._check import FloatArray
from .meeting import Meeting, Reduce, Tally
from .passes import Work, over_blocks
from .points import Bracket, PointCloud
from .threads import Workers

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
