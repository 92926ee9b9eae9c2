"""Three passes over blocks of rows: densities, degrees, and the small matrix with W's values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._check import FloatArray, IndexArray
from ..operators.threads import Workers
from ._basis import Basis
from ._cholesky import (
    RESIDUAL_FLOOR,
    FeatureBlock,
    Interval,
    Sums,
    density,
    inverse_weights,
    squared_scaling,
    total,
    weighted_sums,
)

_TILE = 1024  # rows worked on together by one thread: 8 r · 1024 bytes
_EPS = float(np.finfo(np.float64).eps)


class Small(NamedTuple):
    """The small matrix and what the certificate needs, all of them sums or extremes over rows."""

    gram: FloatArray  # (r, r): F diag(s²) Fᵀ
    lowest: float  # min of s² lower / value
    highest: float  # max of s² upper / value
    slack: float  # Σ s² ρ, upper limits
    hidden: float  # the part of it that rounding took
    remaining: float  # Σ s² ρ, values


class Passes:
    """Passes over all rows of a streamed affinity with one set of landmarks.

    Each is a sum over tiles of rows, shared out over threads. In memory: one block, a tile of
    features and an (r, r) matrix per thread, and the residual of every row, 4 N bytes.

    Parameters
    ----------
    basis
        The landmarks.
    workers
        The threads.
    """

    def __init__(self, basis: Basis, workers: Workers) -> None:
        self.basis, self.workers = basis, workers
        self.n_rows = basis.affinity.n_samples
        self._left = np.empty(self.n_rows, dtype=np.float32)
        self._lock = threading.Lock()
        self._sums = self._residuals()
        negative = positive = roots = 0.0
        for rows in self._slices():
            left = self._left[rows]
            negative -= float(left[left < 0].sum(dtype=np.float64))
            positive += float(left[left > 0].sum(dtype=np.float64))
        self._excess = negative / self.n_rows
        # Once more is lost below 0 than is left above, further landmarks only fit noise.
        self.exhausted = negative > positive or not (self._left > RESIDUAL_FLOOR).any()
        self.residual_trace = 0.0
        for rows in self._slices():
            residual = self._residual(rows)[0]
            self.residual_trace += float(residual.sum())
            roots += float(np.sqrt(residual).sum())
        self._ones = Sums(self._sums[:, None], np.array([roots]), np.array([float(self.n_rows)]))

    def candidates(self, count: int, rng: np.random.Generator) -> IndexArray:
        """Draw rows with probability proportional to their residual, each at most once."""
        cumulative = np.cumsum(np.maximum(self._left, 0.0), dtype=np.float64)
        draws = rng.random(count) * cumulative[-1]
        found = np.searchsorted(cumulative, draws, side="right")
        unique: IndexArray = np.unique(np.minimum(found, self.n_rows - 1))
        return unique[self._left[unique] > RESIDUAL_FLOOR]

    def small(self) -> Small:
        """Return the small matrix: the second pass and the third, O(N r) and O(N r²)."""
        inverse = self._degrees()
        r = self.basis.rank
        gram, parts = np.zeros((r, r)), []

        def task(points: FloatArray, rows: slice) -> None:
            block, hidden, remaining = self._block(self.basis.features(points), rows)
            row_sums = density(block, self._ones, nonnegative=True)
            squares = squared_scaling(block, row_sums, inverse, nonnegative=True)
            block.features.__imul__(np.sqrt(squares.value))
            part = block.features @ block.features.T
            extremes = Small(
                gram,
                float((squares.lower / squares.value).min()),
                float((squares.upper / squares.value).max()),
                float(block.residual @ squares.upper),
                float(hidden @ squares.upper),
                float(remaining @ squares.value),
            )
            with self._lock:
                np.add(gram, part, out=gram)
                parts.append(extremes)

        self._over_tiles(task)
        _, lowest, highest, slack, hidden, remaining = zip(*parts, strict=True)
        return Small(gram, min(lowest), max(highest), sum(slack), sum(hidden), sum(remaining))

    def _residuals(self) -> FloatArray:
        """Return Σ φ, (r,), keeping the residual of every row: the first pass, O(N r²)."""
        sums = np.zeros(self.basis.rank)

        def task(points: FloatArray, rows: slice) -> None:
            features = self.basis.features(points)
            left = 1.0 - np.einsum("ij,ij->j", features, features)
            self._left[rows] = left * (1.0 + 2.0**-22)  # single precision rounds no bound away
            part = features.sum(axis=1)
            with self._lock:
                np.add(sums, part, out=sums)

        self._over_tiles(task)
        return sums

    def _degrees(self) -> Sums:
        r"""Return the sums with 1/d̃: the second pass, O(N r (d + 1)).

        Without features: :math:`\tilde d = k^T c` with :math:`c = L^{-T} \sum \phi`, and
        :math:`\sum \phi / \tilde d = L^{-1} \sum k / \tilde d`. The rounding of the first is
        bounded by (8 + √r) eps :math:`k^T |c|`, and widens the limits.
        """
        coefficients = self.basis.solve_transposed(self._sums[:, None])
        ones = self._ones._replace(features=coefficients)
        unit = (8.0 + np.sqrt(self.basis.rank)) * _EPS
        parts: list[Sums] = []

        def task(points: FloatArray, rows: slice) -> None:
            block, _, _ = self._block(self.basis.affinities(points), rows)
            value, lower, upper = density(block, ones, nonnegative=True)
            slop = unit * (np.abs(coefficients[:, 0]) @ block.features)
            limits = Interval(value, np.maximum(lower - slop, 1.0), upper + slop)
            part = weighted_sums(block, inverse_weights(limits))
            with self._lock:
                parts[:] = [total([*parts, part])]

        self._over_tiles(task)
        sums = parts[0]
        return sums._replace(features=self.basis.solve(sums.features))

    def _block(
        self, features: FloatArray, rows: slice
    ) -> tuple[FeatureBlock, FloatArray, FloatArray]:
        """Return a block with its residual, what rounding hides in it, and what remains."""
        residual, hidden, remaining = self._residual(rows)
        return FeatureBlock(features, residual, np.ones(residual.size)), hidden, remaining

    def _residual(self, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return an upper bound of ρ, what rounding hides of it, and what remains.

        As in `PivotedCholesky.hidden`.
        """
        left = self._left[rows].astype(np.float64)
        remaining = np.maximum(left, 0.0)
        hidden = 2.0 * (np.maximum(-left, 0.0) + self._excess)
        return remaining + RESIDUAL_FLOOR + hidden, hidden, remaining

    def _slices(self) -> list[slice]:
        step = 1 << 16
        return [slice(a, min(a + step, self.n_rows)) for a in range(0, self.n_rows, step)]

    def _over_tiles(self, task: Callable[[FloatArray, slice], None]) -> None:
        """Run `task(points, rows)` on all tiles of all blocks."""
        start = 0
        for block in self.basis.affinity.blocks():

            def over(part: slice, block: FloatArray = block, start: int = start) -> None:
                for a in range(part.start, part.stop, _TILE):
                    b = min(a + _TILE, part.stop)
                    task(block[a:b], slice(start + a, start + b))

            self.workers.over_rows(block.shape[0], over)
            start += block.shape[0]
            self.basis.affinity.entries_evaluated += block.shape[0] * self.basis.rank
