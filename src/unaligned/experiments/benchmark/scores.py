"""Scores of a matrix of distances: 1 is the best, whatever the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ..._check import FloatArray

if TYPE_CHECKING:
    from .jobs import Collection


def nearest(distances: FloatArray, items: Collection) -> float:
    """Return the share of datasets whose nearest one of another group has their label.

    Of several that are equally near, the share that has it.
    """
    foreign = items.groups[:, None] != items.groups
    masked = np.where(foreign, distances, np.inf)
    is_nearest = masked == masked.min(axis=1, keepdims=True)
    is_right = items.labels[:, None] == items.labels
    return float(np.mean((is_nearest & is_right).sum(axis=1) / is_nearest.sum(axis=1)))


def retrieval(distances: FloatArray, items: Collection) -> float:
    """Return how high the dataset of the same label ranks among those of other groups.

    The mean of 1 - (r - 1)/(m - 1), with r the rank of the right one among m, the mean of ranks
    where others are as near.
    """
    found = []
    for i, row in enumerate(distances):
        others = np.flatnonzero(items.groups != items.groups[i])
        is_right = items.labels[others] == items.labels[i]
        best, wrong = row[others[is_right]].min(), row[others[~is_right]]
        before = (wrong < best).sum() + 0.5 * (wrong == best).sum()
        found.append(1.0 - float(before) / (others.size - 1))
    return float(np.mean(found))


def order(distances: FloatArray, items: Collection) -> float:
    """Return Spearman's correlation of the distances with the differences of the values."""
    i, j = np.triu_indices(len(items.values), 1)
    return _spearman(distances[i, j], np.abs(items.values[i] - items.values[j]))


def mantel(distances: FloatArray, items: Collection, rng: np.random.Generator) -> float:
    """Return the p-value of `order`: datasets are permuted 999 times."""
    i, j = np.triu_indices(len(items.values), 1)
    ranks = np.zeros(distances.shape)
    ranks[i, j] = ranks[j, i] = stats.rankdata(distances[i, j])
    wanted = stats.rankdata(np.abs(items.values[i] - items.values[j]))
    # A permutation keeps the mean and the spread of the ranks: their products decide.
    found = ranks[i, j] @ wanted
    drawn = [rng.permutation(len(distances)) for _ in range(999)]
    larger = [bool(ranks[p[i], p[j]] @ wanted >= found) for p in drawn]
    return (1 + sum(larger)) / 1000


def ranking(distances: FloatArray, items: Collection) -> float:
    """Return Spearman's correlation of the distance to the references with the values."""
    return _spearman(*_to_references(distances, items))


def prediction(distances: FloatArray, items: Collection) -> float:
    """Return Pearson's correlation of the mean distance to the references with the values."""
    x, y = _to_references(distances, items)
    return float("nan") if np.ptp(x) == 0 or np.ptp(y) == 0 else float(stats.pearsonr(x, y)[0])


def crossing(distances: FloatArray, items: Collection) -> float:
    """Return whether the distance to `low` rises with the values and that to `high` falls.

    Half the difference of Spearman's correlations: 1 if both trends are monotone.
    """
    of = {label: distances[items.labels == label][0] for label in ("low", "high")}
    between = items.labels == "between"
    rising, falling = (
        _spearman(of[label][between], items.values[between]) for label in ("low", "high")
    )
    return (rising - falling) / 2


def _to_references(distances: FloatArray, items: Collection) -> tuple[FloatArray, FloatArray]:
    references = items.labels == "reference"
    return distances[~references][:, references].mean(axis=1), items.values[~references]


def _spearman(x: Any, y: Any) -> float:
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    return float(stats.spearmanr(x, y)[0])


SCORES: dict[str, Callable[[FloatArray, Collection], float]] = {
    "nearest": nearest,
    "retrieval": retrieval,
    "order": order,
    "ranking": ranking,
    "prediction": prediction,
    "crossing": crossing,
}

# How each is called in tables.
TITLES = {
    "nearest": "1-NN accuracy",
    "retrieval": "retrieval rank",
    "order": "Spearman with Δt",
    "ranking": "Spearman with likelihood",
    "prediction": "Pearson with accuracy",
    "crossing": "trend with radius",
}
