"""How many bytes a signature takes beyond its data."""

from __future__ import annotations

from ..operators.metric import is_euclidean
from ..operators.outliers import REFERENCES
from ..spectra.krylov.lanczos import PROBE_STEPS, PROBE_WIDTH
from ._probes import Sample, n_weights

_KEPT_BYTES = 1 << 26  # what an exact median keeps at the most
_LEAST = 1 << 20
_COPIES = 4  # of points in memory: as float64, centred, by blocks
WIDE = 512  # columns at a time where the diagonal of a heat kernel is wanted
_SPARE_COLUMNS = PROBE_WIDTH * PROBE_STEPS  # with which krylov looks for what it missed


def of_rows(sample: Sample) -> int:
    """Return the bytes of `exact`: the matrix, its scaled copy, and LAPACK's."""
    copies = 5 if sample.dataset.kind == "graph" else 3
    return max(copies * 8 * sample.n**2, _operator(sample))


def of_landmarks(sample: Sample, landmarks: int) -> int:
    """Return the bytes of the features of all rows, and of small matrices."""
    features = 8 * sample.n * landmarks
    return max(features + features // 8 + 32 * landmarks**2, _operator(sample))


def of_columns(sample: Sample, columns: int, tiled: bool) -> int:
    """Return the bytes of a basis and of the matrix that it is multiplied with."""
    basis = 8 * sample.n * (columns + columns // 4 + _SPARE_COLUMNS)
    return max(_matrix(sample, tiled) + basis + 16 * columns**2, _operator(sample))


def _matrix(sample: Sample, tiled: bool) -> int:
    """Return the bytes of a matrix that is kept: 12 a stored number, where it is sparse."""
    if tiled:
        return 0
    if not sample.local:
        return 8 * sample.n**2
    neighbours = sample.settings.kernel.n_neighbors
    stored = n_weights(sample.dataset) if neighbours is None else 2 * sample.n * neighbours
    return 2 * 12 * stored


def _operator(sample: Sample) -> int:
    """Return the bytes that are needed while the operator is made, 1 MiB at the least."""
    if sample.dataset.kind == "graph":  # its trace takes five blocks of columns at a time
        return max(5 * 8 * sample.n * min(sample.n, WIDE), _LEAST)
    if sample.dataset.kind == "points" and is_euclidean(sample.settings.kernel.metric):
        copies = _COPIES * 8 * sample.n * sample.dataset.n_features
        outlying = 7 * 8 * min(sample.n, REFERENCES) ** 2 if sample.settings.kernel.robust else 0
        return max(min(8 * sample.n**2, _KEPT_BYTES) + copies, outlying, _LEAST)
    return max(2 * _matrix(sample, False), _LEAST)
