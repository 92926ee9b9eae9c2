r"""The median squared distance of more points than pairs can be counted, with its error.

LES moves by 30-45 times the relative error of σ², so a sample of pairs must be large and must
know how good it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from .._check import FloatArray, IndexArray
from .points import Bracket, PointCloud, padded, squared_norms
from .threads import Workers

Blocks: TypeAlias = Callable[[], Iterable[FloatArray]]

# Pairs of rows with references. Together with the pairs among the references (5·10⁸) they
# bring the share of pairs below the median to 5e-5, σ² to about 1e-4 and LES to 0.005.
PAIRS = 600_000_000
REFERENCES = 32_768
_REFERENCE_BYTES = 1 << 26
_FEWEST_REFERENCES = 4096
# Up to here each row has a window of its own in a compiled loop; with more features a matrix
# product is faster by more than it loses when the rows of one tile are alike.
_OWN_WINDOWS = 32
_ROWS_PER_TILE = 32
_BINS = 4096
_MARGINS = (0.015, 0.15, 0.5)  # half widths of the bracket, as shares of the pairs
_BLOCK_ROWS = 1 << 16


class MedianEstimate(NamedTuple):
    """A median, its standard error, and how many pairs it rests on."""

    value: float
    standard_error: float
    n_pairs: int


class _Tally(NamedTuple):
    """How many values lie below a bracket, in its bins, and in all; and a sum of squares."""

    below: int
    bins: IndexArray
    total: int
    spread: float

    def cumulative(self) -> FloatArray:
        """Return the share of values up to each edge of the bins, (n_bins + 1,)."""
        counts = np.concatenate([[0], np.cumsum(self.bins)]) + self.below
        return np.asarray(counts / self.total, dtype=np.float64)


def reference_count(n_features: int) -> int:
    """Return how many references are taken: 32,768, or what 64 MiB hold, 4096 at the least."""
    fitting = _REFERENCE_BYTES // (8 * max(n_features, 1))
    return int(min(REFERENCES, max(fitting, _FEWEST_REFERENCES)))


def sampled_median(
    blocks: Blocks,
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

    O((n_pairs + n²/2) d) time: 1.1·10⁹ pairs in 4 dimensions take 1-2 s on two cores. Memory:
    one block and 32,768 references (64 MiB of them at most).

    Parameters
    ----------
    blocks
        Gives the rows, block by block, each time it is called; (n, d) float64, centred.
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
    >>> rng = np.random.default_rng(0)
    >>> points = rng.normal(size=(3000, 2))
    >>> found = sampled_median(lambda: [points], points[:1024], 3000, rng, n_pairs=10**6)
    >>> bool(abs(found.value - 4 * np.log(2)) < 0.2), 0 < found.standard_error < 0.02
    (True, True)
    """
    meeting = _Meeting(references, n_rows, rng, n_pairs)
    if meeting.middle == 0.0:  # half of all pairs are duplicates
        return MedianEstimate(0.0, 0.0, meeting.sample.size)
    margins = iter(_MARGINS)
    bracket = meeting.bracket(next(margins))
    with Workers() as workers:
        while True:
            among = meeting.among(bracket, workers)
            across = meeting.across(blocks, bracket, workers)
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

    def blocks() -> Iterator[FloatArray]:
        for rows in cloud.slices(width=_BLOCK_ROWS if not cloud.is_sparse else None):
            yield cloud.dense_rows(rows)

    return sampled_median(blocks, cloud.dense_rows(chosen), cloud.n_samples, rng, n_pairs)


