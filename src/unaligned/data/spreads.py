"""How far the values of each column of points are spread."""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

import numpy as np

from .._check import FloatArray, IndexArray
from ..errors import InputError
from ..rows.source import SAMPLE_COLUMNS, dense, sample_positions
from .dataset import Dataset
from .preprocess import apply_steps

_MOST = 100.0  # ratio of spreads from which the column with the smaller one hardly counts
_FEWEST_ROWS = 20  # for quartiles
_VARIED = (
    0.05  # share of rows off the median: an edge pixel or a rare flag has no scale of its own
)
_FALLING = -0.8  # rank correlation with the position, of at least 5 columns: principal components


class UnevenColumns(NamedTuple):
    """The columns with the largest and the smallest spread, and the ratio of these."""

    large: str
    small: str
    ratio: float


def uneven_columns(dataset: Dataset) -> UnevenColumns | None:
    """Return the columns whose spreads differ most, if they do so more than a hundredfold.

    The spread is the interquartile range of up to 256 rows after steps of `preprocess` that act on
    rows, or where that is 0 the standard deviation. Nothing is returned for other kinds than
    points, beyond 200 columns, after `standardize`, for columns that are constant but for a few
    rows, and for spreads that fall along the columns, as those of principal components do. Data
    that is read by blocks is not read again. O(256 d) time.
    """
    steps, d = dataset.preprocess, dataset.n_features
    named = [step.replace("@", ":").partition(":")[0] for step in steps]
    if dataset.kind != "points" or not 2 <= d <= SAMPLE_COLUMNS or "standardize" in named:
        return None
    if dataset.is_lazy:
        rows = dataset.values.summary.sample
    else:
        rows = dense(dataset.values[sample_positions(dataset.n_samples)]).astype(np.float64)
    if len(rows) < _FEWEST_ROWS:
        return None
    try:
        rows = apply_steps(rows, tuple(takewhile(lambda step: not step.startswith("pca"), steps)))
    except InputError:  # which the computation raises for all rows
        return None
    spreads = _spreads(rows)
    known = np.flatnonzero(spreads > 0)
    if known.size < 2:
        return None
    order = known[np.argsort(spreads[known], kind="stable")]
    small, large = int(order[0]), int(order[-1])
    ratio = float(spreads[large] / spreads[small])
    if ratio <= _MOST or (known.size >= 5 and _rank_correlation(order) < _FALLING):
        return None
    names = dataset.feature_names or range(d)
    return UnevenColumns(f"column {names[large]!r}", f"column {names[small]!r}", ratio)


def _spreads(rows: FloatArray) -> FloatArray:
    """Return the spread of each column, (d,); 0 if it is constant but for a few rows."""
    ordered, n = np.sort(rows, axis=0), len(rows)
    with np.errstate(over="ignore"):
        spreads = ordered[3 * n // 4] - ordered[n // 4]
        same = np.flatnonzero(spreads == 0)
        varied = (rows[:, same] != ordered[n // 2, same]).mean(axis=0) >= _VARIED
        spreads[same] = np.where(varied, rows[:, same].std(axis=0), 0.0)
    return np.asarray(spreads)


def _rank_correlation(order: IndexArray) -> float:
    """Return the rank correlation of spreads with positions, from the columns by spread."""
    ranks = np.argsort(np.argsort(order))
    return float(np.corrcoef(ranks, np.arange(ranks.size))[0, 1])
