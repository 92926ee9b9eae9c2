"""How fast blocks of rows are worked on here: the passes of a stream, timed on a few rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._check import FloatArray
from ..data.dataset import Dataset
from ..data.sources import ArrayRows
from ..operators.passes import RowPasses
from ..operators.sampling import PAIRS, reference_count, sampled_median
from ..operators.streamed import CrossKernel
from ..operators.threads import thread_count
from ._basis import Basis
from ._passes import Broadcast, Held, gather, kernel_sums
from ._sensitivity import slopes
from ._stream import HELD_ROWS, SAMPLE_ROWS

_ROWS = 12_288  # timed
_REFERENCES = 2048
_PAIRS = 1 << 25
_SLOPE_ROWS = 320


class Rates(NamedTuple):
    """Seconds that the parts of a stream take."""

    n_rows: int  # on which they were timed
    per_row: float  # of all passes
    scale: float  # σ²
    fixed: float  # landmarks judged on rows held out, and the small matrix
    slope: float  # of a spectrum of one row, to the third power
    memory_bytes: int

    def seconds(self, n_rows: int, n_eigenvalues: int) -> float:
        """Return the seconds of N rows, but for the choice of landmarks."""
        sampled = max(1000, 4 * n_eigenvalues) ** 3 * self.slope if self.scale else 0.0
        return n_rows * self.per_row + self.scale + self.fixed + sampled


def measure(dataset: Dataset, bandwidth: str | float, rank: int) -> Rates:
    """Return what the passes of a stream with so many landmarks take here."""
    rng = np.random.default_rng(3)
    size = min(max(_ROWS, rank), dataset.n_samples)
    rows = dataset.subsample(size, rng)
    prepared = rows.prepared()
    source = ArrayRows(prepared.toarray() if hasattr(prepared, "toarray") else prepared)
    reading, _ = timed(lambda: (ArrayRows(source.array).summary, rows.prepared()))
    passes = RowPasses(source)
    points = passes.take(np.arange(size))
    # Any landmarks do, and any triangle: what is timed does not depend on their values.
    scale = float(np.square(points).sum(axis=1).mean()) * 4.0 or 1.0
    basis = Basis(CrossKernel(points[:rank].copy(), scale), np.eye(rank))
    known = Broadcast(basis, np.ones(rank), np.ones(rank), n_drawn=max(rank, 32))
    sums, _ = timed(lambda: passes.reduce(kernel_sums, known))
    third, _ = timed(lambda: passes.reduce(gather, known))
    held, _ = timed(lambda: Held.of(basis, points[: size // 4]))
    gram = np.eye(rank) + 1e-3 * rng.normal(size=(rank, rank))
    small, _ = timed(lambda: np.linalg.eigvalsh(gram + gram.T))
    spectrum, _ = timed(lambda: slopes(points[:_SLOPE_ROWS], scale, 1, 1e-8))
    return Rates(
        size,
        (reading + 2.0 * sums + third) / size,
        _scale_seconds(passes, points, dataset, rng) if bandwidth == "median" else 0.0,
        held * HELD_ROWS / (size // 4) + small,
        spectrum / min(_SLOPE_ROWS, size) ** 3,
        _memory(rank, dataset.n_features),
    )


def _scale_seconds(
    passes: RowPasses, points: FloatArray, dataset: Dataset, rng: np.random.Generator
) -> float:
    """Return the seconds of a sampled median: those of a smaller one, pair for pair."""
    few = min(_REFERENCES, points.shape[0])
    seconds, found = timed(
        lambda: sampled_median(passes.reduce, points[:few], points.shape[0], rng, _PAIRS)
    )
    many = min(reference_count(dataset.n_features), dataset.n_samples)
    return float(seconds * (PAIRS + many**2 / 2) / max(found.n_pairs, 1))


def _memory(rank: int, n_features: int) -> int:
    """Return the most bytes: features of the sample, or tiles and small matrices per thread."""
    choosing = 8 * SAMPLE_ROWS * rank * 5 // 4
    per_thread = 8 * rank * (3 * 1024 + 3 * rank)
    references = 16 * reference_count(n_features) * n_features
    return max(choosing, thread_count() * per_thread + 8 * rank * rank) + references + (1 << 25)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long a call took, and what it returned."""
    started = time.perf_counter()
    found = function()
    return time.perf_counter() - started, found
