"""Nearest-neighbour search: the signature of the data, all distances, the smallest of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import _check
from .._check import FloatArray, IndexArray
from ..comparison import prepare, signature
from ..data.dataset import Dataset
from ..embedding import AGGREGATORS
from ..errors import DataWarning, FileError, InputError, counted, merged, warn
from ..inputs import (
    DataLike,
    is_size_biased,
    own_name,
    warn_about_sizes,
)
from ..metrics.les import LES
from ..preparation import common_size, subsample_all
from ..spectra.pipeline import SignatureSettings
from ..spectra.signature import Signature
from .file import Connection, transaction
from .origins import drawn_references
from .records import (
    DTYPE,
    Neighbour,
    Record,
    recipe_and_k,
    require_fitting,
    restore,
    row_of,
    select,
    where,
)

if TYPE_CHECKING:
    from . import Store

Tags = Mapping[str, Any] | None


@merged()
def nearest(
    store: Store,
    data: DataLike,
    k: int,
    *,
    aggregate: str | None,
    by: str | None,
    tags: Tags,
    subsample: int | str | None,
    max_distance: float | None,
) -> list[Neighbour]:
    """Return the k nearest references or groups of them; see `Store.nearest`."""
    if aggregate is not None:
        _check.one_of("aggregate", aggregate, AGGREGATORS)
    elif by is not None:
        raise InputError(f"by={by!r} needs aggregate='mean', 'min' or 'max'.")
    limit = np.inf
    if max_distance is not None:
        limit = _check.real_number("max_distance", max_distance, minimum=0.0)
    query = data if isinstance(data, Signature) else _describe(store, data, subsample, tags)
    if query is data and subsample is not None:
        raise InputError(f"subsample={subsample!r} needs the data itself; data is a Signature.")
    at_one_size = subsample == "common"
    drawn: dict[str, Signature] = {}
    if at_one_size:
        drawn = drawn_references(store, tags, query.n_samples, store.options)
    with transaction(store.path) as db:
        require_fitting(db, query, "This signature does not fit the store")
        ids, distances = _scan(db, query.values, tags)
        if not ids.size:
            raise InputError(
                f"No signature of the store has the tags {dict(tags)}."
                if tags
                else "The store is empty. Add signatures with store.add or `unaligned describe`."
            )
        if not at_one_size:
            _warn_of_sizes(db, query, store, tags, can_subsample=query is not data)
        _warn_of_columns(db, query, tags)
        if aggregate is not None or drawn:
            records = select(db, *where(tags))  # in the order of the distances
            if len(records) != ids.size:
                raise _damaged(db, "a vector is missing")
            for i, record in enumerate(records):
                if record.name in drawn:
                    records[i] = _redrawn(record, drawn[record.name])
                    distances[i] = np.linalg.norm(drawn[record.name].values - query.values)
        if aggregate is not None:
            groups = _groups(records, query.total_error_bound, distances, by, aggregate)
            return [group for group in groups if group.distance <= limit][:k]
        found = []
        for i in np.argsort(distances, kind="stable")[:k]:  # ties in the order of adding
            if distances[i] > limit:
                break
            matches = [records[i]] if drawn else select(db, "WHERE id = ?", [int(ids[i])])
            if not matches:
                raise _damaged(db, f"vector {ids[i]} has no name")
            record = matches[0]
            bound = record.error_bound + query.total_error_bound
            distance, size = float(distances[i]), record.n_samples
            found.append(Neighbour(record.name, distance, bound, record.tags, n_samples=size))
        return found


def _redrawn(record: Record, drawn: Signature) -> Record:
    """Return the record of a reference of which fewer rows were drawn."""
    return replace(record, n_samples=drawn.n_samples, error_bound=drawn.total_error_bound)


def require_rows(store: Store, dataset: Dataset) -> None:
    """Raise an error if a dataset has fewer rows than the K of a store."""
    k = store.options.get("n_eigenvalues", 0)
    if dataset.n_samples < k:
        raise InputError(
            f"The signatures in {str(store.path)!r} have K={k}, which needs {k} rows; "
            f"{dataset.label} has {dataset.n_samples}. Leave it out, or describe all data in "
            f"another store with a smaller K (`unaligned describe -K {dataset.n_samples}`)."
        )


def _describe(store: Store, data: DataLike, subsample: int | str | None, tags: Tags) -> Signature:
    """Return the signature of data, with the options of a store."""
    options = store.options
    seed = options.pop("rng", 0)
    dataset, _ = prepare(data, options)
    dataset = dataset.with_options(name=own_name(data) or "new data")
    if subsample == "common":
        with transaction(store.path) as db:
            found = _extremes(db, tags)
        # An empty store is an error of the search.
        subsample = min([dataset.n_samples, *(n for _, n in found)])
    if subsample is not None:
        size = common_size(subsample, [dataset], LES())
        dataset = cast(Dataset, subsample_all({"": dataset}, size, seed)[""])
    require_rows(store, dataset)
    return signature(dataset, rng=seed, **options)


def _extremes(db: Connection, tags: Tags) -> list[tuple[str, int]]:
    """Return name and size of the smallest and the largest reference with these tags."""
    condition, texts = where(tags)
    # SQLite takes the name from the row that has the extreme.
    query = f"SELECT name, {{}}(n_samples) FROM signatures {condition}"
    rows = [db.execute(query.format(end), texts).fetchone() for end in ("min", "max")]
    found = [row for row in rows if row[0] is not None]
    for name, size in found:
        with row_of(db, name):
            _check.positive_int("n_samples", size)
    return found


def _scan(db: Connection, values: FloatArray, tags: Tags) -> tuple[IndexArray, FloatArray]:
    """Return the ids and distances (the root of Eq. 11) of all references with these tags."""
    condition, texts = where(tags)
    chosen = f"WHERE id IN (SELECT id FROM signatures {condition})" if condition else ""
    cursor = db.execute(f"SELECT id, data FROM vectors {chosen} ORDER BY id", texts)
    ids: list[int] = []
    squares = []
    while rows := cursor.fetchmany(2048):  # 3 MB at K=200, which stay in the CPU cache
        ids += [row[0] for row in rows]
        for key, data in rows:
            if not isinstance(data, bytes) or len(data) != values.nbytes:
                raise _damaged(db, f"vector {key} has not {values.size} numbers")
        matrix = np.frombuffer(b"".join(row[1] for row in rows), dtype=DTYPE)
        difference = matrix.reshape(-1, values.size) - values
        squares.append(np.einsum("ij,ij->i", difference, difference))
    distances = np.sqrt(np.concatenate([np.empty(0), *squares]))
    if not np.isfinite(distances).all():
        raise _damaged(db, f"vector {ids[int(np.isfinite(distances).argmin())]} is not finite")
    return np.array(ids, dtype=np.int64), distances


def _damaged(db: Connection, reason: str) -> FileError:
    return FileError(f"Store {str(db.path)!r} is damaged ({reason}). Restore a backup.")


def _warn_of_sizes(
    db: Connection, query: Signature, store: Store, tags: Tags, *, can_subsample: bool
) -> None:
    """Warn if distances are due to different sizes."""
    query = replace(query, name=query.name or "new data")
    extremes = _extremes(db, tags)

    def difference(end: tuple[str, int]) -> tuple[bool, float]:
        small, large = sorted((end[1], query.n_samples))
        return is_size_biased(small, large, query.n_eigenvalues), large / small

    name, _ = max(extremes, key=difference)
    other = restore(db, name)
    remedy = "subsample='common' draws equally many rows of the data and of each reference."
    larger = can_subsample and query.n_samples > other.n_samples
    method = LES(SignatureSettings(n_eigenvalues=query.n_eigenvalues))
    warn_about_sizes(method, [query, other], remedy if larger else None)


def _warn_of_columns(db: Connection, query: Signature, tags: Tags) -> None:
    """Warn if all references have another number of columns than the data."""
    condition, texts = where(tags)
    least, most, count = db.execute(
        f"SELECT min(n_features), max(n_features), count(*) FROM signatures {condition}", texts
    ).fetchone()
    differ = least == most != query.n_features and count > 1
    recipe, _ = recipe_and_k(db)
    if differ and query.recipe.kind == "points" and recipe and recipe.kind == "points":
        own = counted(query.n_features, "column")
        warn(
            f"{query.name or 'new data'!r} has {own}, and all {count} references have {most}. A "
            "missing or additional column changes the distance. Check the file, and choose "
            "columns=.",
            DataWarning,
        )


def _groups(
    records: Sequence[Record], bound: float, distances: FloatArray, by: str | None, aggregate: str
) -> list[Neighbour]:
    """Return the groups of references by a tag, the nearest first; one group without a tag."""
    groups: dict[str, list[int]] = {}
    for i, record in enumerate(records):
        if by is None or by in record.tags:
            groups.setdefault("all" if by is None else record.tags[by], []).append(i)
    if not groups:
        raise InputError(f"by={by!r} forms no groups: no selected signature has this tag.")
    found = []
    for name, inside in groups.items():
        largest = max(records[i].error_bound for i in inside)
        distance = float(AGGREGATORS[aggregate](distances[inside]))
        tags = {} if by is None else {by: name}
        found.append(Neighbour(name, distance, largest + bound, tags, len(inside)))
    return sorted(found, key=lambda group: group.distance)
