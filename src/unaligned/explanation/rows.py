"""Groups of rows left out: by="rows"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray, IndexArray
from ..engine import check_stop
from ..errors import DataWarning, InputError, InputTypeError, about, counted, warn
from ..inference.partition import SHARE, row_labels
from .blocks import Request, dense_rows, log_spectrum, read_block
from .features import column_labels
from .result import Explanation, measure

Labels = npt.NDArray[np.str_]


class Group(NamedTuple):
    """Rows that are left out together, and the size and K at which blocks are then compared."""

    name: str
    n_rows: int
    n_eigenvalues: int


def labels_of(request: Request, labels: Any) -> tuple[Labels, Labels]:
    """Return the label of every row of both datasets as text."""
    if isinstance(labels, str):
        if labels != "auto":
            raise InputError(
                f"labels={labels!r} must be 'auto' or a pair of labels, one per row of a and of b."
            )
        return _clusters(request)
    is_pair = isinstance(labels, (Sequence, np.ndarray))
    if labels is None or not is_pair or len(labels) != 2:
        raise InputTypeError(
            "by='rows' needs labels: a pair, the labels of the rows of a and those of b, or "
            f"'auto' for a clustering; not {_check.shape_of(labels)}."
        )
    first, second = (
        row_labels("labels", *both)[0] for both in zip(labels, request.datasets, strict=True)
    )
    return first, second


def _clusters(request: Request) -> tuple[Labels, Labels]:
    """Return the clusters (k-means) of the rows that blocks use, "" for the other rows.

    Of all rows together where both datasets have the same columns, else of each dataset.
    """
    from sklearn.cluster import KMeans

    datasets = request.datasets
    if "distances" in {dataset.kind for dataset in datasets}:
        raise InputError("labels='auto' clusters points; give labels for a matrix of distances.")
    used = [np.unique(rows) for rows in request.plan.rows]
    values = [dense_rows(d, rows) for d, rows in zip(datasets, used, strict=True)]
    found = [np.zeros(d.n_samples, dtype="<U64") for d in datasets]
    # 50 rows per cluster at least, so that blocks hold several rows of each.
    n_clusters = max(2, min(8, min(map(len, values)) // 50))

    def cluster(points: FloatArray) -> IndexArray:
        model = KMeans(n_clusters, n_init=4, random_state=request.seed % 2**32)
        return np.asarray(model.fit_predict(points))

    columns = column_labels(datasets)
    if columns[0] == columns[1]:
        together = cluster(np.concatenate(values))
        sides = [together[: len(used[0])], together[len(used[0]) :]]
        names = ["cluster {}", "cluster {}"]
    else:
        sides, names = [cluster(v) for v in values], [f"{d.name}: cluster {{}}" for d in datasets]
    for own, rows, side, name in zip(found, used, sides, names, strict=True):
        own[rows] = [name.format(label) for label in side]
    return found[0], found[1]


def groups_of(labels: tuple[Labels, Labels], request: Request) -> list[Group]:
    """Return the groups that can be left out; warn about those that leave too few rows.

    Without a group blocks have fewer rows, ten or more. All are then compared at the size of the
    smallest, against random rows of the same blocks, equally many.
    """
    plan, k = request.plan, request.settings.n_eigenvalues
    parts = [own[rows] for own, rows in zip(labels, plan.rows, strict=True)]
    names = sorted(dict.fromkeys([*np.unique(parts[0]), *np.unique(parts[1])]), key=_natural)
    found, dropped = [], []
    for name in map(str, names):
        least = min(int((part != name).sum(axis=1).min()) for part in parts)
        if least < max(10, k or 0):
            dropped.append(f"{name!r} ({counted(least, 'row')} left)")
        else:
            found.append(Group(name, least, k or max(least // SHARE, 3)))
    if not found:
        raise InputError(
            "labels: without any of the groups too few rows are left. Give labels with more "
            "groups, or smaller ones."
        )
    if dropped:
        warn(
            f"Not left out, because too few rows of a block of {plan.size} would be left: "
            f"{', '.join(dropped[:5])}.",
            DataWarning,
        )
    return found


def _natural(name: str) -> tuple[int, str]:
    return (len(name), name) if name.isdigit() else (1 << 30, name)


class Task(NamedTuple):
    """What a job needs beside its block."""

    request: Request
    labels: tuple[Labels, Labels]
    groups: Sequence[Group]


def explain_rows(request: Request, labels: Any) -> Explanation:
    """Return the changes without each group of rows; see `explain`."""
    own = labels_of(request, labels)
    groups = groups_of(own, request)
    done = request.run(signatures_without, Task(request, own, groups))
    return measure(request, "rows", [group.name for group in groups], done)


def signatures_without(
    task: Task, item: tuple[int, IndexArray]
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return the signatures of random rows of a block, and those without each group's rows.

    Both have as many rows as the group leaves in every block: submatrices of one matrix of
    squared distances. A block that holds no row of a group has the same rows in both.
    """
    side, rows = item
    request = task.request
    block = read_block(request.datasets[side], rows)
    labels = task.labels[side][rows]
    rng = np.random.default_rng([request.seed, *rows[:4].tolist()])
    whole, without = [], []
    for group in task.groups:
        check_stop()
        order = rng.permutation(len(rows))
        chosen = order[: group.n_rows]
        kept = order[labels[order] != group.name][: group.n_rows]
        with about(request.datasets[side].label):
            both = [
                log_spectrum(block.squared[np.ix_(at, at)], request.settings, group.n_eigenvalues)
                for at in ((chosen,) if np.array_equal(chosen, kept) else (chosen, kept))
            ]
        whole.append(both[0])
        without.append(both[-1])
    return whole, without
