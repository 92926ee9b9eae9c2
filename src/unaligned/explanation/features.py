"""Columns left out one by one or by groups: by="features"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import squareform

from .. import _check
from .._check import FloatArray, IndexArray
from ..data.dataset import Dataset
from ..engine import check_stop
from ..errors import DataWarning, DegenerateDataError, InputError, InputTypeError, about, warn
from ..metrics.base import CANCELLED, squared_distances
from .blocks import Block, Request, dense_rows, log_spectrum, read_block
from .result import Explanation, measure


class Candidate(NamedTuple):
    """Columns that are left out together, by their positions in each dataset."""

    name: str
    columns: tuple[IndexArray, IndexArray]
    members: tuple[str, ...]


def column_labels(datasets: Sequence[Dataset]) -> tuple[list[str], list[str]]:
    """Return the name of every column of both datasets; columns of one name are one feature.

    Unnamed columns are numbered. They are the same features if both datasets have equally many,
    and take the names of the other where only that has some; otherwise each dataset has its own.
    """
    widths = [dataset.n_features for dataset in datasets]
    own = [dataset.feature_names for dataset in datasets]
    numbers = [[str(i) for i in range(width)] for width in widths]
    if widths[0] == widths[1]:
        shared = own[0] or own[1]
        both = [
            list(names or shared or number) for names, number in zip(own, numbers, strict=True)
        ]
        return both[0], both[1]
    found = [
        list(names) if names else [f"{dataset.name}: {i}" for i in number]
        for dataset, names, number in zip(datasets, own, numbers, strict=True)
    ]
    return found[0], found[1]


def candidates_of(
    labels: Sequence[Sequence[str]], groups: Mapping[Any, Any] | None
) -> list[Candidate]:
    """Return one candidate per feature, or per given group of features."""
    if groups is None:
        names = dict.fromkeys([*labels[0], *labels[1]])
        return _possible([_candidate(name, [name], labels) for name in names], labels)
    if not isinstance(groups, Mapping) or not groups:
        raise InputTypeError(
            "feature_groups must be a dict of a name -> its columns, such as {'size': ['height', "
            f"'width']}}, not {_check.shape_of(groups)}."
        )
    found = []
    for name, members in groups.items():
        if isinstance(members, (str, int)) or not isinstance(members, Iterable):
            members = [members]
        texts = [_member(name, member, labels) for member in members]
        if not texts:
            raise InputError(f"feature_groups: the group {name!r} has no columns. Leave it out.")
        found.append(_candidate(str(name), texts, labels))
        n_all = _emptied(found[-1], labels)
        if n_all:
            raise InputError(
                f"feature_groups: the group {name!r} holds all {n_all} columns of a dataset; "
                "without it nothing is left. Make the group smaller."
            )
    repeated = [c.name for i, c in enumerate(found) if c.name in {d.name for d in found[:i]}]
    if repeated:
        raise InputError(f"feature_groups: the name {repeated[0]!r} occurs twice.")
    return found


def _member(group: Any, member: Any, labels: Sequence[Sequence[str]]) -> str:
    """Return the name of a column that is given by its name or its position."""
    known = dict.fromkeys([*labels[0], *labels[1]])
    if str(member) in known:
        return str(member)
    same = list(labels[0]) == list(labels[1])
    is_position = isinstance(member, (int, np.integer)) and not isinstance(member, bool)
    if same and is_position and 0 <= member < len(labels[0]):
        return labels[0][int(member)]
    near = _check.did_you_mean(member, known)
    shown = ", ".join([*known][:8]) + (", …" if len(known) > 8 else "")
    raise InputError(
        f"feature_groups: the group {group!r} has {member!r}, and no dataset has such a column."
        f"{near} Columns: {shown}."
    )


def _candidate(name: str, members: Iterable[str], labels: Sequence[Sequence[str]]) -> Candidate:
    wanted = set(members)
    first, second = (np.flatnonzero([label in wanted for label in side]) for side in labels)
    members = dict.fromkeys(n for side in labels for n in side if n in wanted)
    return Candidate(name, (first, second), tuple(members))


def _emptied(candidate: Candidate, labels: Sequence[Sequence[str]]) -> int:
    """Return the width of a dataset that has no column left without the candidate, else 0."""
    pairs = zip(candidate.columns, labels, strict=True)
    return next((len(side) for columns, side in pairs if columns.size == len(side)), 0)


def _possible(candidates: Sequence[Candidate], labels: Sequence[Sequence[str]]) -> list[Candidate]:
    """Return the candidates that leave columns of both datasets; warn about the others."""
    dropped = [candidate.name for candidate in candidates if _emptied(candidate, labels)]
    if len(dropped) == len(candidates):
        raise InputError(
            "by='features' needs at least two features of a dataset; without the only one nothing "
            "is left. Use by='rows' or by='scale'."
        )
    if dropped:
        warn(
            "Not left out, because a dataset has no other column: "
            f"{', '.join(map(repr, dropped))}.",
            DataWarning,
        )
    return [candidate for candidate in candidates if candidate.name not in dropped]


def correlated_groups(
    datasets: Sequence[Dataset],
    labels: Sequence[Sequence[str]],
    rng: np.random.Generator,
    *,
    n_groups: int = 20,
) -> list[list[str]]:
    """Return the features in groups of correlated ones, at most `n_groups` of them.

    Average linkage of 1 - |correlation|, cut at 0.5, or where `n_groups` are left if that gives
    more or only one, over both datasets where they have the same features, else for each by
    itself. A group of all features of a dataset is halved. Correlations are those of 2000 rows
    (± 0.02). O(d²) memory, 200 MB for 5000 features, the most.
    """
    shared = list(labels[0]) == list(labels[1])
    found: list[list[str]] = []
    known: set[str] = set()
    sides = (
        [(labels[0], datasets)]
        if shared
        else [(x, [d]) for x, d in zip(labels, datasets, strict=True)]
    )
    for names, members in sides:
        if len(names) > 5000:
            raise InputError(
                "by='features' groups up to 5000 columns by correlation, and there are "
                f"{len(names)}. Give feature_groups, or select columns first."
            )
        chosen = [np.sort(rng.permutation(dataset.n_samples)[:2000]) for dataset in members]
        values = [dense_rows(d, rows) for d, rows in zip(members, chosen, strict=True)]
        correlation = np.mean([_correlation(v) for v in values], axis=0)
        for group in _linked(correlation, n_groups // len(sides)):
            fresh = [n for n in dict.fromkeys(names[i] for i in group) if n not in known]
            known.update(fresh)
            found.append(fresh)
    for side in labels:
        own = list(dict.fromkeys(side))
        half = set(own[: max(1, len(own) // 2)])
        found = [
            part
            for group in found
            for part in (_split(group, half) if set(own) <= set(group) else [group])
        ]
    return list(filter(None, found))


def _split(group: Sequence[str], chosen: set[str]) -> list[list[str]]:
    """Return the chosen members of a group, and the others."""
    return [[n for n in group if n in chosen], [n for n in group if n not in chosen]]


def _correlation(values: FloatArray) -> FloatArray:
    """Return |correlation| of all columns, (d, d); 0 for constant ones."""
    centred = values - values.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    centred /= np.where(lengths > 0, lengths, 1.0)
    return np.asarray(np.abs(centred.T @ centred))


def _linked(correlation: FloatArray, n_groups: int) -> list[IndexArray]:
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(correlation) == 1:
        return [np.arange(1)]
    apart = np.clip(1.0 - correlation, 0.0, 1.0)
    np.fill_diagonal(apart, 0.0)
    tree = linkage(squareform(0.5 * (apart + apart.T), checks=False), "average")
    labels = fcluster(tree, 0.5, "distance")
    if labels.max() == 1 or labels.max() > n_groups:
        labels = fcluster(tree, n_groups, "maxclust")
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def explain_features(request: Request, groups: Mapping[Any, Any] | None) -> Explanation:
    """Return the changes without each feature or group; see `explain`."""
    labels = column_labels(request.datasets)
    # Up to 60 columns, each is left out by itself; more are left out by groups first.
    is_many = groups is None and max(len(set(side)) for side in labels) > 60
    if is_many:
        rng = np.random.default_rng(request.seed)
        found = correlated_groups(request.datasets, labels, rng)
        candidates = _possible(
            [_candidate(_group_name(own), own, labels) for own in found], labels
        )
    else:
        candidates = candidates_of(labels, groups)
    done = request.run(signatures_without, (request, candidates))
    result = _measured(request, candidates, done)
    several = {c.name: c.members for c in candidates if len(c.members) > 1}
    largest = next((name for name in result.labels if name in several), None)
    if not is_many or largest is None or not result.is_complete:
        return result
    more = [_candidate(name, [name], labels) for name in several[largest]]
    try:
        parts = request.run(signatures_without, (request, more), keep=False)
    except KeyboardInterrupt:
        warn(
            f"Stopped by Ctrl-C before the columns of {largest!r} were left out one by one; the "
            "result is that of the groups.",
            DataWarning,
        )
        return replace(result, is_complete=False)
    both = [np.r_[a, b[1:]] for a, b in zip(done, parts, strict=True)]
    return _measured(request, [*candidates, *more], both)


def _measured(
    request: Request, candidates: Sequence[Candidate], done: Sequence[FloatArray]
) -> Explanation:
    members = {c.name: c.members for c in candidates if c.members != (c.name,)}
    return measure(request, "features", [c.name for c in candidates], done, members)


def _group_name(members: Sequence[str]) -> str:
    """Return the name of a group that correlation found."""
    more = len(members) - 1
    return f"{members[0]} and {more} more" if more else members[0]


def signatures_without(
    task: tuple[Request, Sequence[Candidate]], item: tuple[int, IndexArray]
) -> FloatArray:
    """Return the signatures of a block, (1 + C, K): whole, and without each candidate.

    The squared distances of the columns left out are subtracted from those of all, O(b²) per
    column, unless cancellation would show. NaN where the rest has no geometry.
    """
    (request, candidates), (side, rows) = task, item
    block = read_block(request.datasets[side], rows)
    describe = partial(
        log_spectrum, settings=request.settings, n_eigenvalues=request.n_eigenvalues
    )
    with about(request.datasets[side].label):
        found = [describe(block.squared)]
    for candidate in candidates:
        check_stop()
        columns, own = candidate.columns[side], found[0]
        if columns.size:
            try:
                own = describe(_without(block, columns))
            except DegenerateDataError:
                own = np.full_like(own, np.nan)
        found.append(own)
    return np.array(found)


def _without(block: Block, columns: IndexArray) -> FloatArray:
    """Return the squared distances of a block without these columns, (b, b)."""
    values = block.values
    left = values[:, columns]
    if left.shape[1] == 1:
        rest = np.subtract.outer(left[:, 0], left[:, 0])
        np.square(rest, out=rest)
        np.subtract(block.squared, rest, out=rest)
    else:
        rest = block.squared - squared_distances(left, left)
    np.maximum(rest, 0.0, out=rest)
    if float(rest.mean()) <= CANCELLED * float(block.squared.mean()):
        others = np.delete(values, columns, axis=1)
        rest = squared_distances(others, others)
    return rest
