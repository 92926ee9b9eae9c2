"""How fast rows, pairs and products are worked on here: each timed on a few of them."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._check import FloatArray
from ..data.dataset import Dataset
from ..engine.threads import thread_count
from ..operators.bandwidth_sampled import PAIRS, MedianEstimate, reference_count, sampled_median
from ..operators.base import PSDOperator
from ..operators.streamed import CrossKernel
from ..rows.reduce import RowPasses, Work
from ..rows.source import PIECE_ROWS, ArrayRows
from ..spectra.landmarks.streamed import (
    SAMPLE_ROWS,
    Basis,
    PassSettings,
    kernel_sums,
    residual_diagonal,
    scaled_gram,
)
from ..spectra.scale_error import sample_rows, slopes
from ._timing import timed

_ROWS = 12_288  # timed; of fewer the calls themselves show
_REFERENCES = 4096
_PAIRS = (1 << 22, 1 << 26)
_SLOPE_ROWS = 640
_LARGE_ROWS = 2048  # a matrix of 32 MiB, which no cache holds
_SMALL_ROWS = 640
_CACHE_BYTES = 1 << 24


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
        sampled = sample_rows(n_eigenvalues) ** 3 * self.slope if self.scale else 0.0
        return n_rows * self.per_row + self.scale + self.fixed + sampled


def measure(sample: Dataset, n_rows: int, bandwidth: str | float, rank: int) -> Rates:
    """Return what the passes of a stream of N rows with so many landmarks take here."""
    rng = np.random.default_rng(3)
    size = min(max(_ROWS, rank, PIECE_ROWS * thread_count()), sample.n_samples)
    rank = min(rank, size)
    rows = sample.subsample(size, rng)
    prepared = rows.prepared()
    source = ArrayRows(prepared.toarray() if hasattr(prepared, "toarray") else prepared)
    reading, _ = timed(lambda: (ArrayRows(source.array).summary, rows.prepared()))
    passes = RowPasses(source)
    points = passes.take(np.arange(size))
    # Any landmarks do, and any triangle: what is timed does not depend on their values.
    scale = float(np.square(points).sum(axis=1).mean()) * 4.0 or 1.0
    basis = Basis(CrossKernel(points[:rank].copy(), scale), np.eye(rank))
    known = PassSettings(basis, np.ones(rank), np.ones(rank), n_drawn=max(rank, 32))
    sums, third = (_per_row(passes, work, known) for work in (kernel_sums, scaled_gram))
    held, _ = timed(lambda: residual_diagonal(basis, points[: size // 4]))
    gram = np.eye(rank) + 1e-3 * rng.normal(size=(rank, rank))
    small, _ = timed(lambda: np.linalg.eigvalsh(gram + gram.T))
    spectrum, _ = timed(lambda: slopes(points[:_SLOPE_ROWS], scale, 1, 1e-8))
    return Rates(
        size,
        reading / size + 2.0 * sums + third,
        _scale_seconds(passes, points, n_rows) if bandwidth == "median" else 0.0,
        held * SAMPLE_ROWS / (size // 4) + small,
        spectrum / min(_SLOPE_ROWS, size) ** 3,
        _memory(rank, sample.n_features),
    )


def _per_row(passes: RowPasses, work: Work[Any], known: PassSettings) -> float:
    """Return the seconds of one row of a pass over many, without those of its beginning."""
    size, few = passes.source.n_rows, max(passes.source.n_rows // 3, 1)
    fewer = RowPasses(ArrayRows(passes.source.take(np.arange(few))))
    less, _ = timed(lambda: fewer.reduce(work, known))
    more, _ = timed(lambda: passes.reduce(work, known))
    mean = more / size
    return float(np.clip((more - less) / max(size - few, 1), 0.5 * mean, mean))


def _scale_seconds(passes: RowPasses, points: FloatArray, n_rows: int) -> float:
    """Return the seconds of a sampled median: those of a smaller one, pair for pair."""
    size, n_features = points.shape
    few = points[: min(_REFERENCES, size)]

    def median(n_pairs: int) -> MedianEstimate:
        return sampled_median(passes.reduce, few, size, np.random.default_rng(4), n_pairs)

    (less, fewer), (more, found) = (timed(partial(median, pairs)) for pairs in _PAIRS)
    # What does not grow with the pairs is in the difference of neither.
    rate = (more - less) / max(found.n_pairs - fewer.n_pairs, 1)
    rate = max(rate, 0.3 * more / max(found.n_pairs, 1))
    return float(more + rate * (PAIRS + min(reference_count(n_features), n_rows) ** 2 / 2))


def _memory(rank: int, n_features: int) -> int:
    """Return the most bytes: features of the sample, or tiles and small matrices per thread."""
    choosing = 8 * SAMPLE_ROWS * rank * 5 // 4
    per_thread = 8 * rank * (3 * 1024 + 3 * rank)
    references = 16 * reference_count(n_features) * n_features
    return max(choosing, thread_count() * per_thread + 8 * rank * rank) + references + (1 << 24)


def product_seconds(operator: PSDOperator, width: int) -> float:
    """Return the seconds that a product with so many columns takes."""
    block = np.random.default_rng(5).normal(size=(operator.n_samples, width))
    return timed(lambda: operator.matmat(block))[0]


def large_product_seconds(n_samples: int, width: int) -> float:
    """Return the seconds of a product with a matrix in memory, (N, N), N not being small.

    What takes as long as its flops in a cache takes as long as reading the matrix outside.
    """
    size = min(n_samples, _LARGE_ROWS)
    matrix, block = np.ones((size, size)), np.ones((size, width))
    return timed(lambda: matrix @ block)[0] * (n_samples / size) ** 2


def multiply_add_seconds() -> float:
    """Return the seconds of one multiply-add inside a matrix product, the unit of all prices."""
    matrix = np.ones((_SMALL_ROWS, _SMALL_ROWS))
    return timed(lambda: matrix @ matrix)[0] / _SMALL_ROWS**3


def beyond_cache(n_samples: int) -> bool:
    """Whether a matrix (N, N) is larger than what a cache holds."""
    return 8 * n_samples**2 > _CACHE_BYTES