class _Meeting:
    """Rows that meet references, and references that meet each other."""

    def __init__(
        self, references: FloatArray, n_rows: int, rng: np.random.Generator, n_pairs: int
    ) -> None:
        # Whole groups only: all references then meet equally many others.
        self.group = max(1, references.shape[0] // 64)
        self.n_references = references.shape[0] // self.group * self.group
        self.references = references[: self.n_references]
        self.norms = squared_norms(self.references)
        self.rng = rng
        self.own_windows = references.shape[1] <= _OWN_WINDOWS
        self.width = int(min(max(1, round(n_pairs / n_rows / 2)), self.n_references))
        self.sample = self._sample()
        self.middle = float(np.median(self.sample))

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

    def _sample(self) -> FloatArray:
        """Return the squared distances of random pairs of references, sorted."""
        size = min(2**19, 64 * self.n_references)
        one, other = self.rng.integers(self.n_references, size=(2, size))
        keep = one != other
        squares = np.empty(int(keep.sum()))
        step = max(1, (1 << 24) // (8 * max(self.references.shape[1], 1)))
        one, other = one[keep], other[keep]
        for part in (slice(a, a + step) for a in range(0, squares.size, step)):
            squares[part] = squared_norms(
                self.references[one[part]] - self.references[other[part]]
            )
        squares.sort()
        return squares

    def bracket(self, margin: float) -> Bracket:
        """Return an interval around the median: all values, where the margin is a half."""
        peak = 4.0 * float(self.norms.max()) + np.finfo(np.float64).tiny
        if margin >= 0.5:
            return 0.0, 1e3 * peak
        low, high = np.quantile(self.sample, [0.5 - margin, 0.5 + margin])
        # Ties leave no width; rounding may set them apart by this much.
        return float(low) * (1 - 1e-12), float(high) * (1 + 1e-12) + 1e-14 * peak

    def among(self, bracket: Bracket, workers: Workers) -> _Tally:
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
                parts.append(self._tiles(rows, [[columns]], bracket, workers))
        return _sum(parts)

    def across(self, blocks: Blocks, bracket: Bracket, workers: Workers) -> _Tally:
        """Tally each row with its two windows of references."""
        parts = []
        for block in blocks():
            if self.own_windows:
                starts = self.rng.integers(self.n_references, size=(2, block.shape[0]))
                windows = [(start, start + self.width) for start in starts]
                parts.append(self._own(block, windows, bracket, workers))
            else:
                mixed = block[self.rng.permutation(block.shape[0])]
                n_tiles = -(-block.shape[0] // _ROWS_PER_TILE)
                starts = self.rng.integers(self.n_references, size=(2, n_tiles))
                columns = [[slice(a, a + self.width) for a in start] for start in starts]
                parts.append(self._tiles(mixed, columns, bracket, workers))
        return _sum(parts)

    def _own(
        self,
        rows: FloatArray,
        windows: list[tuple[IndexArray, IndexArray]],
        bracket: Bracket,
        workers: Workers,
    ) -> _Tally:
        """Tally rows that each have windows of their own."""
        from . import kernels

        points = padded(rows)
        shares = np.empty((len(windows), rows.shape[0]))

        def task(part: slice) -> tuple[int, IndexArray]:
            bins, below = np.zeros(_BINS, dtype=np.int64), 0
            for share, (starts, stops) in zip(shares, windows, strict=True):
                window = starts[part], stops[part]
                below += kernels.tally_windows(
                    points[part], self.transposed, window, bracket, self.middle, bins, share[part]
                )
            return below, bins

        found = workers.over_rows(rows.shape[0], task)
        total = sum(int((stops - starts).sum()) for starts, stops in windows)
        return _tally_of(found, total, shares, np.ones(rows.shape[0]))

    def _tiles(
        self, rows: FloatArray, columns: list[list[slice]], bracket: Bracket, workers: Workers
    ) -> _Tally:
        """Tally rows that share their windows with those of their tile."""
        from . import kernels

        n_tiles = len(columns[0])
        size = -(-rows.shape[0] // n_tiles)
        references, norms = self.wrapped
        row_norms = squared_norms(rows)
        shares = np.empty((len(columns), rows.shape[0]))

        def task(tiles: slice) -> tuple[int, IndexArray]:
            bins, below = np.zeros(_BINS, dtype=np.int64), 0
            for t in range(tiles.start, tiles.stop):
                part = slice(t * size, min((t + 1) * size, rows.shape[0]))
                for share, of_tile in zip(shares, columns, strict=True):
                    column = of_tile[t]
                    below += kernels.tally_products(
                        rows[part] @ references[column].T,
                        row_norms[part],
                        norms[column],
                        bracket,
                        self.middle,
                        bins,
                        share[part],
                    )
            return below, bins

        found = workers.over_rows(n_tiles, task)
        sizes = np.diff(np.minimum(np.arange(n_tiles + 1) * size, rows.shape[0]))
        widths = [np.array([c.stop - c.start for c in of_tile]) for of_tile in columns]
        total = sum(int(sizes @ width) for width in widths)
        starts = np.arange(n_tiles) * size
        by_tile = np.add.reduceat(shares, starts, axis=1) / np.maximum(sizes, 1)
        return _tally_of(found, total, by_tile, sizes.astype(np.float64))


def _tally_of(
    found: list[tuple[int, IndexArray]], total: int, shares: FloatArray, sizes: FloatArray
) -> _Tally:
    """Return one tally of what the threads found; of two windows, also how they differ."""
    below = sum(part for part, _ in found)
    bins = np.sum([part for _, part in found], axis=0)
    spread = 0.0
    if shares.shape[0] == 2:
        spread = float(((sizes * (shares[0] - shares[1])) ** 2).sum()) / 4.0
    return _Tally(below, bins, total, spread)


def _sum(parts: list[_Tally]) -> _Tally:
    """Return the sum of tallies over blocks."""
    below, bins, total, spread = zip(*parts, strict=True)
    return _Tally(sum(below), np.sum(bins, axis=0), sum(total), math.fsum(spread))


def _shares(across: _Tally, among: _Tally, n_rows: int) -> FloatArray:
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
