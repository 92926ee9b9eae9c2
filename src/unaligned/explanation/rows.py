"""Groups of rows left out: by="rows"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _check
from .._check import FloatArray, IndexArray
from ..engine import check_stop
from ..errors import (
    DataWarning,
    DegenerateDataError,
    InputError,
    InputTypeError,
    about,
    counted,
    warn,
)
from ..inference.partition import row_labels
from .blocks import (
    FEWEST_BLOCKS,
    LEAST_ROWS,
    Plan,
    Request,
    dense_rows,
    log_spectrum,
    read_block,
)
from .features import column_labels
from .result import Explanation, measure

Labels = npt.NDArray[np.str_]


def labels_of(request: Request, labels: Any) -> tuple[Labels, Labels]:
    """Return the label of every row of both datasets as text."""
    if isinstance(labels, str):
        if labels != "auto":
            raise InputError(
                f"labels={labels!r} must be 'auto', a pair of labels, one per row of a and of b, "
                "or a column of obs of two AnnData."
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
    # 50 rows per cluster at least, so that blocks hold several rows of each.
    n_clusters = max(2, min(8, min(map(len, values)) // 50))

    def cluster(points: FloatArray) -> IndexArray:
        model = KMeans(n_clusters, n_init=4, random_state=request.seed % 2**32)
        return np.asarray(model.fit_predict(points))

    columns = column_labels(datasets)
    if columns[0] == columns[1]:
        together = cluster(np.concatenate(values))
        sides = [together[: len(used[0])], together[len(used[0]) :]]
        heads = ["", ""]
    else:
        sides, heads = [cluster(v) for v in values], [f"{d.name}: " for d in datasets]
    found = []
    for dataset, rows, side, head in zip(datasets, used, sides, heads, strict=True):
        texts = np.array([f"{head}cluster {label}" for label in side])
        found.append(np.zeros(dataset.n_samples, dtype=texts.dtype))
        found[-1][rows] = texts
    return found[0], found[1]


def groups_of(
    labels: tuple[Labels, Labels], pools: tuple[IndexArray, IndexArray], n_least: int
) -> dict[str, int]:
    """Return the groups that can be left out, and how many rows of a dataset each leaves.

    The fewer of either dataset: at least `n_least`, and a quarter of its rows. Warn about groups
    that leave fewer.
    """
    parts = [own[rows] for own, rows in zip(labels, pools, strict=True)]
    names = sorted(dict.fromkeys([*np.unique(parts[0]), *np.unique(parts[1])]), key=_natural)
    found, dropped = {}, []
    for name in map(str, names):
        left = [int((part != name).sum()) for part in parts]
        enough = [max(n_least, len(part) // 4) for part in parts]
        if all(n >= least for n, least in zip(left, enough, strict=True)):
            found[name] = min(left)
        else:
            dropped.append(f"{name!r} ({counted(min(left), 'row')} left)")
    if not found:
        raise InputError(
            "labels: without any of the groups too few rows are left. Give labels with more "
            "groups, or smaller ones."
        )
    if dropped:
        warn(
            f"Not left out, because fewer than {n_least} rows, or a quarter of a dataset, would "
            f"be left: {', '.join(dropped[:5])}.",
            DataWarning,
        )
    return found


def _natural(name: str) -> tuple[int, str]:
    return (len(name), name) if name.isdigit() else (1 << 30, name)


class Task(NamedTuple):
    """What a job needs beside its block: the label of every row, and the groups to leave out."""

    request: Request
    labels: tuple[Labels, Labels]
    groups: Sequence[str]


def explain_rows(
    request: Request, labels: Any, block_size: int | None, n_repeats: int
) -> Explanation:
    """Return the changes without each group of rows; see `explain`."""
    own = labels_of(request, labels)
    is_auto = isinstance(labels, str)
    used = [
        np.unique(rows) if is_auto else np.arange(dataset.n_samples)
        for rows, dataset in zip(request.plan.rows, request.datasets, strict=True)
    ]
    pools = used[0], used[1]
    n_least = FEWEST_BLOCKS * max(LEAST_ROWS, block_size or 0, request.settings.n_eigenvalues or 0)
    groups = groups_of(own, pools, n_least)
    plan = Plan.of(
        request.datasets,
        block_size,
        n_repeats,
        request.seed,
        pools=pools,
        n_left=min(groups.values()),
        least=LEAST_ROWS,
    )
    request = replace(request, plan=plan)
    both = [
        np.stack([plan.rows[side], stand_ins(plan, side, own[side], list(groups))], axis=1)
        for side in (0, 1)
    ]
    done = request.run(signatures_without, Task(request, own, list(groups)), (both[0], both[1]))
    return measure(request, "rows", list(groups), done)


def stand_ins(plan: Plan, side: int, labels: Labels, groups: Sequence[str]) -> IndexArray:
    """Return the row that stands in for each row of a block without its group, (n_blocks, size).

    They are rows of other groups that no block of the deck uses, each at most once per group, so
    that the blocks of a deck stay disjoint without any group.
    """
    n_used, found = plan.per_deck * plan.size, []
    for order in plan.orders[side]:
        own, rest = order[:n_used].copy(), order[n_used:]
        for name in groups:
            places = labels[order[:n_used]] == name
            own[places] = rest[labels[rest] != name][: places.sum()]
        found.append(own)
    return np.concatenate(found).reshape(-1, plan.size)


def signatures_without(task: Task, item: tuple[int, IndexArray]) -> FloatArray:
    """Return the signatures of a block, (1 + C, K): whole, and without each group.

    `item` has the rows of the block and those that stand in for them, (2, size). Without a group
    other rows are in its place: submatrices of one matrix of squared distances, equally large.
    NaN where the rest has no geometry.
    """
    (request, labels, groups), (side, rows) = task, item
    chosen, inverse = np.unique(rows, return_inverse=True)
    places, others = inverse.reshape(rows.shape)
    block = read_block(request.datasets[side], chosen)
    own = labels[side][rows[0]]

    def describe(at: IndexArray) -> FloatArray:
        check_stop()
        return log_spectrum(block.squared[np.ix_(at, at)], request.settings, request.n_eigenvalues)

    with about(request.datasets[side].label):
        found = [describe(places)]
    for name in groups:
        is_out, rest = own == name, found[0]
        if is_out.any():
            try:
                rest = describe(np.where(is_out, others, places))
            except DegenerateDataError:
                rest = np.full_like(rest, np.nan)
        found.append(rest)
    return np.array(found)
