"""Rows that meet references: counting the squared distances of sampled pairs around a median."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cached_property
from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._check import FloatArray, IndexArray
from .points import Bracket, padded, squared_distances, squared_norms
from .threads import Workers

# Adds up a function of pieces of rows, and of what all share, over all rows.
Reduce: TypeAlias = Callable[[Callable[[FloatArray, int, Any], Any], Any], Any]

# Up to here each row has a window of its own in a compiled loop; with more features a matrix
# product is faster by more than it loses when the rows of one tile are alike.
_OWN_WINDOWS = 32
_ROWS_PER_TILE = 32
_BINS = 4096


class Tally(NamedTuple):
    """How many values lie below a bracket, in its bins, and in all; and a sum of squares."""

    below: int
    bins: IndexArray
    total: int
    spread: float

    def __add__(self, other: Tally) -> Tally:  # type: ignore[override]
        """Return the tally of the values of both."""
        return Tally(*map(add, self, other))

    def cumulative(self) -> FloatArray:
        """Return the share of values up to each edge of the bins, (n_bins + 1,)."""
        counts = np.concatenate([[0], np.cumsum(self.bins)]) + self.below
        return np.asarray(counts / self.total, dtype=np.float64)


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
        self.n_references = references.shape[0] // self.group * self.group
        self.references = references[: self.n_references]
        self.norms = squared_norms(self.references)
        self.seed = int(rng.integers(2**63))  # of the windows
        self.own_windows = references.shape[1] <= _OWN_WINDOWS
        self.width = int(min(max(1, round(n_pairs / n_rows / 2)), self.n_references))
        self.sample = self._sample(rng)
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

    def _sample(self, rng: np.random.Generator) -> FloatArray:
        """Return the squared distances of random pairs of references, sorted."""
        size = min(2**19, 64 * self.n_references)
        one, other = rng.integers(self.n_references, size=(2, size))
        apart = one != other
        return np.sort(squared_distances(self.references, one[apart], other[apart]))

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
                parts.append(self._tiles(rows, [[columns]], bracket, workers))
        return functools.reduce(add, parts)

    def across(self, reduce: Reduce, bracket: Bracket) -> Tally:
        """Tally each row with its two windows of references: a pass over all rows."""
        found: Tally = reduce(_meet, (self, bracket))
        return found

    def met(self, rows: FloatArray, start: int, bracket: Bracket) -> Tally:
        """Tally a piece of rows, the first of which has this place among all."""
        rng, alone = np.random.default_rng([self.seed, start]), Workers(1)
        if self.own_windows:
            starts = rng.integers(self.n_references, size=(2, rows.shape[0]))
            windows = [(begin, begin + self.width) for begin in starts]
            return self._own(rows, windows, bracket, alone)
        mixed = rows[rng.permutation(rows.shape[0])]
        n_tiles = -(-rows.shape[0] // _ROWS_PER_TILE)
        starts = rng.integers(self.n_references, size=(2, n_tiles))
        columns = [[slice(a, a + self.width) for a in begin] for begin in starts]
        return self._tiles(mixed, columns, bracket, alone)

    def _own(
        self,
        rows: FloatArray,
        windows: list[tuple[IndexArray, IndexArray]],
        bracket: Bracket,
        workers: Workers,
    ) -> Tally:
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
    ) -> Tally:
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
) -> Tally:
    """Return one tally of what the threads found; of two windows, also how they differ."""
    below = sum(part for part, _ in found)
    bins = np.sum([part for _, part in found], axis=0)
    spread = 0.0
    if shares.shape[0] == 2:
        spread = float(((sizes * (shares[0] - shares[1])) ** 2).sum()) / 4.0
    return Tally(below, bins, total, spread)


def _meet(rows: FloatArray, start: int, shared: tuple[Meeting, Bracket]) -> Tally:
    meeting, bracket = shared
    return meeting.met(rows, start, bracket)
