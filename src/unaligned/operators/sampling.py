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

    is free of it: what is left are uncorrelated terms, one per pair. The estimate solves
    F(t) = 1/2, and its standard error is :math:`\mathrm{se}(F) / F'(t)` with

    .. math:: \mathrm{se}(F)^2 = 4 \widehat{\mathrm{Var}}(F_{NR}) + \tfrac{1}{2 n^2},
              \qquad \widehat{\mathrm{Var}}(F_{NR})
              = \frac{1}{4 N^2} \sum_i (y_{i1} - y_{i2})^2 ,

    the first from two windows of references per row (their difference is free of the row
    itself, and all rows are there), the second the largest variance of n²/2 uncorrelated terms.

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
    if meeting.middle == 0.0:  # half of all pairs are duplicates
        return MedianEstimate(0.0, 0.0, meeting.sample.size)
    margins = iter(_MARGINS)
    bracket = meeting.bracket(next(margins))
    with Workers() as workers:
        while True:
            among = meeting.among(bracket, workers)
            across = meeting.across(reduce, bracket)
            shares = _shares(across, among, n_rows)
            if not shares[0] <= 0.5 < shares.max():
                bracket = meeting.bracket(next(margins))
            elif _coarse(shares, bracket):
                above = int(np.searchsorted(np.maximum.accumulate(shares), 0.5, side="right"))
                edges = np.linspace(*bracket, shares.size)
                bracket = float(edges[max(above - 2, 0)]), float(edges[above])
            else:
                noise = math.sqrt(4.0 * across.spread / n_rows**2 + 0.5 / meeting.n_references**2)
                value, error = _crossing(shares, bracket, noise)
                return MedianEstimate(value, error, across.total + among.total)


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


def _shares(across: Tally, among: Tally, n_rows: int) -> FloatArray:
    """Return F at the edges of the bins, (n_bins + 1,)."""
    # A row may meet itself, references do not: the matrix has its zero diagonal.
    diagonal = 1.0 / n_rows
    shares: FloatArray = 2.0 * across.cumulative()
    shares -= diagonal + (1.0 - diagonal) * among.cumulative()
    return shares


def _coarse(shares: FloatArray, bracket: Bracket) -> bool:
    """Whether the bin of the median holds many values that differ."""
    rising = np.maximum.accumulate(shares)
    above = int(np.searchsorted(rising, 0.5, side="right"))
    width = (bracket[1] - bracket[0]) / (shares.size - 1)
    held = rising[above] - rising[above - 1]
    return bool(held > 1e-3 and width > 1e-5 * (bracket[0] + above * width))


def _crossing(shares: FloatArray, bracket: Bracket, noise: float) -> tuple[float, float]:
    """Return where F = 1/2, and its standard error if that of F is `noise`."""
    rising = np.maximum.accumulate(shares)
    edges = np.linspace(*bracket, rising.size)
    above = int(np.searchsorted(rising, 0.5, side="right"))
    step = (0.5 - rising[above - 1]) / (rising[above] - rising[above - 1])
    value = float(edges[above - 1] + step * (edges[above] - edges[above - 1]))
    density = float(shares[-1] - shares[0]) / (bracket[1] - bracket[0])
    # Where values are ties F is flat between them, and its mean slope says too little.
    low, high = np.interp([0.5 - noise, 0.5 + noise], rising, edges)
    error = max(noise / density, 0.5 * float(high - low))
    return value, math.hypot(error, (edges[1] - edges[0]) / math.sqrt(12.0))
