"""Rows that meet references: counting the squared distances of sampled pairs around a median."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cached_property
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._check import FloatArray, IndexArray
from .passes import numbers_from
from .points import Bracket
from .rows import padded, squared_distances_of_pairs, squared_norms
from .threads import Workers

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
        from . import kernels

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
        from . import kernels

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
